//! Where a stream trips next: whom a trip belongs to.

use super::Streams;
use super::course::{CLOSE_UP, Course, Stream};
use super::learning::LONG;
use super::thresholds::Thresholds;
use crate::policy::storage::SMALLEST_DISTANCE;
use crate::policy::stride::Place;
use precache_contract::{PAGE, REACH, STEP, STEPS};
use std::time::Duration;

/// How far behind a checkpoint a reader that skips may touch its first byte.
const SKIP: u64 = 1 << 20;

/// Checkpoints that a reader may miss because other threads open them.
const LEAPS: u64 = 4;

/// Trips that were made before a change of the spacing are heard of so shortly after it, all at once.
pub(super) const AT_ONCE: Duration = Duration::from_millis(5);

/// The first trips in small steps may have been made before the reader was told of it.
const UNTOLD: u32 = STEPS;

impl Streams {
    /// Whether a stream's next trip may be here, ahead of its last: at its next checkpoint or shortly behind, as a
    /// reader that skips; or at a later one, if another thread opened that.
    pub(super) fn is_expected(&self, stream: &Stream, position: u64) -> bool {
        let backward = stream.is_backward();
        let ahead = if backward { stream.last.checked_sub(position) } else { position.checked_sub(stream.last) };
        let Some(ahead) = ahead else { return stream.is_at(position) };
        let spacing = self.spacing(stream);
        let leaps = ahead <= LEAPS * spacing;
        match &stream.course {
            Course::Unknown => {
                let on_grid = leaps && self.close_up == 0 && self.past_grid(position, self.distance) == 0;
                ahead <= STEP
                    || on_grid
                    || leaps && self.is_untold(stream, position)
                    || (stream.learning.has_run_long() && ahead <= SKIP)
            }
            Course::Forward { .. } | Course::Dense { is_backward: false, .. } => {
                // It may not have been told of a finer grid.
                let farthest = self.to_checkpoint_on(stream, spacing);
                ahead <= farthest + stream.spread.clamp(SKIP, REACH) || (leaps && self.is_checkpoint(position))
            }
            Course::Dense { is_backward: true, .. } => {
                // There the page or the step before a point of the grid is protected.
                let is_on_grid = || [PAGE, STEP].iter().any(|width| self.is_on_any_grid(position + width));
                ahead <= spacing + SKIP || leaps && (is_on_grid() || self.is_checkpoint(position))
            }
            Course::Strided { stride, starts, is_again: true, .. } if ahead > LEAPS * spacing.max(stride.period()) => {
                // Where nothing of it was heard for a while.
                ahead <= self.leap() && stride.near(position, starts).is_exact(position)
            }
            Course::Strided { stride, .. } => {
                let near = ahead <= LEAPS * spacing.max(stride.period());
                let place = stride.place(position);
                let begins =
                    matches!(place, Place::Start { records, deviation } if stride.may_begin(records, deviation));
                // It had made trips by an earlier grid before it was told of a finer one.
                let by = |earlier: u64| {
                    ahead <= earlier + 2 * stride.period() && (begins || self.past_grid(position, earlier) == 0)
                };
                near && (place != Place::Gap || self.is_checkpoint(position))
                    || ahead <= spacing + 2 * stride.period()
                    || stream.spacings.iter().any(|&earlier| by(earlier))
            }
        }
    }

    /// At most so far are checkpoints of the grid apart ahead of a stream.
    pub(super) fn spacing(&self, stream: &Stream) -> u64 {
        let before = if self.since_change < AT_ONCE { self.before_change } else { 0 };
        stream.latest_spacings().fold(self.distance.max(before), u64::max)
    }

    /// From a stream that goes forward to its next checkpoint.
    pub(super) fn to_checkpoint(&self, stream: &Stream) -> u64 {
        self.to_checkpoint_on(stream, self.distance)
    }

    /// The same if those of its grid are so far apart.
    fn to_checkpoint_on(&self, stream: &Stream, distance: u64) -> u64 {
        let grid = stream.last + distance - self.past_grid(stream.last, distance);
        let thresholds = stream.windows.iter().flat_map(|w| [w.threshold(), w.next_threshold()]);
        thresholds.filter(|&t| t > stream.last).fold(grid, u64::min).max(stream.last + STEP) - stream.last
    }

    /// Whether readers trip here whatever they read: on a grid, or at a checkpoint told.
    pub(super) fn is_checkpoint(&self, position: u64) -> bool {
        self.is_on_any_grid(position) || self.is_told(position)
    }

    /// Whether it seems that the reader has not been told yet to go in small steps.
    pub(super) fn is_untold(&self, stream: &Stream, position: u64) -> bool {
        let is_far = stream.learning.faults() == 1 && position.saturating_sub(stream.last) > STEP;
        self.close_up > CLOSE_UP - UNTOLD && is_far && [stream.last, position].iter().all(|&at| self.is_on_any_grid(at))
    }

    /// Whether it is on the grid, or may have been on an earlier one.
    pub(super) fn is_on_any_grid(&self, position: u64) -> bool {
        let grid = if self.is_distance_auto { self.distance.min(SMALLEST_DISTANCE) } else { self.distance };
        self.past_grid(position, grid) == 0
    }

    /// Whether a stream that goes forward would trip here if it left nothing out: at a checkpoint of its grid, or one told. As
    /// long as it may not have been told of, it goes by smaller leaps.
    pub(super) fn is_in_place(&self, stream: &Stream, position: u64) -> bool {
        let grid = stream.latest_spacings().fold(self.distance, u64::min);
        let is_new = stream.last.abs_diff(stream.first) < LONG || self.since_change < AT_ONCE;
        self.past_grid(position, grid) == 0 || self.is_told(position) || is_new && self.is_checkpoint(position)
    }

    fn is_told(&self, position: u64) -> bool {
        let offset = self.plan.offset(position);
        let is_told =
            |t: Thresholds| t.checkpoints.iter().any(|&told| told != u64::MAX && told / PAGE == offset / PAGE);
        self.thresholds().any(is_told)
    }

    /// How far a position lies behind the last point of the reader's grid.
    pub(super) fn past_grid(&self, position: u64, grid: u64) -> u64 {
        self.plan.offset(position).abs_diff(self.origin) % grid
    }
}
