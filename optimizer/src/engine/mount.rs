//! Which mount a file is on.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// A number that no other mount gets as long as the machine runs (STATX_MNT_ID_UNIQUE, Linux 6.8; statx(2)); `None` where the
/// kernel tells none. Device numbers, by contrast, go to the next mount.
pub fn mount_number(file: &File) -> Option<u64> {
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: with AT_EMPTY_PATH the descriptor itself is meant; statx(2) fills what it is given, which is that long.
    let asked = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC,
            libc::STATX_MNT_ID_UNIQUE,
            status.as_mut_ptr(),
        )
    };
    // SAFETY: all zeros is a value of this type, whatever was filled in.
    let status = unsafe { status.assume_init() };
    (asked == 0 && status.stx_mask & libc::STATX_MNT_ID_UNIQUE != 0).then_some(status.stx_mnt_id)
}
