//! Threads at work that a child must not find half done, against forks: one of the two sides sees the other.
//!
//! `inject/models` runs this file in every order of its steps.

use crate::atomic::{AtomicU32, Ordering::*};

/// Forks under way are counted above threads at work.
const FORK: u32 = 1 << 16;

pub struct Gate(AtomicU32);

impl Gate {
    /// Zero: nobody is at work, and nobody forks.
    pub const fn new(word: AtomicU32) -> Self {
        Self(word)
    }

    /// A thread begins such work; `false`: a fork is under way. It counts in either case, until it [leaves](Self::leave).
    pub fn enter(&self) -> bool {
        self.0.fetch_add(1, AcqRel) < FORK
    }

    pub fn leave(&self) {
        self.0.fetch_sub(1, AcqRel);
    }

    /// From here on threads see that a fork is under way.
    pub fn begin_fork(&self) {
        self.0.fetch_add(FORK, AcqRel);
    }

    /// Whether no thread is at work.
    pub fn is_quiet(&self) -> bool {
        self.0.load(Acquire).is_multiple_of(FORK)
    }

    /// In the parent.
    pub fn end_fork(&self) {
        self.0.fetch_sub(FORK, AcqRel);
    }

    /// In the child, which has one thread.
    pub fn reset(&self) {
        self.0.store(0, Release);
    }
}
