//! No fork comes while a thread does what a child must not find half done: enrols the process, has a connection, which a child
//! would keep open, puts our handler in place, or is in the loader's list of objects, whose lock a child would find taken for
//! ever (of the loader's locks glibc's fork resets all but `dl_load_write_lock`; `__libc_fork` in posix/fork.c, 2.36).

mod gate;

pub use self::gate::Gate;
use crate::owner::GATE;
use crate::{owner, sys};
use core::ffi::{c_int, c_void};

/// How many milliseconds one side waits for the other: work takes microseconds, a fork as long as it takes to copy the page
/// tables of a large process. Not for ever: what the program does between our handler before the fork and the fork may wait for
/// a thread that waits here.
const PATIENCE: u32 = 1000;

/// How many milliseconds a fork waits for those that other forks keep waiting.
const COURTESY: u32 = 20;

unsafe extern "C" {
    /// What pthread_atfork(3) calls in every glibc, with a word that compilers put into each library (Linux Standard Base 5.0,
    /// `__register_atfork`).
    fn __register_atfork(
        before: unsafe extern "C" fn(),
        in_parent: unsafe extern "C" fn(),
        in_child: unsafe extern "C" fn(),
        library: *const c_void,
    ) -> c_int;
}

/// From the constructor: nearly all other handlers for forks come later, so that ours are the last before it and the first after
/// it (pthread_atfork(3)), and no other waits in between. (Those of libraries that the program is linked with may come earlier.)
pub fn begin() {
    // SAFETY: three functions that stay loaded, and an address in the library whose they are. Without memory for them it is as
    // without the gate.
    let _ = unsafe { __register_atfork(before, in_parent, note_child, (&raw const GATE).cast()) };
}

/// While this exists nobody forks.
pub struct Shut(#[expect(dead_code, reason = "held for its end")] sys::Quiet);

impl Shut {
    /// Not for our signal context, nor while another one exists in this thread.
    pub fn begin() -> Self {
        // A handler of the program's may fork, and would wait for its own thread.
        let quiet = sys::Quiet::begin();
        if !try_enter() {
            GATE.begin_waiting();
            if !wait_until(PATIENCE, try_enter) {
                GATE.enter();
            }
            GATE.end_waiting();
        }
        Self(quiet)
    }

    /// The same without waiting, for signal context, too. `None`: a fork is under way.
    pub fn try_begin() -> Option<Self> {
        let quiet = sys::Quiet::begin();
        try_enter().then(|| Self(quiet))
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        GATE.leave();
    }
}

/// `false`: a fork is under way, and the thread does not count.
fn try_enter() -> bool {
    let entered = GATE.enter();
    if !entered {
        GATE.leave();
    }
    entered
}

unsafe extern "C" fn before() {
    // Threads that fork one after the other let those that wait go first.
    wait_until(COURTESY, || !GATE.is_awaited());
    GATE.begin_fork();
    if cfg!(feature = "sabotage-forks-do-not-wait") {
        return;
    }
    wait_until(PATIENCE, || GATE.is_quiet());
}

/// `false`: it has not come about in time.
fn wait_until(patience: u32, is_so: impl Fn() -> bool) -> bool {
    let mut pauses = sys::Pauses::default();
    while !is_so() {
        if !pauses.next_within(patience) {
            return false;
        }
    }
    true
}

unsafe extern "C" fn in_parent() {
    GATE.end_fork();
}

/// In a child that libc has forked, before anything else runs there: the only thread.
pub extern "C" fn note_child() {
    owner::note_child();
    if !owner::is_established() {
        // Else the kernel has done it, before an earlier handler of the program's could start a thread.
        GATE.reset();
    }
}
