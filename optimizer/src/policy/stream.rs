//! The readers of one mapping, told apart by where they are: each stream is one reader's pass along the plan, found at
//! its first faults.
//!
//! A new stream is **learned**: it goes in small steps, and each is seen. Records that it reads in one piece, with jumps
//! of one length between them, make a stride, forward or backward; one record without an end is sequential reading.
//! From then on it has a **course**, and is met at checkpoints alone, where it either is as expected or is learned anew.

mod learning;

use self::learning::{LONG, Learning, Step};
use super::plan::Plan;
use super::storage::{Pace, SMALLEST_DISTANCE, Storage};
use super::stride::{Place, Probe, Stride};
use super::window::{Sizing, Windows};
use precache_contract::segment::WATCHED;
use precache_contract::{PAGE, STEP};
use std::ops::Range;
use std::time::Duration;

/// How far behind a checkpoint a reader that skips may touch its first byte.
const SKIP: u64 = 1 << 20;

/// Checkpoints that a reader may miss because other threads open them.
const LEAPS: u64 = 4;

/// Streams followed at a time.
const STREAMS: usize = 32;

/// New places touched without a stream going on, after which the stream is taken to be over.
const PATIENCE: u32 = 8;

/// Trips in a row that are not where the course says, after which it is learned anew.
const MISSES: u32 = 3;

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

/// Where the handler should go by checkpoints and wake us for one stream, as file offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// Where the order of reading is known.
    pub known: Range<u64>,
    /// Where checkpoints are non-triggering.
    pub quiet: Range<u64>,
    pub is_backward: bool,
    /// Checkpoints beside the grid; `u64::MAX`: none.
    pub checkpoints: [u64; WATCHED],
}

/// How a stream goes on.
#[derive(Clone)]
enum Course {
    Unknown,
    /// All of it, one step after the other.
    Forward {
        misses: u32,
    },
    /// Record by record, and all is fetched: what lies between costs nothing.
    Dense {
        is_backward: bool,
    },
    Strided {
        stride: Stride,
        misses: u32,
        probe: Option<Probe>,
    },
}

impl Course {
    /// That of a pass from `position` on like the one that this is the course of.
    fn again_from(&self, position: u64) -> Self {
        match self.clone() {
            Self::Unknown | Self::Forward { .. } => Self::Forward { misses: 0 },
            Self::Strided { mut stride, .. } => {
                stride.restart(position);
                Self::Strided { stride, misses: 0, probe: None }
            }
            dense @ Self::Dense { .. } => dense,
        }
    }
}

struct Stream {
    id: StreamId,
    /// Where the pass began, and where it is.
    first: u64,
    last: u64,
    learning: Learning,
    course: Course,
    windows: Option<Windows>,
    pace: Pace,
    /// New places touched since it went on last.
    idle: u32,
}

impl Stream {
    fn is_backward(&self) -> bool {
        match &self.course {
            Course::Dense { is_backward } => *is_backward,
            Course::Strided { stride, .. } => stride.is_backward,
            Course::Unknown | Course::Forward { .. } => false,
        }
    }

    /// Of the bytes that it passes, those that it reads.
    fn share(&self) -> f64 {
        if let Course::Strided { stride, .. } = &self.course { stride.share() } else { 1.0 }
    }

