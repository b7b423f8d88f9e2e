//! The readers of one mapping, told apart by where they are: each stream is one reader's sequential pass along the
//! plan, found at its first faults.

use super::plan::Plan;
use super::window::{Sizing, Windows};
use precache_contract::{PAGE, STEP};
use std::ops::Range;

/// Faults one after the other, each a step further, that make a stream.
const FAULTS: u32 = 3;

/// How far behind a checkpoint a reader that skips may touch its first byte.
const SKIP: u64 = 1 << 20;

/// Checkpoints that a reader may miss because other threads open them.
const LEAPS: u64 = 4;

/// Streams followed at a time.
const STREAMS: usize = 32;

/// Bytes in a row after which earlier short runs are forgotten: access is sequential after all.
const LONG: u64 = 16 << 20;

/// New places touched without a stream going on, after which the stream is taken to be over.
const PATIENCE: u32 = 8;

/// Runs that were over before anything fetched for them could pay; the longest of the last few says how many bytes in
/// a row prove nothing.
#[derive(Default)]
struct ShortRuns {
    last: [u64; 4],
    count: usize,
}

impl ShortRuns {
    fn add(&mut self, length: u64) {
        self.last[self.count % 4] = length;
        self.count += 1;
    }

    /// Bytes in a row that a stream must show before anything is fetched for it.
    fn proof(&self) -> u64 {
        let longest = self.last.iter().copied().max().unwrap_or(0);
        (2 * longest).clamp(STEP, LONG)
    }
}

/// Names a stream of one mapping.
pub type StreamId = u32;

/// What follows from a trip.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Extents to pre-cache, in reading order.
    pub request: Option<(StreamId, Vec<Range<u64>>)>,
    /// Streams that are over: what is still queued for them is not wanted.
    pub over: Vec<StreamId>,
}

/// Where the handler should wake us for one stream, as file offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// Between this and `threshold` checkpoints are non-triggering.
    pub from: u64,
    pub threshold: u64,
    pub next_threshold: u64,
}

struct Stream {
    id: StreamId,
    first: u64,
    last: u64,
    faults: u32,
    windows: Option<Windows>,
    /// New places touched since it went on last.
    idle: u32,
}

/// All streams of one mapping.
pub struct Streams {
    plan: Plan,
    sizing: Sizing,
    distance: u64,
    streams: Vec<Stream>,
    short: ShortRuns,
    next_id: StreamId,
    /// Faults of the first stream before its first request.
    faults_before_request: Option<u32>,
}

