//! The trips on their way from the reader's signal handlers to the optimizer.
//!
//! A bounded queue after Dmitry Vyukov's: every cell has a sequence number that says whose turn it is, so that a
//! producer costs one compare-and-swap and never waits. When it is full the trip is dropped and the caller told.

use crate::atomic::{AtomicU64, Ordering::*};

/// Trips that fit. A sequential reader leaves one per distance: 8 GiB of reading at the default.
pub const CAPACITY: u64 = 1024;

/// One checkpoint hit, or one of the first faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Slot of the mapping in the segment's table.
    pub slot: u16,
    /// Generation of that slot: a trip of a mapping that is gone is told apart.
    pub generation: u32,
    /// File offset of the page, in bytes.
    pub offset: u64,
}

#[repr(C)]
struct Cell {
    sequence: AtomicU64,
    offset: AtomicU64,
    mapping: AtomicU64,
}

/// Many producers (threads in signal context), one consumer (the optimizer).
///
/// A cell's `sequence` holds its index minus the turn it waits for, in such a way that zeroed memory is an empty
/// queue: the cell at position `p` is free for it when `sequence == p - p % CELLS`, filled when one higher.
#[repr(C)]
pub struct Ring<const CELLS: usize = { CAPACITY as usize }> {
    head: AtomicU64,
    tail: AtomicU64,
    cells: [Cell; CELLS],
}

/// An empty one, as zeroed memory is.
impl<const CELLS: usize> Default for Ring<CELLS> {
    fn default() -> Self {
        let word = || AtomicU64::new(0);
        let cell = |_| Cell { sequence: word(), offset: word(), mapping: word() };
        Self { head: word(), tail: word(), cells: core::array::from_fn(cell) }
    }
}

impl<const CELLS: usize> Ring<CELLS> {
    const CAPACITY: u64 = CELLS as u64;

    /// Adds a trip. `false`: the ring is full, and the optimizer has not looked for a long time; or so many others were
    /// faster, or what stands there makes so little sense, that no end is in sight.
    pub fn push(&self, trip: Trip) -> bool {
        let mut position = self.head.load(Relaxed);
        for _ in 0..Self::CAPACITY {
            let lap = position - position % Self::CAPACITY;
            let Some(cell) = self.cells.get((position % Self::CAPACITY) as usize) else { return false };
            let sequence = cell.sequence.load(Acquire);
            if sequence == lap {
                match self.head.compare_exchange_weak(position, position + 1, Relaxed, Relaxed) {
                    Ok(_) => {
                        cell.offset.store(trip.offset, Relaxed);
                        cell.mapping.store(u64::from(trip.slot) << 32 | u64::from(trip.generation), Relaxed);
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

    /// Takes the oldest trip. Only the optimizer calls this, from one thread.
    pub fn pop(&self) -> Option<Trip> {
        let position = self.tail.load(Relaxed);
        let lap = position - position % Self::CAPACITY;
        let cell = self.cells.get((position % Self::CAPACITY) as usize)?;
        if cell.sequence.load(Acquire) != lap + 1 {
            return None;
        }
        let mapping = cell.mapping.load(Relaxed);
        let trip = Trip { slot: (mapping >> 32) as u16, generation: mapping as u32, offset: cell.offset.load(Relaxed) };
        cell.sequence.store(lap.wrapping_add(Self::CAPACITY), Release);
        self.tail.store(position.wrapping_add(1), Relaxed);
        Some(trip)
    }

    /// Whether so many trips wait that the optimizer should look even though none of them triggers.
    pub fn is_filling(&self) -> bool {
        self.head.load(Relaxed).wrapping_sub(self.tail.load(Relaxed)) >= Self::CAPACITY / 2
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{boxed::Box, collections::VecDeque, thread, vec::Vec};

    fn empty() -> Box<Ring> {
        // SAFETY: a Ring is made of atomics alone, for which zero is a valid value (core::sync::atomic: same
        // in-memory representation as the integer).
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn trip(n: u64) -> Trip {
        Trip { slot: (n % 7) as u16, generation: n as u32, offset: n * 4096 }
    }

    #[test]
    fn keeps_order_over_many_laps_and_says_when_it_is_full() {
        let ring = empty();
        let mut expected = VecDeque::new();
        for n in 0..CAPACITY * 5 {
            let fits = expected.len() < CAPACITY as usize;
            assert_eq!(ring.push(trip(n)), fits);
            if fits {
                expected.push_back(trip(n));
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
        const EACH: u64 = 20_000;
        let seen = thread::scope(|scope| {
            for slot in 0..4u16 {
                let ring = &ring;
                scope.spawn(move || {
                    for n in 0..EACH {
                        while !ring.push(Trip { slot, generation: 1, offset: n }) {
                            thread::yield_now();
                        }
                    }
                });
            }
            let mut seen: [Vec<u64>; 4] = Default::default();
            while seen.iter().map(Vec::len).sum::<usize>() < 4 * EACH as usize {
                match ring.pop() {
                    Some(trip) => seen[usize::from(trip.slot)].push(trip.offset),
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
