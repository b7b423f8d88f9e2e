//! No fork comes while a thread does what a child must not find half done: enrols the process, has a connection, which a child
//! would keep open, puts our handler in place, or is in the loader's list of objects, whose lock a child would find taken for
//! ever (of the loader's locks glibc's fork resets all but `dl_load_write_lock`; `__libc_fork` in posix/fork.c, 2.36).

mod gate;

use self::gate::Gate;
use crate::{owner, sys};
use core::sync::atomic::AtomicU32;

static GATE: Gate = Gate::new(AtomicU32::new(0));

/// How often one side yields to the other, each of which takes some microseconds to milliseconds.
const PATIENCE: u32 = 100_000;

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
        let mut patience = PATIENCE;
        while !GATE.enter() && patience > 0 {
            GATE.leave();
            patience -= 1;
            sys::yield_now();
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
    for _ in 0..PATIENCE {
        if GATE.is_quiet() {
            return;
        }
        sys::yield_now();
    }
}

unsafe extern "C" fn in_parent() {
    GATE.end_fork();
}

/// In a child that libc has forked, before anything else runs there: the only thread.
pub extern "C" fn note_child() {
    owner::note_child();
    GATE.reset();
}

/// In a child that adopts: it may have been made past libc.
pub fn reset_after_fork() {
    GATE.forget_forks();
}
