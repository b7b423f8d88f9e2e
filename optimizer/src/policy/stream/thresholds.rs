//! What the handler in the reader is told of the streams.

use super::Streams;
use super::course::Course;
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
}

impl Streams {
    /// Of the streams that went on last, for the handler.
    pub fn thresholds(&self) -> impl Iterator<Item = Thresholds> {
        let mut streams: Vec<_> = self.streams.iter().filter(|s| s.windows.is_some() && s.is_known()).collect();
        streams.sort_by_key(|s| s.idle);
        streams.into_iter().filter_map(|stream| {
            let windows = stream.windows.as_ref()?;
            let length = self.plan.length();
            let is_last = windows.end() >= length;
            let told = if is_last { [u64::MAX; 2] } else { [windows.threshold(), windows.next_threshold()] };
            // Records that are not where they are fetched are noticed in time only if each checkpoint tells; and to place a
            // probe, one must know where the reader is.
            let (is_uncertain, probe) = match &stream.course {
                Course::Strided { probe, .. } => (true, probe.map(|probe| probe.at)),
                Course::Forward { misses, probe } => (*misses > 0, *probe),
                Course::Unknown | Course::Dense { .. } => (false, None),
            };
            let is_exact = match &stream.course {
                Course::Forward { .. } => true,
                Course::Strided { stride, .. } => !stride.is_backward && stream.last - stream.first < WATCHED_GAPS,
                Course::Unknown | Course::Dense { .. } => false,
            };
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
            Some(Thresholds { known, quiet, is_exact, is_backward, checkpoints })
                .filter(|t| t.known.start < t.known.end)
        })
    }
}
