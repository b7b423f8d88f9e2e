//! An end to walks in circles: on a damaged page liblmdb can search for ever.
//!
//! The child process that walks is ended by a signal when it has computed for a while without getting on. Only its
//! computing counts, not time: slow storage, and whoever reads what is printed, may take as long as they want.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nix::sys::signal::{SigHandler, Signal, signal};

/// What ends the process.
pub const SIGNAL: Signal = Signal::SIGVTALRM;

/// Seconds of computing in user mode that a step may take. The records of a page take less than a thousandth of that.
const SECONDS: libc::time_t = 1;

/// This process is a child that may be ended.
static LIMITED: AtomicBool = AtomicBool::new(false);

/// From now on this process is ended when it gets nowhere.
pub fn limit() -> nix::Result<()> {
    // SAFETY: no handler is installed; the default action needs none.
    unsafe { signal(SIGNAL, SigHandler::SigDfl) }?;
    LIMITED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Walks and searches that are going on, one within the other.
static GOING_ON: AtomicU32 = AtomicU32::new(0);

/// A walk, or a search: while it lasts, it must get on.
pub struct Steps(());

impl Steps {
    pub fn begin() -> Self {
        GOING_ON.fetch_add(1, Ordering::Relaxed);
        let steps = Self(());
        steps.got_on();
        steps
    }

    /// A step was made: the next one has all its time.
    pub fn got_on(&self) {
        set(SECONDS);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let others = GOING_ON.fetch_sub(1, Ordering::Relaxed) > 1;
        set(if others { SECONDS } else { 0 });
    }
}

/// Asks for the signal after so many seconds of computing, or, after 0, for none.
fn set(seconds: libc::time_t) {
    if !LIMITED.load(Ordering::Relaxed) {
        return;
    }
    let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: never, it_value: libc::timeval { tv_sec: seconds, tv_usec: 0 } };
    // SAFETY: setitimer(2) reads the new value, and stores no old one where there is no place for it. It cannot fail: the
    // clock exists and the value is in range.
    unsafe { libc::setitimer(libc::ITIMER_VIRTUAL, &timer, ptr::null_mut()) };
}
