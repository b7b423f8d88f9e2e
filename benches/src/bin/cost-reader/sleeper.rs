//! A process that sleeps as the optimizer does.

use std::io;
use std::ptr::null_mut;

use precache_contract::PAGE;
use precache_contract::sleeper::Sleeper as Word;
use syscalls::{Sysno, syscall};

/// Ended when it drops.
pub struct Sleeper {
    pub word: &'static Word,
    process: libc::pid_t,
}

impl Sleeper {
    pub fn begin() -> io::Result<Self> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which is never unmapped.
        let address = unsafe { libc::mmap(null_mut(), PAGE as usize, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zeroed, page-aligned, and made of an atomic, for which zero is a value.
        let word = unsafe { &*address.cast::<Word>() };
        // SAFETY: this process has one thread; the child makes system calls alone.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: a number alone; this process does not outlive the other.
                let _ = unsafe { syscall!(Sysno::prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                loop {
                    word.prepare();
                    // SAFETY: a word of ours (futex(2)).
                    let _ = unsafe { syscall!(Sysno::futex, word.0.as_ptr(), libc::FUTEX_WAIT, 1, 0) };
                }
            }
            process => Ok(Self { word, process }),
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // SAFETY: a child of ours that has not been waited for.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, null_mut(), 0);
        }
    }
}
