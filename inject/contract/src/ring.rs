//! The news on their way from the reader to the optimizer: trips, from its signal handlers, and what the program advises.
//!
//! A bounded queue after Dmitry Vyukov's: every cell has a sequence number that says whose turn it is, so that a
//! producer costs one compare-and-swap and never waits. When it is full the news is dropped and the caller told.

use crate::atomic::{AtomicU64, Ordering::*};

/// News that fit. A sequential reader leaves one per distance: 8 GiB of reading at the default.
pub const CAPACITY: u64 = 1024;

/// One thing that happened to a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// Slot of the mapping in the segment's table.
    pub slot: u16,
    /// Generation of that slot: news of a mapping that is gone is told apart.
    pub generation: u32,
    /// File offset in bytes: of the page, or of the part.
    pub offset: u64,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One checkpoint hit, or one of the first faults.
    Trip,
    /// What the program says of so many bytes.
    Advice(Advice, u64),
}

/// madvise(2), posix_fadvise(2) and their kin, as far as they say how a file will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// No order in particular.
    Normal = 1,
    /// From lower to higher offsets.
    Sequential = 2,
    /// In no order.
    Random = 3,
    /// Soon.
    WillNeed = 4,
    /// Not soon: the program drops it from the page cache.
    DontNeed = 5,
}

impl Advice {
    const ALL: [Self; 5] = [Self::Normal, Self::Sequential, Self::Random, Self::WillNeed, Self::DontNeed];
}

impl What {
    /// In a word: the length above, the kind in the lowest bits; 0 is a trip.
    pub fn to_word(self) -> u64 {
        match self {
            Self::Trip => 0,
            Self::Advice(advice, length) => length << 3 | advice as u64,
        }
    }

    /// The same back.
    pub fn from_word(word: u64) -> Self {
        let advice = Advice::ALL.into_iter().find(|&advice| advice as u64 == word & 7);
        advice.map_or(Self::Trip, |advice| Self::Advice(advice, word >> 3))
    }
}

#[repr(C, align(32))]
struct Cell {
    sequence: AtomicU64,
    offset: AtomicU64,
    mapping: AtomicU64,
    what: AtomicU64,
}

/// Many producers (threads in signal context), one consumer (the optimizer).
///
/// A cell's `sequence` holds its index minus the turn it waits for, in such a way that zeroed memory is an empty
/// queue: the cell at position `p` is free for it when `sequence == p - p % CELLS`, filled when one higher.
#[repr(C)]
pub struct Ring<const CELLS: usize = { CAPACITY as usize }> {
    cells: [Cell; CELLS],
    head: AtomicU64,
    tail: AtomicU64,
}

/// An empty one, as zeroed memory is.
impl<const CELLS: usize> Default for Ring<CELLS> {
    fn default() -> Self {
        let word = || AtomicU64::new(0);
        let cell = |_| Cell { sequence: word(), offset: word(), mapping: word(), what: word() };
        Self { cells: core::array::from_fn(cell), head: word(), tail: word() }
    }
}

impl<const CELLS: usize> Ring<CELLS> {
    const CAPACITY: u64 = CELLS as u64;

    /// Adds news. `false`: the ring is full, and the optimizer has not looked for a long time; or so many others were
    /// faster, or what stands there makes so little sense, that no end is in sight.
    #[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
    pub fn push(&self, news: News) -> bool {
        let mut position = self.head.load(Relaxed);
        for _ in 0..Self::CAPACITY {
            let lap = position - position % Self::CAPACITY;
            let Some(cell) = self.cells.get((position % Self::CAPACITY) as usize) else { return false };
            let sequence = cell.sequence.load(Acquire);
            if sequence == lap {
                match self.head.compare_exchange(position, position.wrapping_add(1), Relaxed, Relaxed) {
                    Ok(_) => {
                        cell.offset.store(news.offset, Relaxed);
                        cell.mapping.store(u64::from(news.slot) << 32 | u64::from(news.generation), Relaxed);
                        cell.what.store(news.what.to_word(), Relaxed);
                        cell.sequence.store(lap + 1, Release);
                        return true;
                    }
                    Err(now) => position = now,
                }
            } else if sequence > lap {
                position = self.head.load(Relaxed);
            } else {
                return false;
            }
        }
        false
    }

