//! The readers of one mapping, told apart by where they are: each stream is one reader's pass along the plan, found at
//! its first faults.
//!
//! A new stream is **learned**: it goes in small steps, and each is seen. Records that it reads in one piece, with jumps
//! of one length between them, make a stride, forward or backward; one record without an end is sequential reading.
//! From then on it has a **course**, and is met at checkpoints alone, where it either is as expected or is learned anew.

mod advised;
mod course;
mod expected;
mod learning;
mod passes;
mod remembered;
mod request;
mod runs;
mod thresholds;
mod turns;

use self::advised::Advised;
use self::course::{Course, SPACINGS, Stream};
use self::expected::AT_ONCE;
use self::learning::{LONG, Learning};
use self::remembered::Remembered;
use self::runs::Runs;
pub use self::thresholds::Thresholds;
use self::turns::{MadeUp, Trail};
use super::congestion::Estimate;
use super::plan::Plan;
use super::storage::{Pace, Storage};
use super::window::Sizing;
use precache_contract::STEP;
use std::ops::Range;
use std::time::Duration;

/// Streams followed at a time.
const STREAMS: usize = 32;

/// New places touched without a stream going on, after which the stream is taken to be over.
const PATIENCE: u32 = 8;

/// Names a stream of one mapping.
pub type StreamId = u32;

/// What follows from a trip.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Extents to pre-cache, in reading order.
    pub request: Option<(StreamId, Vec<Range<u64>>)>,
    /// Extents to pre-cache instead of what is still queued for the stream: its records lie a little off.
    pub repair: Option<(StreamId, Vec<Range<u64>>)>,
    /// Streams for which nothing that is still queued is wanted.
    pub over: Vec<StreamId>,
}

/// All streams of one mapping.
pub struct Streams {
    plan: Plan,
    /// File offset from which the reader counts its checkpoints: the first protected page.
    origin: u64,
    sizing: Sizing,
    storage: Storage,
    /// Spacing of checkpoints, and whether it follows the pace.
    distance: u64,
    is_distance_auto: bool,
    /// When it changed last, how long ago that is, and what it was before, at most.
    changed: Duration,
    since_change: Duration,
    before_change: u64,
    /// A spacing that follows the pace is no larger.
    farthest: u64,
    /// Trips for which readers go in small steps: one of them does not go as it went.
    close_up: u32,
    trail: Trail,
    runs: Runs,
    streams: Vec<Stream>,
    /// The longest of those that got lost.
    remembered: Option<Remembered>,
    advised: Advised,
    short: learning::ShortRuns,
    next_id: StreamId,
    /// Stream of the last trip.
    latest: Option<StreamId>,
    /// At that trip it got a probe.
    has_new_probe: bool,
    /// Others have been made since the trip that is being observed.
    is_behind: bool,
    /// Faults of the first stream before its first request.
    faults_before_request: Option<u32>,
}

impl Streams {
    /// For a mapping whose first protected page is at `origin` in the file. All lengths are of whole pages, as the
    /// reader's are.
    pub fn new(
        plan: Plan,
        origin: u64,
        sizing: Sizing,
        distance: u64,
        is_distance_auto: bool,
        storage: Storage,
    ) -> Self {
        Self {
            plan,
            origin,
            sizing,
            storage,
            distance,
            is_distance_auto,
            changed: Duration::ZERO,
            since_change: Duration::MAX,
            before_change: distance,
            farthest: u64::MAX,
            close_up: 0,
            trail: Trail::default(),
            runs: Runs::default(),
            streams: Vec::new(),
            remembered: None,
            advised: Advised::default(),
            short: Default::default(),
            next_id: 0,
            latest: None,
            has_new_probe: false,
            is_behind: false,
            faults_before_request: None,
        }
    }

    /// What the storage has shown.
    pub fn measured(&mut self, Estimate { bandwidth, latency, in_flight }: Estimate) {
        self.storage = Storage { bandwidth: bandwidth.max(1.0), latency, in_flight, ..self.storage };
    }

    /// Windows whose size is left to us are no longer than this from now on.
    pub fn bound_windows(&mut self, longest: u64) {
        self.storage.longest_window = longest;
    }

    /// A spacing of checkpoints that follows the pace is to be no larger than this.
    pub fn keep_within(&mut self, farthest: u64) {
        if self.is_distance_auto {
            self.farthest = farthest;
            self.distance = self.distance.min(farthest);
        }
    }

    /// Streams for which something was requested.
    pub fn requesting(&self) -> usize {
        self.streams.iter().filter(|s| s.windows.is_some()).count()
    }

    /// Data faults that it took to know the first stream.
    pub fn faults_before_request(&self) -> Option<u32> {
        self.faults_before_request
    }

    /// Whether the last trip began a stream.
    pub fn has_begun(&self) -> bool {
        self.streams.iter().any(|stream| Some(stream.id) == self.latest && stream.first == stream.last)
    }

    /// Spacing of checkpoints that the streams want.
    pub fn distance(&self) -> u64 {
        if self.close_up > 0 { STEP.min(self.distance) } else { self.distance }
    }

    /// Whether later trips wait to be observed: when the next one was made is not known then.
    pub fn fall_behind(&mut self, is_behind: bool) {
        self.is_behind = is_behind;
    }

