//! What our parent left to the program, through us: signals and standard descriptors.
//!
//! Before `main`, Rust ignores SIGPIPE and opens `/dev/null` where a standard descriptor is closed. The program must see
//! neither, so a constructor, which runs before that, writes down how things were.

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

const STANDARD: [RawFd; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];
const LAST_SIGNAL: libc::c_int = 64;

#[derive(Debug)]
pub struct Inherited {
    mask: libc::sigset_t,
    /// Bit N - 1: signal N was ignored. No other disposition outlives the exec that made us.
    ignored: u64,
    closed: [bool; 3],
}

static AT_START: OnceLock<Inherited> = OnceLock::new();

// Miri, which runs constructors before the tests of the policy, does not know sigprocmask.
#[cfg(not(miri))]
#[ctor::ctor(unsafe)]
fn write_down() {
    AT_START.get_or_init(Inherited::capture);
}

impl Inherited {
    pub fn at_start() -> &'static Self {
        AT_START.get_or_init(Self::capture)
    }

    fn capture() -> Self {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: a null new set only queries; sigprocmask(2) then fills the old set, and cannot fail.
        let mask = unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, ptr::null(), mask.as_mut_ptr());
            mask.assume_init()
        };
        let ignored = (1..=LAST_SIGNAL)
            .filter(|&signal| is_ignored(signal))
            .fold(0, |ignored, signal| ignored | 1 << (signal - 1));
        // SAFETY: F_GETFD takes no third argument and changes nothing, whether the descriptor is open or not.
        let closed = STANDARD.map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1);
        Self { mask, ignored, closed }
    }

    /// Gives the calling process back what it had at the start. For a process that is about to exec: it allocates
    /// nothing, so that a forked child may call it.
    pub fn restore(&self) {
        for signal in 1..=LAST_SIGNAL {
            let ignored = self.ignored & 1 << (signal - 1) != 0;
            // SAFETY: neither disposition runs code. For the few signals that cannot be set, signal(2) fails and
            // leaves them as they were.
            unsafe {
                libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL });
            }
        }
        for (fd, closed) in STANDARD.into_iter().zip(self.closed) {
            if closed {
                // SAFETY: it was closed at the start, so that what is open there now is the /dev/null of Rust's
                // runtime, which nothing else refers to in a process that is about to exec.
                unsafe { libc::close(fd) };
            }
        }
        // Last, because what arrived in the meantime is delivered here.
        // SAFETY: the set was filled by sigprocmask(2).
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.mask, ptr::null_mut()) };
    }
}

/// A limit on the size of files that is meant for the program does not end us: what is longer cannot be written. Until
/// [`restore`](Inherited::restore).
pub fn outlive_file_limit() {
    // SAFETY: the disposition runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only queries; all-zero bytes are a valid sigaction if it fails, as it does for the
    // two signals that libc keeps to itself.
    let action = unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Lets go of every descriptor that the program inherits, except stderr: the end of a pipe must end with the program's
/// copy of it, not with ours. All that are our own close on exec, and by that they are told apart.
pub fn let_go_of_descriptors() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<RawFd> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    let Ok(null) = File::options().read(true).write(true).open("/dev/null") else {
        return;
    };
    for fd in open.into_iter().filter(|&fd| is_inheritable(fd)) {
        match fd {
            libc::STDIN_FILENO | libc::STDOUT_FILENO => {
                // SAFETY: dup2(2) replaces it in one step, so that std, which refers to it by number, finds it open.
                unsafe { libc::dup2(null.as_raw_fd(), fd) };
            }
            libc::STDERR_FILENO => {}
            // SAFETY: nothing in this process owns it: what we open closes on exec, and this does not.
            _ => unsafe {
                libc::close(fd);
            },
        }
    }
}

fn is_inheritable(fd: RawFd) -> bool {
    // SAFETY: the borrow ends with this call, and a descriptor closed in the meantime makes it fail with EBADF.
    let flags: Result<_, Errno> = fcntl(unsafe { BorrowedFd::borrow_raw(fd) }, FcntlArg::F_GETFD);
    flags.is_ok_and(|flags| !FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC))
}