    /// Takes the oldest. Only the optimizer calls this, from one thread.
    pub fn pop(&self) -> Option<News> {
        let position = self.tail.load(Relaxed);
        let lap = position - position % Self::CAPACITY;
        let cell = self.cells.get((position % Self::CAPACITY) as usize)?;
        if cell.sequence.load(Acquire) != lap + 1 {
            return None;
        }
        let mapping = cell.mapping.load(Relaxed);
        let (slot, generation) = ((mapping >> 32) as u16, mapping as u32);
        let what = What::from_word(cell.what.load(Relaxed));
        let news = News { slot, generation, offset: cell.offset.load(Relaxed), what };
        cell.sequence.store(lap.wrapping_add(Self::CAPACITY), Release);
        self.tail.store(position.wrapping_add(1), Relaxed);
        Some(news)
    }

    /// Whether nothing waits, nor is being added.
    pub fn is_empty(&self) -> bool {
        self.head.load(Relaxed) == self.tail.load(Relaxed)
    }

    /// Whether so much waits that the optimizer should look even though no trip triggers.
    pub fn is_filling(&self) -> bool {
        self.head.load(Relaxed).wrapping_sub(self.tail.load(Relaxed)) >= Self::CAPACITY / 2
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{boxed::Box, collections::VecDeque, thread, vec::Vec};

    /// Cells of the ring that is tried: Miri looks through all at every step.
    const TRIED: u64 = if cfg!(miri) { 16 } else { CAPACITY };

    fn empty() -> Box<Ring<{ TRIED as usize }>> {
        // SAFETY: a Ring is made of atomics alone, for which zero is a valid value (core::sync::atomic: same
        // in-memory representation as the integer).
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn news(n: u64) -> News {
        let advice = Advice::ALL.get((n % 6) as usize);
        let what = advice.map_or(What::Trip, |&advice| What::Advice(advice, (1 << 50) - n));
        News { slot: (n % 7) as u16, generation: n as u32, offset: n * 4096, what }
    }

    #[test]
    fn keeps_order_over_many_laps_and_says_when_it_is_full() {
        let ring = empty();
        let mut expected = VecDeque::new();
        for n in 0..TRIED * 5 {
            let fits = expected.len() < TRIED as usize;
            assert_eq!(ring.push(news(n)), fits);
            if fits {
                expected.push_back(news(n));
            }
            if n % 3 == 0 {
                assert_eq!(ring.pop(), expected.pop_front());
            }
        }
        while let Some(next) = expected.pop_front() {
            assert_eq!(ring.pop(), Some(next));
        }
        assert_eq!(ring.pop(), None);
    }

    #[test]
    fn producers_lose_nothing_and_keep_their_own_order() {
        let ring = empty();
        const EACH: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let seen = thread::scope(|scope| {
            for slot in 0..4u16 {
                let ring = &ring;
                scope.spawn(move || {
                    for n in 0..EACH {
                        while !ring.push(News { slot, generation: 1, offset: n, what: What::Trip }) {
                            thread::yield_now();
                        }
                    }
                });
            }
            let mut seen: [Vec<u64>; 4] = Default::default();
            while seen.iter().map(Vec::len).sum::<usize>() < 4 * EACH as usize {
                match ring.pop() {
                    Some(news) => seen[usize::from(news.slot)].push(news.offset),
                    None => thread::yield_now(),
                }
            }
            seen
        });
        for offsets in seen {
            assert!(offsets.into_iter().eq(0..EACH));
        }
    }
}