    /// A reader touched the protected page at this file offset; `now` is a clock's reading.
    pub fn observe(&mut self, offset: u64, now: Duration) -> Decision {
        let Some(mut position) = self.plan.position(offset) else { return Decision::default() };
        let mut decision = Decision::default();
        self.has_new_probe = false;
        self.since_change = now.saturating_sub(self.changed);
        self.close_up = self.close_up.saturating_sub(1);
        let mut was_unknown = false;
        // Where a pass over records begins again, something that is not known has been before, too.
        let begins_again =
            || self.finished_pass_from(position).is_some_and(|finished| self.streams[finished].period() > 0);
        let expecting = self.stream_at(position).filter(|&at| self.streams[at].is_known() || !begins_again());
        if expecting.is_some_and(|index| self.streams[index].is_at(position)) {
            return decision;
        }
        let is_made_up = self.make_up(position, expecting, &mut decision);
        let mut index = match expecting {
            Some(index) if is_made_up && !self.streams[index].is_known() => return decision,
            Some(index) => {
                was_unknown = !self.streams[index].is_known();
                self.go_on(index, position, &mut decision);
                self.note_run(index, position, was_unknown);
                index
            }
            None if is_made_up => return decision,
            None => {
                decision.over = self.let_others_age();
                match self.finished_pass_from(position) {
                    Some(index) => {
                        self.start_over(index, position);
                        index
                    }
                    None => {
                        let course = match self.course_from(position) {
                            Course::Unknown => match self.course_by_runs(position) {
                                Course::Unknown => self.course_by_word(position),
                                known => known,
                            },
                            known => known,
                        };
                        self.begin(position, course, &mut decision.over)
                    }
                }
            }
        };
        self.take_up(index, position);
        self.trail.push(position);
        let seems_to_skip = was_unknown && matches!(self.streams[index].course, Course::Strided { .. });
        if was_unknown
            && !self.advised.is_random(offset)
            && let Some(covered) = self.trail.covered(position, seems_to_skip)
        {
            position = covered.end - STEP;
            index = self.read_in_turns(index, covered, &mut decision);
        }
        let stream = &mut self.streams[index];
        (stream.last, stream.idle, self.latest) = (position, 0, Some(stream.id));
        stream.spacings.rotate_right(1);
        stream.spacings[0] = self.distance;
        let id = stream.id;
        let distance = self.distance;
        decision.request = self.request(index, now).map(|extents| (id, extents));
        if self.distance != distance {
            let before = if self.since_change < AT_ONCE { self.before_change } else { 0 };
            (self.changed, self.before_change) = (now, before.max(distance));
        }
        self.place_probe(index);
        decision
    }

    /// What was to be told after the last trip was told when the reader had tripped again already.
    pub fn told_late(&mut self) {
        let latest = self.streams.iter_mut().find(|stream| self.has_new_probe && Some(stream.id) == self.latest);
        if let Some(Course::Strided { probe: Some(probe), .. }) = latest.map(|stream| &mut stream.course) {
            probe.is_late = true;
        }
    }

    /// The stream that this trip carries on: the nearest behind it that was expected here, one that has shown itself to
    /// be a stream before a page that was touched once; else the one that jumps here as it jumped before.
    fn stream_at(&self, position: u64) -> Option<usize> {
        let all = || self.streams.iter().enumerate();
        let expected = all().filter(|(_, s)| self.is_expected(s, position));
        let nearest = expected.max_by_key(|(_, s)| {
            let distance = s.last.abs_diff(position);
            (s.is_known() || distance <= STEP, s.windows.is_some(), u64::MAX - distance)
        });
        let jumping =
            || all().find(|(_, s)| Some(s.id) == self.latest && !s.is_known() && s.learning.predicts(position));
        nearest.or_else(jumping).map(|(index, _)| index)
    }

    fn begin(&mut self, position: u64, course: Course, over: &mut Vec<StreamId>) -> usize {
        let room = self.room_after(position);
        let latest = self.streams.iter().find(|s| Some(s.id) == self.latest && !s.is_known());
        let learning = Learning::begin(position, room, latest.map(|s| &s.learning));
        if self.streams.len() == STREAMS {
            let oldest = (0..STREAMS).max_by_key(|&i| self.streams[i].idle).unwrap_or(0);
            over.push(self.streams.swap_remove(oldest).id);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let pace = Pace::default();
        self.streams.push(Stream {
            id,
            first: position,
            last: position,
            learning,
            course,
            windows: None,
            spread: 0,
            made_up: MadeUp::default(),
            pace,
            spacings: [self.distance; SPACINGS],
            idle: 0,
        });
        self.streams.len() - 1
    }

    /// A new place was touched: streams that have not gone on for long are over, and show how long runs are here.
    fn let_others_age(&mut self) -> Vec<StreamId> {
        let mut over = Vec::new();
        for index in 0..self.streams.len() {
            let idle = self.streams[index].idle.saturating_add(1);
            if idle == 1 {
                self.remember(index);
            }
            let stream = &mut self.streams[index];
            stream.idle = idle;
            if stream.idle == PATIENCE && stream.is_again() {
                // Who reads in no order comes to its stops, too.
                stream.forget(stream.last, STEP);
                over.push(stream.id);
            } else if stream.idle == PATIENCE && stream.last.abs_diff(stream.first) < LONG {
                if stream.learning.faults() > 1 {
                    self.short.add(stream.learning.run());
                }
                over.push(stream.id);
            }
        }
        over
    }
}

#[cfg(test)]
mod tests;
