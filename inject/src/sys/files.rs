//! Files and what is known of them.

use super::{Descriptor, Result};
use core::ffi::{c_int, c_uint};
use core::mem::MaybeUninit;
use syscalls::{Errno, Sysno, syscall};

pub fn memory_file() -> Result<Descriptor> {
    // SAFETY: the name is a C string.
    let made =
        unsafe { syscall!(Sysno::memfd_create, c"precache".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    made.map(|fd| Descriptor(fd as c_int))
}

/// A file in memory for the program's own use.
pub fn plain_memory_file(close_on_exec: bool) -> Result<c_int> {
    let flags = if close_on_exec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is a C string.
    unsafe { syscall!(Sysno::memfd_create, c"lock.mdb".as_ptr(), flags) }.map(|number| number as c_int)
}

/// What the process is limited to of this resource now (getrlimit(2)), in its unit; the highest number: nothing.
pub fn limit(resource: c_uint) -> Result<u64> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: a structure that the kernel fills in on success, whose layout on 64-bit Linux is libc's.
    unsafe {
        syscall!(Sysno::prlimit64, 0, resource, 0, limit.as_mut_ptr())?;
        Ok(limit.assume_init().rlim_cur)
    }
}

/// Sets the file's length for good: the optimizer does not map memory that could be cut short under it.
pub fn seal_at_length(descriptor: &Descriptor, length: usize) -> Result<()> {
    let longest = limit(libc::RLIMIT_FSIZE)?;
    // To try would be answered by SIGXFSZ, which ends programs.
    if length as u64 > longest {
        return Err(Errno::EFBIG);
    }
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: concerns our own descriptor alone.
    unsafe {
        syscall!(Sysno::ftruncate, descriptor.0, length)?;
        syscall!(Sysno::fcntl, descriptor.0, libc::F_ADD_SEALS, seals).map(drop)
    }
}

/// Opens a file to look at it, with these flags besides (O_PATH).
///
/// # Safety
/// `path` must be a C string, or no address at all.
pub unsafe fn open_to_look(folder: c_int, path: *const core::ffi::c_char, more: c_int) -> Result<Descriptor> {
    let flags = more | libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the caller's promise; the kernel refuses what is no address.
    unsafe { syscall!(Sysno::openat, folder, path, flags) }.map(|number| Descriptor(number as c_int))
}

pub fn file_status(descriptor: c_int) -> Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: on success the kernel has filled in the whole structure, whose layout on 64-bit Linux is libc's.
    unsafe {
        syscall!(Sysno::fstat, descriptor, status.as_mut_ptr())?;
        Ok(status.assume_init())
    }
}

/// The same of the file at a path, relative to `folder` as in openat(2).
pub fn status_at(folder: c_int, path: &core::ffi::CStr) -> Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // The same call has two names (syscalls(2)).
    #[cfg(not(target_arch = "x86_64"))]
    use Sysno::fstatat as newfstatat;
    #[cfg(target_arch = "x86_64")]
    use Sysno::newfstatat;
    // SAFETY: a C string, and a structure that the kernel fills in on success.
    unsafe {
        syscall!(newfstatat, folder, path.as_ptr(), status.as_mut_ptr(), 0)?;
        Ok(status.assume_init())
    }
}

/// Whether the file gives capabilities to who executes it (capabilities(7)).
pub fn has_capabilities(descriptor: c_int) -> bool {
    // SAFETY: a C string; of length 0, no value is written (fgetxattr(2)).
    unsafe { syscall!(Sysno::fgetxattr, descriptor, c"security.capability".as_ptr(), 0, 0) }
        .is_ok_and(|length| length > 0)
}

/// Flags of the open file (`O_DIRECT` and others).
pub fn open_flags(descriptor: c_int) -> Result<c_int> {
    // SAFETY: F_GETFL takes no argument.
    unsafe { syscall!(Sysno::fcntl, descriptor, libc::F_GETFL) }.map(|flags| flags as c_int)
}

/// Whether the file is memory, with no storage behind it: only such files can have seals (fcntl(2), F_GET_SEALS).
pub fn is_memory(descriptor: c_int) -> bool {
    // SAFETY: asks for a number.
    unsafe { syscall!(Sysno::fcntl, descriptor, libc::F_GET_SEALS) }.is_ok()
}

/// Fills `buffer` from the file's byte `offset` on; returns how much there was.
pub fn read_at(descriptor: c_int, buffer: &mut [u8], offset: u64) -> Result<usize> {
    // SAFETY: writes at most the buffer's length into it.
    unsafe { syscall!(Sysno::pread64, descriptor, buffer.as_mut_ptr(), buffer.len(), offset) }
}

/// The path behind a descriptor (`/proc/self/fd/N`); returns its length. A longer one is cut.
pub fn path_of(descriptor: c_int, buffer: &mut [u8]) -> Result<usize> {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 10];
    let mut rest = descriptor.unsigned_abs();
    let mut count = 0;
    for digit in digits.iter_mut() {
        *digit = b'0' + (rest % 10) as u8;
        (rest, count) = (rest / 10, count + 1);
        if rest == 0 {
            break;
        }
    }
    for (to, from) in link[14..].iter_mut().zip(digits[..count].iter().rev()) {
        *to = *from;
    }
    // SAFETY: `link` ends in a zero byte (14 characters, at most 10 digits, 26 bytes); at most the buffer's length is
    // written.
    unsafe { syscall!(Sysno::readlinkat, libc::AT_FDCWD, link.as_ptr(), buffer.as_mut_ptr(), buffer.len()) }
}
