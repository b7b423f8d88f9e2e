//! System calls, made directly: no errno, no cancellation points, no lazy binding, so that signal context may make
//! them. Each returns the kernel's answer or its error number.

use core::ffi::c_int;
use core::mem::size_of;
use syscalls::{Sysno, syscall};

mod files;
mod memory;
mod signals;
mod sockets;
mod threads;

pub use files::*;
pub use memory::*;
pub use signals::*;
pub use sockets::*;
pub use threads::*;

pub use syscalls::Errno as Error;
pub type Result<T> = core::result::Result<T, Error>;

/// A descriptor that is closed when it goes out of scope.
pub struct Descriptor(pub c_int);

impl Drop for Descriptor {
    fn drop(&mut self) {
        if cfg!(feature = "sabotage-descriptors-kept") {
            return;
        }
        // SAFETY: the number came from a call that made a descriptor for this owner alone. The result does not matter:
        // Linux releases the number in any case (close(2)).
        let _ = unsafe { syscall!(Sysno::close, self.0) };
    }
}

/// The user that the process acts as.
pub fn effective_user() -> u32 {
    // SAFETY: cannot fail (geteuid(2)).
    unsafe { syscall!(Sysno::geteuid) }.unwrap_or(usize::MAX) as u32
}

pub fn random_word() -> Result<u64> {
    let mut word = 0u64;
    // SAFETY: fills the eight bytes of `word`.
    unsafe { syscall!(Sysno::getrandom, &raw mut word, size_of::<u64>(), libc::GRND_NONBLOCK) }?;
    Ok(word)
}

/// The real ones of this process (credentials(7)).
pub fn real_user_and_group() -> (u32, u32) {
    // SAFETY: these take nothing and cannot fail (getuid(2), getgid(2)).
    unsafe { (syscall!(Sysno::getuid).unwrap_or(0) as u32, syscall!(Sysno::getgid).unwrap_or(0) as u32) }
}

/// Whether executing a program gives this process no rights (PR_SET_NO_NEW_PRIVS).
pub fn is_kept_from_rights() -> bool {
    // SAFETY: takes numbers only (prctl(2)).
    let answer = unsafe { syscall!(Sysno::prctl, libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
    answer == Ok(1)
}
