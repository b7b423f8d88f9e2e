//! A pin that calls share, one after the other or at once: the last few pages that were opened for one. It outlives them, until
//! another takes its place or something in it is to be closed.
//!
//! Programs write what is mapped number by number (numpy calls fwrite(3) for each element of a view), and to pin and open takes two
//! system calls. What stays pinned stays open, so calls within it need neither. A call that never returns leaves it as it is.
//!
//! `inject/models` runs this file in every order of its steps.

use crate::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// Counted above the calls while the pin becomes another one: only those that come after that share it.
const CHANGING: u32 = 1 << 31;

pub struct Shared {
    start: AtomicUsize,
    /// 0: nothing is pinned.
    end: AtomicUsize,
    calls: AtomicU32,
}

impl Shared {
    /// All zero: nothing is pinned.
    pub const fn new(start: AtomicUsize, end: AtomicUsize, calls: AtomicU32) -> Self {
        Self { start, end, calls }
    }

    /// One call more. Whether all of `start..end` is pinned, and open, until it [leaves](Self::leave), as it must in either case.
    pub fn join(&self, start: usize, end: usize) -> bool {
        let is_open = self.calls.fetch_add(1, SeqCst) < CHANGING;
        // Not one after the other: that takes more code than it saves time.
        is_open & (self.start.load(Relaxed) <= start) & (end <= self.end.load(Relaxed))
    }

    /// Pins `start..end` instead, as long as no call is at work: it is one of a call that is to open it, and
    /// [tell](Self::has_been_opened), and to leave.
    pub fn change(&self, start: usize, end: usize) -> bool {
        if self.calls.compare_exchange(0, CHANGING + 1, SeqCst, Relaxed).is_err() {
            return false;
        }
        // Who closes may look in between, and see neither: it is in a turn that this call waits for before it opens.
        self.end.store(0, SeqCst);
        self.start.store(start, SeqCst);
        self.end.store(end, SeqCst);
        true
    }

    /// Pins nothing any more, unless a call is at work: what is idle is not to keep a checkpoint from being placed.
    pub fn retire(&self) -> bool {
        let is_idle = self.calls.compare_exchange(0, CHANGING, SeqCst, Relaxed).is_ok();
        if is_idle {
            self.end.store(0, SeqCst);
            self.has_been_opened();
        }
        is_idle
    }

    /// All of it: other calls may share it now.
    pub fn has_been_opened(&self) {
        self.calls.fetch_and(!CHANGING, SeqCst);
    }

    pub fn leave(&self) {
        // Not below zero, if a signal handler forked just here.
        let _ = self.calls.fetch_update(SeqCst, Relaxed, |calls| calls.checked_sub(1));
    }

    /// What is pinned.
    pub fn range(&self) -> (usize, usize) {
        (self.start.load(SeqCst), self.end.load(SeqCst))
    }

    /// In a forked child: the calls of the parent's other threads are not its own.
    pub fn reset(&self) {
        self.end.store(0, SeqCst);
        self.calls.store(0, SeqCst);
    }
}