impl Streams {
    pub fn new(plan: Plan, sizing: Sizing, distance: u64) -> Self {
        Self {
            plan,
            sizing,
            distance,
            streams: Vec::new(),
            short: ShortRuns::default(),
            next_id: 0,
            faults_before_request: None,
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

    /// A reader touched the protected page at this file offset.
    pub fn observe(&mut self, offset: u64) -> Decision {
        let Some(position) = self.plan.position(offset) else { return Decision::default() };
        if let Some(index) = self.stream_at(position) {
            return self.advance(index, position);
        }
        let mut decision = Decision { request: None, over: self.let_others_age() };
        let index = match self.finished_pass_from(position) {
            Some(index) => {
                let stream = &mut self.streams[index];
                // The next epoch: the pattern is known.
                (stream.first, stream.last, stream.faults, stream.windows) = (position, position, FAULTS, None);
                decision.request = self.request(index);
                index
            }
            None => self.begin(position, &mut decision.over),
        };
        self.streams[index].idle = 0;
        decision
    }

    /// The stream that this trip carries on: the nearest behind it that was expected here, one that has shown itself to be
    /// a stream before a page that was touched once.
    fn stream_at(&self, position: u64) -> Option<usize> {
        let candidates = self.streams.iter().enumerate();
        let expected = candidates.filter(|(_, s)| s.last <= position && self.is_expected(s, position));
        expected.max_by_key(|(_, s)| (s.windows.is_some(), s.last)).map(|(index, _)| index)
    }

    /// Whether a stream's next trip may be at this position, ahead of its last: at its next checkpoint or shortly
    /// behind, as a reader that skips; or at a later one, if another thread opened that.
    fn is_expected(&self, stream: &Stream, position: u64) -> bool {
        let on_grid = position.is_multiple_of(self.distance) && position <= stream.last + LEAPS * self.distance;
        if stream.faults < FAULTS {
            return position <= stream.last + 2 * STEP || on_grid;
        }
        let grid = (stream.last / self.distance + 1) * self.distance;
        let thresholds = stream.windows.iter().flat_map(|w| [w.threshold(), w.next_threshold()]);
        let next = thresholds.filter(|&t| t > stream.last).fold(grid, u64::min).max(stream.last + STEP);
        position <= next + SKIP || on_grid
    }

    fn advance(&mut self, index: usize, position: u64) -> Decision {
        let proof = self.short.proof();
        let stream = &mut self.streams[index];
        if stream.last == position {
            return Decision::default();
        }
        stream.last = position;
        stream.faults += 1;
        stream.idle = 0;
        let run = position - stream.first;
        if run >= LONG {
            self.short = ShortRuns::default();
        }
        let known = stream.windows.is_some() || (stream.faults >= FAULTS && run >= proof);
        Decision { request: if known { self.request(index) } else { None }, over: Vec::new() }
    }

    /// The next window of a stream, if its reader has passed the threshold.
    fn request(&mut self, index: usize) -> Option<(StreamId, Vec<Range<u64>>)> {
        let stream = &mut self.streams[index];
        let first = stream.windows.is_none();
        let start = || Windows::begin(self.sizing, self.plan.length(), stream.last);
        // A trip is a page, and a threshold may lie within it.
        let positions = stream.windows.get_or_insert_with(start).reach(stream.last + PAGE - 1)?;
        if first && self.faults_before_request.is_none() {
            self.faults_before_request = Some(stream.faults);
        }
        Some((stream.id, self.plan.extents(positions)))
    }

    /// A stream that ended its pass and began where this trip is.
    fn finished_pass_from(&self, position: u64) -> Option<usize> {
        let end = self.plan.length().saturating_sub(2 * self.distance);
        self.streams.iter().position(|stream| {
            stream.windows.is_some() && stream.last >= end && stream.first.abs_diff(position) <= 2 * STEP
        })
    }

    fn begin(&mut self, position: u64, over: &mut Vec<StreamId>) -> usize {
        if self.streams.len() == STREAMS {
            let oldest = (0..STREAMS).max_by_key(|&i| self.streams[i].idle).unwrap_or(0);
            over.push(self.streams.swap_remove(oldest).id);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.streams.push(Stream { id, first: position, last: position, faults: 1, windows: None, idle: 0 });
        self.streams.len() - 1
    }

    /// A new place was touched: streams that have not gone on for long are over, and show how long runs are here.
    fn let_others_age(&mut self) -> Vec<StreamId> {
        let mut over = Vec::new();
        for stream in &mut self.streams {
            stream.idle = stream.idle.saturating_add(1);
            if stream.idle == PATIENCE && stream.last - stream.first < LONG {
                if stream.faults > 1 {
                    self.short.add(stream.last - stream.first + STEP);
                }
                over.push(stream.id);
            }
        }
        over
    }

    /// Of the streams that went on last, for the handler.
    pub fn thresholds(&self) -> impl Iterator<Item = Thresholds> {
        let mut streams: Vec<_> = self.streams.iter().filter(|s| s.windows.is_some()).collect();
        streams.sort_by_key(|s| s.idle);
        streams.into_iter().filter_map(|stream| {
            let windows = stream.windows.as_ref()?;
            let from = self.plan.offset(stream.first.min(windows.start()));
            if windows.end() >= self.plan.length() {
                // Nothing is left to request in this pass; a trip before its last window begins the next one.
                let from = self.plan.offset(windows.start());
                return Some(Thresholds { from, threshold: u64::MAX, next_threshold: 0 });
            }
            let threshold = self.plan.offset(windows.threshold());
            let next_threshold = self.plan.offset(windows.next_threshold());
            Some(Thresholds { from, threshold, next_threshold }).filter(|t| t.from <= t.threshold)
        })
    }
}

#[cfg(test)]
mod tests;
