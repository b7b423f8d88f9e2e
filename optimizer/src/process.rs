//! Processes by descriptors: a number may come to name another one.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A descriptor of the process, ready once that is dead (pidfd_open(2)).
///
/// # Errors
/// ESRCH: there is none of this number; ENOSYS before Linux 5.3.
pub fn open(process: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open(2) takes two numbers and touches no memory.
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just opened, which nobody else has; descriptors are `int`s.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}
