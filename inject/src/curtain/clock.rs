//! The time of a trip.

use core::cell::Cell;

/// Milliseconds, from 1. Asking the kernel takes longer than most trips' own work, so it is asked when the time decides, and
/// once in a trip.
pub struct Clock<'a> {
    ask: &'a dyn Fn() -> u64,
    /// 0: it has not been asked.
    answer: Cell<u64>,
}

impl<'a> Clock<'a> {
    pub fn new(ask: &'a dyn Fn() -> u64) -> Self {
        Self { ask, answer: Cell::new(0) }
    }

    pub fn now(&self) -> u64 {
        if self.answer.get() == 0 {
            self.answer.set((self.ask)());
        }
        self.answer.get()
    }
}
