//! What the program said last of how it reads a mapping: for an optimizer that does not know.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::*};
use precache_contract::ring::{Advice, What};

/// An order of reading, and a part that will be needed.
pub struct Said {
    order: Word,
    wanted: Word,
}

/// One piece of advice: where its part of the file begins, and the rest as the ring has it (0: none). What two threads say at
/// the same time may mix; it is advice.
struct Word {
    start: AtomicU64,
    what: AtomicU64,
}

impl Word {
    const fn none() -> Self {
        Self { start: AtomicU64::new(0), what: AtomicU64::new(0) }
    }

    fn set(&self, start: u64, what: u64) {
        self.start.store(start, Relaxed);
        self.what.store(what, Relaxed);
    }

    fn get(&self) -> Option<(Advice, Range<u64>)> {
        let What::Advice(advice, length) = What::from_word(self.what.load(Relaxed)) else { return None };
        let start = self.start.load(Relaxed);
        Some((advice, start..start.saturating_add(length)))
    }
}

impl Said {
    pub const fn nothing() -> Self {
        Self { order: Word::none(), wanted: Word::none() }
    }

    pub fn note(&self, advice: Advice, part: &Range<u64>) {
        let what = What::Advice(advice, part.end.saturating_sub(part.start)).to_word();
        match advice {
            Advice::Normal | Advice::Sequential | Advice::Random => self.order.set(part.start, what),
            Advice::WillNeed => self.wanted.set(part.start, what),
            Advice::DontNeed => self.forget_wanted(),
        }
    }

    pub fn forget(&self) {
        self.order.set(0, 0);
        self.forget_wanted();
    }

    /// It has been asked for by somebody else, or is not wanted any more.
    pub fn forget_wanted(&self) {
        self.wanted.set(0, 0);
    }

    /// The order first.
    pub fn all(&self) -> impl Iterator<Item = (Advice, Range<u64>)> {
        [&self.order, &self.wanted].into_iter().filter_map(Word::get)
    }
}
