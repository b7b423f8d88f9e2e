//! Where a pass begins that goes as one before it went.

use super::Streams;
use super::course::{Course, Stream};
use super::learning::LONG;
use crate::policy::storage::Pace;
use crate::policy::stride::Place;
use precache_contract::STEP;

/// Records after which a stride is known, and one more that may be of another kind.
const RECORDS: u64 = 4;

/// The part of a pass after which it was known, at the latest.
const LATE: u64 = 64;

impl Streams {
    /// A stream that ended its pass and began where this trip is: of several, one whose records lie here,
    /// and that which read most.
    pub(super) fn finished_pass_from(&self, position: u64) -> Option<usize> {
        let length = self.plan.length();
        let is_over = |stream: &Stream| {
            let period = stream.period();
            let left = if stream.is_backward() { stream.last } else { length.saturating_sub(stream.last) };
            let is_at_end = left <= 2 * self.spacing(stream).max(period);
            // Records that only seem to have an order do not do so for half of a file.
            let is_pass = period == 0 || stream.last.abs_diff(stream.first) >= length / 2;
            // It was not known before it had read a few records, and was heard of late.
            let before = (RECORDS * period).max(stream.last.abs_diff(stream.first) / LATE);
            let is_near = stream.first.abs_diff(position) <= 2 * STEP + if period > 0 { before } else { 0 };
            stream.windows.is_some() && is_at_end && is_pass && is_near
        };
        let over = self.streams.iter().enumerate().filter(|(_, stream)| is_over(stream));
        let fits = |stream: &Stream| match &stream.course {
            Course::Strided { stride, .. } => stride.place(position) != Place::Gap,
            _ => stream.is_known(),
        };
        over.max_by_key(|(_, stream)| (fits(stream), stream.last.abs_diff(stream.first))).map(|(index, _)| index)
    }

    /// The next epoch: the pattern is known.
    pub(super) fn start_over(&mut self, index: usize, position: u64) {
        let stream = &mut self.streams[index];
        (stream.first, stream.windows) = (position, None);
        stream.course = stream.course.again_from(position);
        stream.pace = Pace::default();
    }

    /// How a long pass went that began where this trip is. It may still be under way, or have ended before the plan does:
    /// readers that share a file read parts of it.
    pub(super) fn course_from(&self, position: u64) -> Course {
        let from_here = |s: &&Stream| {
            s.windows.is_some() && s.last.abs_diff(s.first) >= LONG && s.first.abs_diff(position) <= 2 * STEP
        };
        self.streams.iter().find(from_here).map_or(Course::Unknown, |s| s.course.again_from(position))
    }
}
