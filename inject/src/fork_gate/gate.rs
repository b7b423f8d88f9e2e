//! Threads at work that a child must not find half done, against forks: one of the two sides sees the other.
//!
//! `inject/models` runs this file in every order of its steps.

use crate::atomic::{AtomicU32, Ordering::*};

/// Forks under way are counted above threads at work.
const FORK: u32 = 1 << 16;

pub struct Gate {
    word: AtomicU32,
    /// Threads that wait for forks to end.
    waiting: AtomicU32,
}

impl Gate {
    /// Zero: nobody is at work, and nobody forks.
    pub const fn new(word: AtomicU32, waiting: AtomicU32) -> Self {
        Self { word, waiting }
    }

    /// A thread waits, until it [ends](Self::end_waiting) that.
    pub fn begin_waiting(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    pub fn end_waiting(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    pub fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }

    /// A thread begins such work; `false`: a fork is under way. It counts in either case, until it [leaves](Self::leave).
    pub fn enter(&self) -> bool {
        self.word.fetch_add(1, AcqRel) < FORK
    }

    pub fn leave(&self) {
        self.word.fetch_sub(1, AcqRel);
    }

    /// From here on threads see that a fork is under way.
    pub fn begin_fork(&self) {
        self.word.fetch_add(FORK, AcqRel);
    }

    /// Whether no thread is at work.
    pub fn is_quiet(&self) -> bool {
        self.word.load(Acquire).is_multiple_of(FORK)
    }

    /// In the parent.
    pub fn end_fork(&self) {
        self.word.fetch_sub(FORK, AcqRel);
    }

    /// In the child, which has one thread.
    pub fn reset(&self) {
        self.waiting.store(0, Relaxed);
        self.word.store(0, Release);
    }
}
