//! The time of a trip.

use core::cell::Cell;

/// Who knows the time: any function that tells it. By a name of its own, for the table of a `dyn Fn` has more in it, which nobody calls.
pub trait Ask {
    fn ask(&self) -> u64;
}

impl<F: Fn() -> u64> Ask for F {
    fn ask(&self) -> u64 {
        self()
    }
}

/// Milliseconds, from 1. Asking the kernel takes longer than most trips' own work, so it is asked when the time decides, and
/// once in a trip.
pub struct Clock<'a> {
    ask: &'a dyn Ask,
    /// 0: it has not been asked.
    answer: Cell<u64>,
}

impl<'a> Clock<'a> {
    pub fn new(ask: &'a dyn Ask) -> Self {
        Self { ask, answer: Cell::new(0) }
    }

    pub fn now(&self) -> u64 {
        if self.answer.get() == 0 {
            self.answer.set(self.ask.ask());
        }
        self.answer.get()
    }
}