    fn is_known(&self) -> bool {
        !matches!(self.course, Course::Unknown)
    }
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
    streams: Vec<Stream>,
    short: learning::ShortRuns,
    next_id: StreamId,
    /// Stream of the last trip.
    latest: Option<StreamId>,
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
            streams: Vec::new(),
            short: Default::default(),
            next_id: 0,
            latest: None,
            faults_before_request: None,
        }
    }

    /// What the storage has shown.
    pub fn measured(&mut self, bandwidth: f64, latency: Duration) {
        (self.storage.bandwidth, self.storage.latency) = (bandwidth.max(1.0), latency);
    }

    /// Streams for which something was requested.
    pub fn requesting(&self) -> usize {
        self.streams.iter().filter(|s| s.windows.is_some()).count()
    }

    /// Data faults that it took to know the first stream.
    pub fn faults_before_request(&self) -> Option<u32> {
        self.faults_before_request
    }

    /// Spacing of checkpoints that the streams want.
    pub fn distance(&self) -> u64 {
        self.distance
    }

    /// A reader touched the protected page at this file offset; `now` is a clock's reading.
    pub fn observe(&mut self, offset: u64, now: Duration) -> Decision {
        let Some(position) = self.plan.position(offset) else { return Decision::default() };
        let mut decision = Decision::default();
        let index = match self.stream_at(position) {
            Some(index) if self.streams[index].last == position => return decision,
            Some(index) => {
                self.go_on(index, position, &mut decision);
                index
            }
            None => {
                decision.over = self.let_others_age();
                match self.finished_pass_from(position) {
                    Some(index) => {
                        self.start_over(index, position);
                        index
                    }
                    None => {
                        let course = self.course_from(position);
                        self.begin(position, course, &mut decision.over)
                    }
                }
            }
        };
        let stream = &mut self.streams[index];
        (stream.last, stream.idle, self.latest) = (position, 0, Some(stream.id));
        let id = stream.id;
        decision.request = self.request(index, now).map(|extents| (id, extents));
        self.place_probe(index);
        decision
    }

    /// The stream that this trip carries on: the nearest behind it that was expected here, one that has shown itself to
    /// be a stream before a page that was touched once; else the one that jumps here as it jumped before.
    fn stream_at(&self, position: u64) -> Option<usize> {
        let all = || self.streams.iter().enumerate();
        let expected = all().filter(|(_, s)| self.is_expected(s, position));
        let nearest = expected.max_by_key(|(_, s)| (s.windows.is_some(), u64::MAX - s.last.abs_diff(position)));
        let jumping =
            || all().find(|(_, s)| Some(s.id) == self.latest && !s.is_known() && s.learning.predicts(position));
        nearest.or_else(jumping).map(|(index, _)| index)
    }

    /// Whether a stream's next trip may be here, ahead of its last: at its next checkpoint or shortly behind, as a
    /// reader that skips; or at a later one, if another thread opened that.
    fn is_expected(&self, stream: &Stream, position: u64) -> bool {
        let backward = stream.is_backward();
        let ahead = if backward { stream.last.checked_sub(position) } else { position.checked_sub(stream.last) };
        let Some(ahead) = ahead else { return false };
        let leaps = ahead <= LEAPS * self.distance;
        match &stream.course {
            Course::Unknown => {
                let on_grid = leaps && self.past_grid(position, self.distance) == 0;
                ahead <= STEP || on_grid || (stream.learning.has_run_long() && ahead <= SKIP)
            }
            Course::Forward { .. } | Course::Dense { is_backward: false } => {
                ahead <= self.to_checkpoint(stream) + SKIP || (leaps && self.is_checkpoint(position))
            }
            Course::Dense { is_backward: true } => {
                ahead <= self.distance + SKIP || leaps && self.is_checkpoint(position)
            }
            Course::Strided { stride, .. } => {
                let near = ahead <= LEAPS * self.distance.max(stride.period());
                near && (stride.place(position) != Place::Gap || self.is_checkpoint(position))
                    || ahead <= self.distance + 2 * stride.period()
            }
        }
    }

    /// From a stream that goes forward to its next checkpoint.
    fn to_checkpoint(&self, stream: &Stream) -> u64 {
        let grid = stream.last + self.distance - self.past_grid(stream.last, self.distance);
        let thresholds = stream.windows.iter().flat_map(|w| [w.threshold(), w.next_threshold()]);
        thresholds.filter(|&t| t > stream.last).fold(grid, u64::min).max(stream.last + STEP) - stream.last
    }

    /// Whether readers trip here whatever they read: on a grid, or at a threshold told.
    fn is_checkpoint(&self, position: u64) -> bool {
        let grid = if self.is_distance_auto { self.distance.min(SMALLEST_DISTANCE) } else { self.distance };
        let offset = self.plan.offset(position);
        let is_told =
            |t: Thresholds| t.checkpoints.iter().any(|&told| told != u64::MAX && told / PAGE == offset / PAGE);
        self.past_grid(position, grid) == 0 || self.thresholds().any(is_told)
    }

    /// How far a position lies behind the last point of the reader's grid.
    fn past_grid(&self, position: u64, grid: u64) -> u64 {
        self.plan.offset(position).abs_diff(self.origin) % grid
    }

    /// The reader has come to `position`: what that says about its course.
    fn go_on(&mut self, index: usize, position: u64, decision: &mut Decision) {
        let at_checkpoint = self.is_checkpoint(position);
        let storage = self.storage;
        let room = self.room_after(position);
        let stream = &mut self.streams[index];
        let ahead = stream.last.abs_diff(position);
        match &mut stream.course {
            Course::Unknown => match stream.learning.trip(position, room) {
                Step::Learning => {}
                Step::Sequential => {
                    if stream.windows.is_some() {
                        stream.course = Course::Forward { misses: 0 };
                    }
                }
                Step::Strided { jump, length } => {
                    let gap = jump.unsigned_abs().saturating_sub(length.end);
                    let is_dense = gap < PAGE || storage.fetches_gaps(length.end, gap);
                    stream.windows = None;
                    stream.first = position;
                    stream.course = match is_dense {
                        true => Course::Dense { is_backward: jump < 0 },
                        false => {
                            Course::Strided { stride: Stride::new(position, jump, length), misses: 0, probe: None }
                        }
                    };
                }
            },
            Course::Dense { .. } => {}
            Course::Forward { misses } => {
                let is_near = at_checkpoint || ahead <= STEP;
                *misses = if is_near { 0 } else { *misses + 1 };
                if *misses >= MISSES {
                    self.learn_anew(index, position, decision);
                }
            }
            Course::Strided { stride, misses, probe } => {
                if let Some(probe) = probe.take_if(|probe| probe.at <= position) {
                    stride.learn(&probe, position);
                }
                match stride.place(position) {
                    // Any record may be met here, at its start or not.
                    Place::Start { deviation, .. } if at_checkpoint && deviation != 0 => *misses = 0,
                    Place::Start { records, deviation } => {
                        *misses = 0;
                        if stride.meet(position, records, deviation)
                            && let Some(windows) = &stream.windows
                        {
                            let length = self.plan.length();
                            let ahead = if stride.is_backward {
                                length - windows.end().min(length)..(position + PAGE).min(length)
                            } else {
                                position..windows.end()
                            };
                            let extents = stride.extents(ahead).into_iter().flat_map(|e| self.plan.extents(e));
                            decision.repair = Some((stream.id, extents.collect()));
                        }
                    }
                    Place::Inside if at_checkpoint => *misses = 0,
                    Place::Inside => *misses += 1,
                    Place::Gap => *misses += if at_checkpoint { 2 } else { 1 },
                }
                if *misses >= MISSES {
                    self.learn_anew(index, position, decision);
                }
            }
        }
    }

    /// From a page to the end of the step that a fault there opens.
    fn room_after(&self, position: u64) -> u64 {
        STEP - self.past_grid(position, STEP)
    }

    /// The stream does not go as it went.
    fn learn_anew(&mut self, index: usize, position: u64, decision: &mut Decision) {
        let room = self.room_after(position);
        let stream = &mut self.streams[index];
        decision.over.push(stream.id);
        (stream.course, stream.windows, stream.first) = (Course::Unknown, None, position);
        stream.learning = Learning::begin(position, room, None);
    }

    /// The next window of a stream, if its reader has passed the threshold.
    fn request(&mut self, index: usize, now: Duration) -> Option<Vec<Range<u64>>> {
        let length = self.plan.length();
        let proof = self.proof(index);
        let stream = &mut self.streams[index];
        let run = stream.last.abs_diff(stream.first);
        if run >= LONG {
            self.short = Default::default();
        }
        if stream.windows.is_none() && !stream.is_known() && !stream.learning.proves(proof) {
            return None;
        }
        let (backward, share) = (stream.is_backward(), stream.share());
        // Along the plan, or against it.
        let along = |position: u64| if backward { length.saturating_sub(position + PAGE) } else { position };
        let first = stream.windows.is_none();
        let start = along(stream.last);
        let windows = stream.windows.get_or_insert_with(|| Windows::begin(self.sizing, length, start, share));
        let requested = windows.end();
        stream.pace.reach((run as f64 * share) as u64, now);
        if self.sizing.is_auto {
            let size = stream.pace.bytes_per_second().map_or(self.sizing.size, |pace| self.storage.window(pace));
            windows.resize(size, self.storage.in_transit(), share);
        }
        // A trip is a page, and a threshold may lie within it.
        let part = windows.reach(start + PAGE - 1)?;
        debug_assert_eq!(part.start, requested);
        if self.is_distance_auto
            && let Some(pace) = stream.pace.bytes_per_second()
        {
            self.distance = self.storage.distance(pace / share);
        }
        if first && self.faults_before_request.is_none() {
            self.faults_before_request = Some(stream.learning.faults());
        }
        let part = if backward { length - part.end..length - part.start } else { part };
        let pieces = match &stream.course {
            Course::Strided { stride, .. } => stride.extents(part),
            _ if backward => backward_pieces(part, self.storage.chunk),
            _ => vec![part],
        };
        Some(pieces.into_iter().flat_map(|piece| self.plan.extents(piece)).collect())
    }

    /// Bytes in a row that a stream must show before anything is fetched for it: more than others that began and did not
    /// go on.
    fn proof(&self, index: usize) -> u64 {
        let others =
            self.streams.iter().enumerate().filter(|(other, s)| *other != index && !s.is_known() && s.idle > 0);
        others.map(|(_, s)| s.learning.run()).fold(self.short.proof(), |proof, run| proof.max(2 * run)).min(LONG)
    }

    /// Where the stream's next checkpoint but one tells how long its records are.
    fn place_probe(&mut self, index: usize) {
        let stream = &self.streams[index];
        let Course::Strided { stride, probe: None, .. } = &stream.course else { return };
        // The reader is already on its way to the next one.
        let stop = stream.last + self.to_checkpoint(stream);
        let Some(probe) = stride.probe(stop) else { return };
        let thresholds = stream.windows.iter().flat_map(|w| [w.threshold(), w.next_threshold()]);
        let next_grid = probe.at + self.distance - self.past_grid(probe.at, self.distance);
        if thresholds.chain([next_grid]).any(|checkpoint| probe.is_disturbed_by(checkpoint)) {
            return;
        }
        if let Course::Strided { probe: place, .. } = &mut self.streams[index].course {
            *place = Some(probe);
        }
    }

    /// A stream that ended its pass and began where this trip is.
    fn finished_pass_from(&self, position: u64) -> Option<usize> {
        let length = self.plan.length();
        self.streams.iter().position(|stream| {
            let period = if let Course::Strided { stride, .. } = &stream.course { stride.period() } else { 0 };
            let left = if stream.is_backward() { stream.last } else { length.saturating_sub(stream.last) };
            let is_at_end = left <= 2 * self.distance.max(period);
            stream.windows.is_some() && is_at_end && stream.first.abs_diff(position) <= 2 * STEP
        })
    }

    /// The next epoch: the pattern is known.
    fn start_over(&mut self, index: usize, position: u64) {
        let stream = &mut self.streams[index];
        (stream.first, stream.windows) = (position, None);
        stream.course = stream.course.again_from(position);
        stream.pace = Pace::default();
    }

    /// How a long pass went that began where this trip is. It may still be under way, or have ended before the plan does:
    /// readers that share a file read parts of it.
    fn course_from(&self, position: u64) -> Course {
        let from_here = |s: &&Stream| {
            s.windows.is_some() && s.last.abs_diff(s.first) >= LONG && s.first.abs_diff(position) <= 2 * STEP
        };
        self.streams.iter().find(from_here).map_or(Course::Unknown, |s| s.course.again_from(position))
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
            pace,
            idle: 0,
        });
        self.streams.len() - 1
    }

    /// A new place was touched: streams that have not gone on for long are over, and show how long runs are here.
    fn let_others_age(&mut self) -> Vec<StreamId> {
        let mut over = Vec::new();
        for stream in &mut self.streams {
            stream.idle = stream.idle.saturating_add(1);
            if stream.idle == PATIENCE && stream.last.abs_diff(stream.first) < LONG {
                if stream.learning.faults() > 1 {
                    self.short.add(stream.learning.run());
                }
                over.push(stream.id);
            }
        }
        over
    }

    /// Of the streams that went on last, for the handler.
    pub fn thresholds(&self) -> impl Iterator<Item = Thresholds> {
        let mut streams: Vec<_> = self.streams.iter().filter(|s| s.windows.is_some() && s.is_known()).collect();
        streams.sort_by_key(|s| s.idle);
        streams.into_iter().filter_map(|stream| {
            let windows = stream.windows.as_ref()?;
            let length = self.plan.length();
            let is_last = windows.end() >= length;
            let told = if is_last { [u64::MAX; 2] } else { [windows.threshold(), windows.next_threshold()] };
            let probe =
                if let Course::Strided { probe: Some(probe), .. } = &stream.course { Some(probe.at) } else { None };
            // To place a probe, one must know where the reader is.
            let is_probing = matches!(&stream.course, Course::Strided { stride, .. } if stride.is_vague());
            let is_backward = stream.is_backward();
            let (known, checkpoints) = if is_backward {
                let first = self.plan.offset(stream.first.max(length.saturating_sub(windows.start()))) + STEP;
                let page = |along: u64| self.plan.offset(length.saturating_sub(along.saturating_add(PAGE)));
                let checkpoint = |along: u64| if along == u64::MAX { u64::MAX } else { page(along) };
                let low = if is_last { 0 } else { page(windows.next_end()) };
                (low..first, told.map(checkpoint))
            } else {
                let first = self.plan.offset(stream.first.min(windows.start()));
                let checkpoint = |along: u64| if along >= length { u64::MAX } else { self.plan.offset(along) };
                let high = if is_last { u64::MAX } else { self.plan.offset(windows.next_end()) };
                (first..high, told.map(checkpoint))
            };
            let quiet = match (is_last, is_backward) {
                _ if is_probing => 0..0,
                // Nothing is left to request in this pass; a trip on the other side of its last window begins the next.
                (true, true) => 0..self.plan.offset(length.saturating_sub(windows.start())),
                (true, false) => self.plan.offset(windows.start())..u64::MAX,
                // A trip that lies farther behind begins another pass.
                (false, true) => checkpoints[0] + PAGE..self.plan.offset(length.saturating_sub(windows.passed())),
                (false, false) => self.plan.offset(windows.passed())..checkpoints[0],
            };
            let probe = probe.map_or(u64::MAX, |probe| self.plan.offset(probe));
            let checkpoints = [checkpoints[0], checkpoints[1], probe];
            Some(Thresholds { known, quiet, is_backward, checkpoints }).filter(|t| t.known.start < t.known.end)
        })
    }
}

/// A part of the file as chunks, the last one first.
fn backward_pieces(part: Range<u64>, chunk: u64) -> Vec<Range<u64>> {
    let chunk = chunk.max(PAGE);
    let mut pieces = Vec::new();
    let mut end = part.end;
    while end > part.start {
        let start = ((end - 1) / chunk * chunk).max(part.start);
        pieces.push(start..end);
        end = start;
    }
    pieces
}

#[cfg(test)]
mod tests;
