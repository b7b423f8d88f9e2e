//! Readers that skip in records longer than small steps show: workers that share a file batch by batch. Each record looks
//! like sequential reading until it ends; their starts tell.

use super::course::Course;
use super::{StreamId, Streams};
use precache_contract::PAGE;
use std::ops::Range;

/// Runs up to this long are records of [`Learning`](super::learning::Learning).
const LONG: u64 = 1 << 20;

/// A long run.
struct Run {
    stream: StreamId,
    start: u64,
    /// Bounds of its length.
    length: Range<u64>,
}

/// What comes after the last long run if it goes on as from the one before to it.
#[derive(Default)]
pub struct Runs {
    last: Option<Run>,
    /// From the start of the run before to that of the last, and bounds of its length.
    jump: Option<(u64, Range<u64>)>,
}

impl Runs {
    /// A stream has read from `start` to `position` in one piece, and will trip before `next`.
    fn go_on(&mut self, stream: StreamId, start: u64, position: u64, next: u64) {
        let length = position.saturating_add(PAGE).saturating_sub(start)..next.saturating_sub(start);
        if length.start <= LONG {
            return;
        }
        let run = Run { stream, start, length };
        match self.last.replace(run) {
            Some(before) if before.start != start => {
                self.jump = start.checked_sub(before.start).map(|jump| (jump, before.length));
            }
            _ => {}
        }
    }

    /// If a record begins here as the last ones did: how far it is from the one before, and the bounds of its length.
    fn predict(&self, position: u64) -> Option<(u64, Range<u64>)> {
        let (Some(last), Some((jump, before))) = (&self.last, &self.jump) else { return None };
        let now = position.checked_sub(last.start)?;
        let low = last.length.start.max(before.start);
        let high = last.length.end.min(before.end).max(low);
        (now.abs_diff(*jump) <= jump / 16 && low < now).then_some((now, low..high))
    }
}

impl Streams {
    /// Remembers how long it goes on.
    pub(super) fn note_run(&mut self, index: usize, position: u64, was_unknown: bool) {
        let stream = &self.streams[index];
        let next = position.saturating_add(self.to_checkpoint(stream).max(self.distance));
        let begun = self.runs.last.as_ref().filter(|run| run.stream == stream.id).map(|run| run.start);
        let start = match &stream.course {
            Course::Unknown | Course::Forward { .. } if was_unknown => Some(stream.learning.start()),
            Course::Forward { .. } => begun.or(Some(stream.first)),
            _ => None,
        };
        if let Some(start) = start {
            self.runs.go_on(stream.id, start, position, next);
        }
    }

    /// That of a reader of long records, if the third one begins here.
    pub(super) fn course_by_runs(&self, position: u64) -> Course {
        match self.runs.predict(position) {
            Some((jump, length)) => Course::by_jumps(&self.storage, position, jump as i64, length),
            None => Course::Unknown,
        }
    }
}
