//! What the handler in the reader is told of the streams.

use super::Streams;
use super::course::{Course, Stream};
use crate::policy::window::Windows;
use precache_contract::segment::WATCHED;
use precache_contract::{PAGE, STEP};
use std::ops::Range;

/// Bytes that a reader goes by while it is of interest whether others read what it leaves out.
const WATCHED_GAPS: u64 = 64 << 20;

/// Where the handler should go by checkpoints and wake us for one stream, as file offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// Where the order of reading is known.
    pub known: Range<u64>,
    /// Where checkpoints are non-triggering.
    pub quiet: Range<u64>,
    /// Only those there that are where they were placed: a trip elsewhere says that the reader does not go on as it did. And what
    /// it leaps over stays closed, to show whether others read it.
    pub is_exact: bool,
    pub is_backward: bool,
    /// Checkpoints beside the grid; `u64::MAX`: none.
    pub checkpoints: [u64; WATCHED],
    /// Pages to which a reader comes that leaves something out or goes backward, also where it leaps over the grid.
    pub stops: Stops,
}

/// One page in a record, and each so many bytes further; 0: there are none, for nothing is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    pub at: u64,
    pub apart: u64,
    /// What it leaves out on its way to each: bytes before it, or after it for one that goes backward.
    pub before: u64,
    pub after: u64,
    /// The first page of a pass.
    pub first: u64,
}

/// Stops of each window, at least: its threshold is to be noticed in time.
const A_WINDOW: u64 = 8;

impl Streams {
    fn stops(&self, stream: &Stream) -> Option<Stops> {
        if let Course::Dense { is_backward: true, .. } = stream.course {
            return Some(Stops { first: self.plan.offset(stream.first), ..Stops::default() });
        }
        let (Course::Strided { stride, starts, is_again, .. }, Some(windows)) = (&stream.course, &stream.windows)
        else {
            return None;
        };
        if !stream.stops(self.plan.length()) {
            return None;
        }
        let window = windows.next_end() - windows.start();
        let apart = stride.apart(self.distance.min(window / A_WINDOW));
        let length = self.plan.length();
        let place = |along: u64| {
            let at = if stride.is_backward { length.saturating_sub(along.saturating_add(PAGE)) } else { along };
            if *is_again { stride.near(at, starts).stop(at) } else { stride.stop(at) }
        };
        let first = place(0);
        // Where the last window has none, those of the next pass.
        let at = Some(place(windows.start())).filter(|&at| 0 < at && at < length).unwrap_or(first);
        let offset = |at| self.plan.offset(at);
        // Elsewhere records are not as far apart in the file as they are along the way. From a window's start, for what is told at
        // each trip anew is for a while not known at all.
        let (before, after) = if stride.is_backward { (0, stride.reach()) } else { (stride.reach(), 0) };
        self.plan.is_one_piece().then(|| Stops { at: offset(at), apart, before, after, first: offset(first) })
    }

    /// The last page before the grid's next point from the end of this one on, if the reader at `from` is still to come to it:
    /// where a backward reader trips, who reads each record forward. One who trips between two points may be past what lies shortly
    /// before it in its record, and would not come to it.
    fn on_grid(&self, windows: &Windows, page: u64, from: u64) -> u64 {
        let past = (page + PAGE).saturating_sub(self.origin) % self.distance;
        let on_grid = if past == 0 { page } else { page + self.distance - past };
        // Beside short windows the grid is too coarse.
        if on_grid < from && self.distance <= windows.end() - windows.start() { on_grid } else { page }
    }

    /// The threshold of a stream that goes backward, if it has come to where it is told of it, which is before that.
    pub(super) fn told_before_threshold(&self, index: usize) -> u64 {
        let stream = &self.streams[index];
        let Some(windows) = stream.windows.as_ref().filter(|_| stream.is_backward()) else { return 0 };
        let threshold = windows.threshold();
        let page = self.plan.length().saturating_sub(threshold.saturating_add(PAGE));
        let is_there = self.plan.offset(stream.last) <= self.on_grid(windows, self.plan.offset(page), u64::MAX);
        if is_there { threshold } else { 0 }
    }

    /// Of the streams that went on last, for the handler.
    pub fn thresholds(&self) -> impl Iterator<Item = Thresholds> {
        let mut streams: Vec<_> = self.streams.iter().filter(|s| s.windows.is_some() && s.is_known()).collect();
        streams.sort_by_key(|s| s.idle);
        streams.into_iter().filter_map(|stream| {
            let windows = stream.windows.as_ref()?;
            let length = self.plan.length();
            let is_last = windows.end() >= length;
            let told = windows.thresholds();
            // Records that are not where they are fetched are noticed in time only if each checkpoint tells; and to place a
            // probe, one must know where the reader is.
            let (is_uncertain, probe) = match &stream.course {
                Course::Strided { probe, .. } => (true, probe.map(|probe| probe.at)),
                Course::Forward { misses, probe, .. } => (*misses > 0, *probe),
                Course::Unknown | Course::Dense { .. } => (false, None),
            };
            let is_exact = match &stream.course {
                Course::Forward { .. } => true,
                Course::Strided { stride, .. } => {
                    !stride.is_backward && stream.last.abs_diff(stream.first) < WATCHED_GAPS
                }
                Course::Unknown | Course::Dense { .. } => false,
            };
            let is_backward = stream.is_backward();
            let (known, checkpoints) = if is_backward {
                let first = self.plan.offset(stream.first.max(length.saturating_sub(windows.start()))) + STEP;
                let page = |along: u64| self.plan.offset(length.saturating_sub(along.saturating_add(PAGE)));
                let from = self.plan.offset(stream.last);
                let checkpoint =
                    |along: u64| if along == u64::MAX { u64::MAX } else { self.on_grid(windows, page(along), from) };
                let low = if is_last { 0 } else { page(windows.next_end()) };
                (low..first, told.map(checkpoint))
            } else {
                let first = self.plan.offset(stream.first.min(windows.start()));
                let checkpoint = |along: u64| if along >= length { u64::MAX } else { self.plan.offset(along) };
                let high = if is_last { u64::MAX } else { self.plan.offset(windows.next_end()) };
                (first..high, told.map(checkpoint))
            };
            let quiet = match (is_last, is_backward) {
                _ if is_uncertain => 0..0,
                // Nothing is left to request in this pass; a trip on the other side of its last window begins the next.
                (true, true) => 0..self.plan.offset(length.saturating_sub(windows.start())),
                (true, false) => self.plan.offset(if is_exact { stream.last } else { windows.start() })..u64::MAX,
                // A trip that lies farther behind begins another pass.
                (false, true) => checkpoints[0] + PAGE..self.plan.offset(length.saturating_sub(windows.passed())),
                (false, false) => {
                    let behind = if is_exact { stream.last } else { windows.passed() };
                    // A trip is a page, and the threshold may lie within it.
                    self.plan.offset(behind)..checkpoints[0] / PAGE * PAGE
                }
            };
            let probe = probe.map_or(u64::MAX, |probe| self.plan.offset(probe));
            let checkpoints = [checkpoints[0], checkpoints[1], probe];
            let stops = self.stops(stream).unwrap_or_default();
            Some(Thresholds { known, quiet, is_exact, is_backward, checkpoints, stops })
                .filter(|t| t.known.start < t.known.end)
        })
    }
}
