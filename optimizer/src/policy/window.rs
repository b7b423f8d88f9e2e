//! The windows of one pass along a plan (the paper's section 3.2): each is requested as a whole, the next begins at the
//! end of the current one, and is requested when the reader passes the pre-cache threshold.
//!
//! ```text
//!   position   |<------------ current window ------------>|<---- next window ---->|
//!              start             threshold (75 %)         end
//!   checkpoints      .     .     .     T     .             .
//!                 non-triggering       triggering: requests the next window
//! ```

use std::ops::Range;

/// A first window of this many bytes tests whether the reader goes on; each later one is [`GROWTH`] times as long,
/// up to the size.
const FIRST: u64 = 1 << 20;
const GROWTH: u64 = 4;

/// Windows that a reader may leap over before they become longer: whoever says that it went through the whole file at once
/// is not followed through millions of them.
const LEAP: u64 = 1024;

/// Percent of the windows before those of full size after which the next is due: they end too soon for more.
const EARLY: u8 = 50;

/// Sizes of windows, and when the next is due.
#[derive(Clone, Copy, Debug)]
pub struct Sizing {
    /// Bytes pre-cached per trigger.
    pub size: u64,
    /// The size follows the reader's pace and the storage.
    pub is_auto: bool,
    /// Percent of the window after which the next checkpoint triggers, 1 to 99.
    pub threshold: u8,
}

/// The windows of one pass.
#[derive(Clone, Debug)]
pub struct Windows {
    sizing: Sizing,
    /// Length of the plan in bytes.
    length: u64,
    current: Range<u64>,
    /// Start of the window before the current one: the reader has passed it.
    passed: u64,
    /// Length of the next window, unless the plan ends before.
    next: u64,
    /// The current window is one of those before the first of full size.
    is_growing: bool,
}

impl Windows {
    /// Before any request; the first window will begin at `position`. Of the bytes of the plan `share` are read, and
    /// sizes count these.
    pub fn begin(sizing: Sizing, length: u64, position: u64, share: f64) -> Self {
        let start = position.min(length);
        let size = stretch(sizing.size, share);
        let next = stretch(FIRST, share).min(size);
        Self { sizing: Sizing { size, ..sizing }, length, current: start..start, passed: start, next, is_growing: true }
    }

    /// The first window will be of so many bytes, if not of full size.
    pub fn at_least(self, first: u64) -> Self {
        Self { next: self.next.max(first).min(self.sizing.size), ..self }
    }

    /// Windows will be of this size; the second one at least so long that what is `in_transit` is covered.
    pub fn resize(&mut self, size: u64, in_transit: u64, share: f64) {
        self.sizing.size = stretch(size, share);
        let second = if self.current.end > self.current.start { stretch(2 * in_transit, share) } else { 0 };
        self.next = self.next.max(second).min(self.sizing.size);
    }

    /// The reader is at `position`: what to request now, if anything. The answers of one pass lie end to end.
    pub fn reach(&mut self, position: u64) -> Option<Range<u64>> {
        let start = self.current.end;
        while position >= self.threshold() && self.current.end < self.length {
            self.passed = self.current.start;
            let length = self.next.max(position.saturating_sub(self.current.end) / LEAP);
            self.current = self.current.end..self.current.end.saturating_add(length).min(self.length);
            self.is_growing = self.next < self.sizing.size;
            self.next = self.next.saturating_mul(GROWTH).min(self.sizing.size);
        }
        (self.current.end > start).then_some(start..self.current.end)
    }

    /// Position from which the next checkpoint is a triggering one.
    pub fn threshold(&self) -> u64 {
        self.point_in(&self.current, self.is_growing)
    }

    /// The same for the window after the current one.
    pub fn next_threshold(&self) -> u64 {
        self.point_in(&(self.current.end..self.next_end()), self.next < self.sizing.size)
    }

    /// Both; `u64::MAX`: of the last window nothing follows.
    pub fn thresholds(&self) -> [u64; 2] {
        if self.current.end < self.length { [self.threshold(), self.next_threshold()] } else { [u64::MAX; 2] }
    }

    /// Up to where the next request will reach.
    pub fn next_end(&self) -> u64 {
        self.current.end.saturating_add(self.next)
    }

    /// Up to where has been requested.
    pub fn end(&self) -> u64 {
        self.current.end
    }

    pub fn start(&self) -> u64 {
        self.current.start
    }

    /// A position that the reader has passed, not far behind it.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    fn point_in(&self, window: &Range<u64>, is_growing: bool) -> u64 {
        let percent = if is_growing { self.sizing.threshold.min(EARLY) } else { self.sizing.threshold };
        let length = u128::from(window.end - window.start);
        window.start + (length * u128::from(percent) / 100) as u64
    }
}

/// Bytes of the plan that hold so many bytes that are read.
fn stretch(bytes: u64, share: f64) -> u64 {
    (bytes as f64 / share.clamp(1e-3, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No byte is requested twice, none is skipped, whatever distance, size and threshold, and however far the
        /// reader gets between two checkpoints.
        #[test]
        fn requests_lie_end_to_end(
            size in 1u64..200 << 20, threshold in 1u8..100, distance in 4096u64..64 << 20,
            length in 1u64..4 << 30, begin in 0u64..1 << 30,
        ) {
            let begin = begin.min(length - 1);
            let mut windows = Windows::begin(Sizing { size, is_auto: false, threshold }, length, begin, 1.0);
            let mut requested = begin;
            let mut position = begin;
            while position < length {
                if let Some(request) = windows.reach(position) {
                    prop_assert_eq!(request.start, requested);
                    requested = request.end;
                }
                prop_assert!(windows.threshold() > position || requested == length);
                position += distance;
            }
            // The last checkpoint of a pass may lie before the last threshold by less than a distance.
            prop_assert!(requested == length || windows.threshold() + distance > length.min(position));
        }

        /// With checkpoints at every distance and at every threshold, the reader never leaves what was requested.
        #[test]
        fn the_reader_stays_inside(size in 4096u64..64 << 20, threshold in 1u8..100, distance in 4096u64..64 << 20) {
            let distance = distance.min(size);
            let length = 20 * size + 12345;
            let mut windows = Windows::begin(Sizing { size, is_auto: false, threshold }, length, 0, 1.0);
            let mut position = 0;
            while position < length {
                windows.reach(position);
                prop_assert!(windows.end() > position);
                let grid = (position / distance + 1) * distance;
                position = [windows.threshold(), windows.next_threshold(), grid].into_iter().filter(|&p| p > position).min().unwrap_or(grid);
            }
            prop_assert_eq!(windows.end(), length);
        }
    }

    #[test]
    fn sizes_grow_to_the_size_asked_for() {
        let mut windows = Windows::begin(Sizing { size: 50 << 20, is_auto: false, threshold: 75 }, 1 << 30, 0, 1.0);
        let mut ends = Vec::new();
        for _ in 0..6 {
            let request = windows.reach(windows.threshold()).unwrap();
            ends.push((request.end - request.start) >> 20);
        }
        assert_eq!(ends, [1, 4, 16, 50, 50, 50]);
    }
}
