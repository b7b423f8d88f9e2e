//! The life of a place in the table of mappings, and who is at work in it: the protocol between handlers, which change
//! page tables, and calls that unmap.
//!
//! A check alone is not enough: between a handler's look and its system call the mapping may go, and the address may be
//! somebody else's. So handlers hold the place first and look then; whoever unmaps first marks it as leaving, then waits
//! until nobody holds it. One of the two sees the other.
//!
//! `inject/models` runs this file in every order of its steps.

use crate::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const ARMED: u32 = 2;
const LEAVING: u32 = 3;

/// One place. All zeros is a free one.
pub struct Lifecycle {
    state: AtomicU32,
    /// Handlers and calls that work on the mapping.
    holders: AtomicU32,
}

impl Lifecycle {
    /// Both zero for a free place.
    pub const fn new(state: AtomicU32, holders: AtomicU32) -> Self {
        Self { state, holders }
    }

    /// Takes a free place, to be filled in by the caller alone.
    pub fn claim(&self) -> bool {
        self.state.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).is_ok()
    }

    /// What was claimed and filled in is known to all from here on; the caller holds it.
    pub fn arm(&self) {
        self.holders.fetch_add(1, SeqCst);
        self.state.store(ARMED, SeqCst);
    }

    /// A first look, which decides nothing.
    pub fn is_armed(&self) -> bool {
        self.state.load(Relaxed) == ARMED
    }

    /// By one look: in between it might go from the one to the other.
    pub fn is_armed_or_claimed(&self) -> bool {
        matches!(self.state.load(SeqCst), CLAIMED | ARMED)
    }

    /// Somebody is filling it in.
    pub fn is_claimed(&self) -> bool {
        self.state.load(SeqCst) == CLAIMED
    }

    /// Holds the mapping, if it is armed: it stays mapped until [`Self::release`].
    pub fn hold(&self) -> bool {
        // First held, then looked at again.
        self.holders.fetch_add(1, SeqCst);
        let is_armed = self.state.load(SeqCst) == ARMED;
        if !is_armed {
            self.release();
        }
        is_armed
    }

    pub fn release(&self) {
        self.holders.fetch_sub(1, SeqCst);
    }

    /// Nobody can hold it from here on who did not before; `false`: somebody else is at it. Unmap only when nobody
    /// [holds](Self::is_held) it any more.
    pub fn mark_leaving(&self) -> bool {
        self.state.compare_exchange(ARMED, LEAVING, SeqCst, Relaxed).is_ok()
    }

    pub fn is_leaving(&self) -> bool {
        self.state.load(SeqCst) == LEAVING
    }

    pub fn is_held(&self) -> bool {
        self.holders.load(SeqCst) != 0
    }

    /// The place can be claimed again.
    pub fn free(&self) {
        self.state.store(FREE, Release);
    }

    /// In a forked child, whose only thread this is: nobody holds it, and what a thread of the parent was filling in or
    /// taking out is free. The answer is whether it is armed.
    pub fn reset_after_fork(&self) -> bool {
        self.holders.store(0, SeqCst);
        let is_armed = self.state.load(SeqCst) == ARMED;
        if !is_armed {
            self.state.store(FREE, SeqCst);
        }
        is_armed
    }
}

/// A bit for each place whose mapping is on its way out: mostly none, and then no place need be looked at.
pub struct Departures(AtomicU64);

impl Departures {
    /// Zero: nothing leaves.
    pub const fn new(bits: AtomicU64) -> Self {
        Self(bits)
    }

    /// Before the mappings are gone from where all others look.
    pub fn begin(&self, places: u64) {
        self.0.fetch_or(places, SeqCst);
    }

    /// Before the places are free: they may be other mappings' at once.
    pub fn end(&self, places: u64) {
        self.0.fetch_and(!places, SeqCst);
    }

    /// To be asked after it was looked there: what had left by then is found here, or its call is made.
    pub fn are_any(&self) -> bool {
        fence(Acquire);
        self.0.load(Relaxed) != 0
    }

    /// In a forked child: they were the parent's.
    pub fn reset_after_fork(&self) {
        self.0.store(0, SeqCst);
    }
}

/// A bit for each place whose curtain is being changed: one thread at a time has its turn.
pub struct Turns(AtomicU64);

impl Turns {
    /// Zero: nobody is in its turn.
    pub const fn new(bits: AtomicU64) -> Self {
        Self(bits)
    }

    /// The sole right to the place's curtain, unless another thread has it.
    pub fn take(&self, place: usize) -> bool {
        let bit = 1 << place;
        self.0.fetch_or(bit, SeqCst) & bit == 0
    }

    pub fn give_back(&self, place: usize) {
        self.0.fetch_and(!(1 << place), SeqCst);
    }

    /// A bit for each place that is somebody's now.
    pub fn taken(&self) -> u64 {
        self.0.load(SeqCst)
    }

    /// In a forked child: turns are those of the parent's threads.
    pub fn reset_after_fork(&self) {
        self.0.store(0, SeqCst);
    }
}
