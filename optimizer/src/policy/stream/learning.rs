//! The first faults of a reader: what it reads in one piece, and how it jumps.

use precache_contract::{PAGE, REACH, STEP, STEPS};
use std::ops::Range;

/// Faults one after the other, each a step further, that make a stream.
const FAULTS: u32 = 3;

/// Bytes in a row that prove something whatever happened before.
pub(super) const LONG: u64 = 16 << 20;

/// Runs that were over before anything fetched for them could pay; the longest of the last few says how many bytes in
/// a row prove nothing.
#[derive(Default)]
pub struct ShortRuns {
    last: [u64; 4],
    count: usize,
}

impl ShortRuns {
    pub fn add(&mut self, length: u64) {
        self.last[self.count % 4] = length;
        self.count += 1;
    }

    /// Bytes in a row that a stream must show before anything is fetched for it.
    pub fn proof(&self) -> u64 {
        let longest = self.last.iter().copied().max().unwrap_or(0);
        (2 * longest).clamp(STEP, LONG)
    }
}

/// What a trip taught.
pub enum Step {
    /// Nothing yet.
    Learning,
    /// One record without an end.
    Sequential,
    /// Records of a length within these bounds, the last of which begins here and the one before `jump` bytes from
    /// here; the jump before that one was as long.
    Strided { jump: i64, length: Range<u64> },
}

/// A reader that is being learned.
#[derive(Clone, Debug)]
pub struct Learning {
    /// Where the record being read began.
    start: u64,
    last: u64,
    /// Faults of this record, one a step further than the other.
    faults: u32,
    /// Up to where the last fault opened.
    edge: u64,
    /// The jump to this record, 0 if there was none.
    jump: i64,
    /// Jumps before this one that were of another length.
    irregular: u32,
}

impl Learning {
    /// At the first fault of a record, which opened `room` bytes; maybe jumped to by the reader that tripped before.
    pub fn begin(position: u64, room: u64, before: Option<&Self>) -> Self {
        let before = before.filter(|before| before.start.abs_diff(position) <= REACH);
        let jump = before.map_or(0, |before| position as i64 - before.start as i64);
        let irregular = before.map_or(0, |before| before.irregular + u32::from(before.jump != 0));
        Self { start: position, last: position, faults: 1, edge: position + room, jump, irregular }
    }

    /// Whether the next record would begin here.
    pub fn predicts(&self, position: u64) -> bool {
        let tolerance = (self.jump.unsigned_abs() / 16).max(4 * PAGE);
        let next = self.start.checked_add_signed(self.jump);
        self.jump != 0 && next.is_some_and(|next| next.abs_diff(position) <= tolerance)
    }

    pub fn trip(&mut self, position: u64, room: u64) -> Step {
        if self.last <= position && (position - self.last <= STEP || !self.predicts(position)) {
            self.faults += 1;
            (self.last, self.edge) = (position, position + room);
            return if self.faults > STEPS || self.run() > 2 * u64::from(STEPS) * STEP {
                Step::Sequential
            } else {
                Step::Learning
            };
        }
        let jump = position as i64 - self.start as i64;
        let length = self.last + PAGE - self.start..self.edge - self.start;
        // After jumps of other lengths two alike may be chance.
        let is_alike = self.irregular < 3 || jump.abs_diff(self.jump) <= 4 * PAGE && self.irregular < 30;
        // Back to where the record began is not on to another.
        let is_certain = is_alike && jump.unsigned_abs() >= PAGE;
        let irregular = if is_certain { 0 } else { self.irregular.saturating_sub(1) };
        *self = Self { start: position, last: position, faults: 1, edge: position + room, jump, irregular };
        if is_certain { Step::Strided { jump, length } } else { Step::Learning }
    }

    /// Where the record being read began.
    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn faults(&self) -> u32 {
        self.faults
    }

    /// Bytes from the start of the record to the end of the step being read.
    pub fn run(&self) -> u64 {
        self.last - self.start + STEP
    }

    /// Whether the record is longer than small steps show.
    pub fn has_run_long(&self) -> bool {
        self.faults > STEPS
    }

    /// Whether so many bytes in a row have been read, and enough of them seen.
    pub fn proves(&self, proof: u64) -> bool {
        self.faults >= FAULTS && self.last - self.start >= proof
    }
}
