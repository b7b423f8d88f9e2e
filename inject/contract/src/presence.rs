//! Which parts of a mapped file were in the page cache when their turn came: told by the optimizer, looked up by the handler.
//!
//! The file is cut into cells, and the cells into blocks. A table of fixed size holds a word for each of the blocks told
//! of last: its number, and a bit for each of its cells. What is not in the table is not known. What is may have been
//! evicted since.

use crate::STEP;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Bytes of a cell.
pub const CELL: u64 = STEP;

/// Cells of a block: a block's number and its cells share a word.
const CELLS: u64 = 32;

/// Blocks that are known at a time: 1 GiB, the longest windows of all streams.
const BLOCKS: u64 = 512;

/// One mapping's table, in file offsets. All zero: nothing is known.
#[repr(C)]
#[derive(Debug)]
pub struct Presence {
    blocks: [AtomicU64; BLOCKS as usize],
}

impl Presence {
    /// The cells that lie within this part are cached.
    pub fn add(&self, part: Range<u64>) {
        self.each_block(part.start.div_ceil(CELL)..part.end / CELL, |word, number, cells| {
            let known = if word >> 32 == number { word } else { number << 32 };
            Some(known | cells)
        });
    }

    /// Of the cells that touch this part nothing is known any more.
    pub fn remove(&self, part: Range<u64>) {
        self.each_block(part.start / CELL..part.end.div_ceil(CELL), |word, number, cells| {
            (word >> 32 == number).then_some(word & !cells)
        });
    }

    /// Up to where, from `start` on and no further than `end`, everything is cached.
    pub fn reach(&self, start: u64, end: u64) -> u64 {
        let mut cell = start / CELL;
        while cell * CELL < end && self.holds(cell) {
            cell += 1;
        }
        (cell * CELL).clamp(start, end.max(start))
    }

    /// Nothing is known any more.
    pub fn clear(&self) {
        for word in &self.blocks {
            word.store(0, Relaxed);
        }
    }

    fn holds(&self, cell: u64) -> bool {
        let (word, number) = self.word(cell / CELLS);
        let word = word.map_or(0, |word| word.load(Acquire));
        word >> 32 == number && word >> (cell % CELLS) & 1 != 0
    }

    /// The place of a block in the table, and its number there: never 0.
    fn word(&self, block: u64) -> (Option<&AtomicU64>, u64) {
        (self.blocks.get((block % BLOCKS) as usize), (block + 1) & u64::from(u32::MAX))
    }

    /// Changes the words of these cells: `change` is given a word, the number that it should have and the bits.
    fn each_block(&self, cells: Range<u64>, change: impl Fn(u64, u64, u64) -> Option<u64>) {
        let mut cell = cells.start;
        while cell < cells.end {
            let block = cell / CELLS;
            let end = cells.end.min((block + 1) * CELLS);
            let bits = ((1 << (end - cell)) - 1) << (cell % CELLS);
            if let (Some(word), number) = self.word(block) {
                // Refused, if nothing is to be changed.
                let _ = word.fetch_update(AcqRel, Relaxed, |word| change(word, number, bits));
            }
            cell = end;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;

    fn nothing() -> Box<Presence> {
        // SAFETY: made of atomics alone, for which zero is a valid value (core::sync::atomic: same in-memory
        // representation as the integer).
        unsafe { Box::new_zeroed().assume_init() }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn whole_cells_are_known() {
        let presence = nothing();
        assert_eq!(presence.reach(0, MIB), 0);
        presence.add(10..5 * MIB + 10);
        assert_eq!(presence.reach(0, MIB), 0);
        assert_eq!(presence.reach(CELL + 5, 3 * MIB), 3 * MIB);
        assert_eq!(presence.reach(CELL, 8 * MIB), 5 * MIB);
        assert_eq!(presence.reach(6 * MIB, 8 * MIB), 6 * MIB);
        presence.add(5 * MIB..6 * MIB);
        assert_eq!(presence.reach(CELL, 8 * MIB), 6 * MIB);
        presence.add(9 * MIB..9 * MIB + CELL - 1);
        assert_eq!(presence.reach(9 * MIB, 10 * MIB), 9 * MIB);
    }

    #[test]
    fn what_left_is_not_known() {
        let presence = nothing();
        presence.add(0..8 * MIB);
        presence.remove(3 * MIB + 1..3 * MIB + 2);
        assert_eq!(presence.reach(0, 8 * MIB), 3 * MIB);
        assert_eq!(presence.reach(3 * MIB + CELL, 8 * MIB), 8 * MIB);
        presence.clear();
        assert_eq!(presence.reach(0, 8 * MIB), 0);
    }

    #[test]
    fn a_place_belongs_to_the_block_told_of_last() {
        let presence = nothing();
        let far = BLOCKS * CELLS * CELL;
        presence.add(0..MIB);
        presence.add(far..far + 2 * MIB);
        assert_eq!(presence.reach(0, MIB), 0);
        assert_eq!(presence.reach(far, far + 4 * MIB), far + 2 * MIB);
        presence.remove(0..MIB);
        assert_eq!(presence.reach(far, far + 4 * MIB), far + 2 * MIB);
        let last = u64::MAX / CELL * CELL - CELL;
        presence.add(last..last + CELL);
        assert_eq!(presence.reach(last, last + CELL), last + CELL);
    }
}
