//! No fork comes while a thread does what a child must not find half done: enrols the process, has a connection, which a child
//! would keep open, puts our handler in place, or is in the loader's list of objects, whose lock a child would find taken for
//! ever (of the loader's locks glibc's fork resets all but `dl_load_write_lock`; `__libc_fork` in posix/fork.c, 2.36).

mod gate;

pub use self::gate::Gate;
use crate::owner::GATE;
use crate::{owner, sys};

/// How many milliseconds one side waits for the other: work takes microseconds, a fork as long as it takes to copy the page
/// tables of a large process. Not for ever: what the program does between our handler before the fork and the fork may wait for
/// a thread that waits here.
const PATIENCE: u64 = 1000;

/// How often one side yields before it sleeps between its looks.
const YIELDS: u32 = 100;

/// From the constructor: other handlers for forks come later, so that ours are the last before it and the first after it
/// (pthread_atfork(3)), and no other waits in between.
pub fn begin() {
    // SAFETY: three functions that stay loaded. Without memory for them it is as without the gate.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(note_child)) };
}

/// While this exists nobody forks.
pub struct Shut(#[expect(dead_code, reason = "held for its end")] sys::Quiet);

impl Shut {
    /// Not for our signal context, nor while another one exists in this thread.
    pub fn begin() -> Self {
        // A handler of the program's may fork, and would wait for its own thread.
        let quiet = sys::Quiet::begin();
        let enter = || {
            let entered = GATE.enter();
            if !entered {
                GATE.leave();
            }
            entered
        };
        if !wait_until(enter) {
            GATE.enter();
        }
        Self(quiet)
    }

    /// The same without waiting, for signal context, too. `None`: a fork is under way.
    pub fn try_begin() -> Option<Self> {
        let quiet = sys::Quiet::begin();
        if GATE.enter() {
            return Some(Self(quiet));
        }
        GATE.leave();
        None
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        GATE.leave();
    }
}

unsafe extern "C" fn before() {
    GATE.begin_fork();
    if cfg!(feature = "sabotage-forks-do-not-wait") {
        return;
    }
    wait_until(|| GATE.is_quiet());
}

/// `false`: it has not come about in time.
fn wait_until(is_so: impl Fn() -> bool) -> bool {
    if is_so() {
        return true;
    }
    let (begun, mut looks) = (sys::milliseconds(), 0);
    while sys::milliseconds().wrapping_sub(begun) <= PATIENCE {
        looks += 1;
        // Those who wait are many, and must not keep the processors from the one they wait for.
        if looks < YIELDS {
            sys::yield_now()
        } else {
            sys::sleep_briefly()
        }
        if is_so() {
            return true;
        }
    }
    false
}

unsafe extern "C" fn in_parent() {
    GATE.end_fork();
}

/// In a child that libc has forked, before anything else runs there: the only thread.
pub extern "C" fn note_child() {
    owner::note_child();
    GATE.reset();
}
