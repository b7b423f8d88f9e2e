//! What is requested for a stream, and when.

use super::Streams;
use super::course::Course;
use super::learning::LONG;
use crate::policy::stride::Probe;
use crate::policy::window::Windows;
use precache_contract::{PAGE, STEP};
use std::ops::Range;
use std::time::Duration;

impl Streams {
    /// The next window of a stream, if its reader has passed the threshold.
    pub(super) fn request(&mut self, index: usize, now: Duration) -> Option<Vec<Range<u64>>> {
        let length = self.plan.length();
        let proof = self.proof(index);
        let is_random = |position| self.advised.is_random(self.plan.offset(position));
        let (may_be_random, has_shown_itself) =
            (is_random(self.streams[index].last), is_random(self.streams[index].first));
        let told = self.told_before_threshold(index);
        let stream = &mut self.streams[index];
        let run = stream.last.abs_diff(stream.first);
        if run >= LONG {
            self.short = Default::default();
        }
        if stream.windows.is_none() && !stream.is_known() && (may_be_random || !stream.learning.proves(proof)) {
            return None;
        }
        let (backward, share) = (stream.is_backward(), stream.share());
        // Along the plan, or against it.
        let along = |position: u64| if backward { length.saturating_sub(position + PAGE) } else { position };
        let first = stream.windows.is_none();
        let start = along(stream.last);
        let windows = stream.windows.get_or_insert_with(|| Windows::begin(self.sizing, length, start, share));
        let requested = windows.end();
        stream.pace.reach((run as f64 * share) as u64, now, self.is_behind);
        if self.sizing.is_auto {
            let size = stream.pace.bytes_per_second().map_or(self.sizing.size, |pace| self.storage.window(pace));
            windows.resize(size, self.storage.in_transit(), share);
        }
        // A trip is a page, and a threshold may lie within it.
        let part = windows.reach((start + PAGE - 1).max(told))?;
        debug_assert_eq!(part.start, requested);
        if self.is_distance_auto
            && let Some(pace) = stream.pace.bytes_per_second()
        {
            self.distance = self.storage.distance(pace / share).min(self.farthest);
        }
        if first && self.faults_before_request.is_none() {
            self.faults_before_request = Some(stream.learning.faults());
        }
        let part = if backward { length - part.end..length - part.start } else { part };
        let pieces = match &mut stream.course {
            Course::Strided { stride, starts, asked, is_again: true, .. } => {
                let first = if backward { part.end } else { part.start };
                asked.extents(&stride.near(first, starts), part)
            }
            Course::Strided { stride, asked, .. } => asked.extents(stride, part),
            _ if backward => backward_pieces(part, self.storage.chunk),
            _ => vec![part],
        };
        let extents = pieces.into_iter().flat_map(|piece| self.plan.extents(piece)).collect();
        Some(if has_shown_itself { extents } else { self.advised.ordered(extents) })
    }

    /// Bytes in a row that a stream must show before anything is fetched for it: more than others that began and did not
    /// go on.
    fn proof(&self, index: usize) -> u64 {
        let others =
            self.streams.iter().enumerate().filter(|(other, s)| *other != index && !s.is_known() && s.idle > 0);
        others.map(|(_, s)| s.learning.run()).fold(self.short.proof(), |proof, run| proof.max(2 * run)).min(LONG)
    }

    /// Where the stream's next checkpoint but one tells how long its records are, or whether it has begun to leave something
    /// out, or to leave nothing out. The reader is already on its way to the next one.
    pub(super) fn place_probe(&mut self, index: usize) {
        let stream = &self.streams[index];
        let stop = stream.last + self.to_checkpoint(stream);
        match &stream.course {
            Course::Forward { probe, .. } if probe.is_none_or(|probe| probe <= stream.last) => {
                let next = self.between_checkpoints(stop);
                if let Course::Forward { probe, .. } = &mut self.streams[index].course {
                    *probe = next;
                }
            }
            Course::Strided { stride, probe: None, .. } => {
                let thresholds = stream.windows.iter().flat_map(|w| [w.threshold(), w.next_threshold()]);
                let is_disturbed = |probe: &Probe| {
                    let next_grid = probe.at + self.distance - self.past_grid(probe.at, self.distance);
                    thresholds.chain([next_grid]).any(|checkpoint| probe.is_disturbed_by(checkpoint))
                };
                let length = stride.probe(stop).filter(|probe| !is_disturbed(probe));
                // Records that begin where checkpoints do never tell how long they are, and of small ones that matters little.
                let is_known = !stride.is_vague() || stride.longest() <= STEP;
                let next = length.or_else(|| stride.probe_gap(stop).filter(|_| is_known));
                if let Course::Strided { probe, .. } = &mut self.streams[index].course {
                    *probe = next;
                    self.has_new_probe = true;
                }
            }
            _ => {}
        }
    }

    /// A place behind `stop` between two checkpoints of the grid, at another share of the way each time: a reader whose records
    /// begin on the grid does not trip here.
    fn between_checkpoints(&self, stop: u64) -> Option<u64> {
        let grid = |from: u64| from + self.distance - self.past_grid(from, self.distance);
        let place = |from: u64| {
            let pages = (grid(from) - from).checked_sub(2 * STEP)? / PAGE;
            // Multiples of the golden ratio are spread evenly (Knuth, The Art of Computer Programming 3, 6.4).
            let share = (from / PAGE).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let part = (u128::from(pages) * u128::from(share)) >> 24;
            Some((from + STEP + part as u64 * PAGE) / PAGE * PAGE)
        };
        let place = place(stop).or_else(|| place(grid(stop)))?;
        (place < self.plan.length()).then_some(place)
    }
}

/// Pieces of one request.
const PIECES: u64 = 1 << 16;

/// A part of the file as chunks, the last one first.
fn backward_pieces(part: Range<u64>, chunk: u64) -> Vec<Range<u64>> {
    let chunk = chunk.max(PAGE).max(((part.end - part.start) / PIECES).next_multiple_of(PAGE));
    let mut pieces = Vec::new();
    let mut end = part.end;
    while end > part.start {
        let start = ((end - 1) / chunk * chunk).max(part.start);
        pieces.push(start..end);
        end = start;
    }
    pieces
}
