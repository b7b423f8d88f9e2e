//! A reader that was followed for long and is lost: answers that come late, or an interruption of the storage, and it has read on
//! where nobody heard of it. As soon as it trips again where it would if it went on as it did, it is taken up again.

use super::Streams;
use super::course::{Course, Stream};
use super::learning::LONG;
use crate::policy::stride::{Place, Starts, Stride};
use precache_contract::PAGE;

/// Trips in a row, each in another record, that show it: in three out of four records that someone else reads in no order there
/// is nothing of its own.
const TRIPS: u32 = 3;

/// The part of a plan by which a reader may come on while nothing is heard of it: sentinels lie nearer.
const PART: u64 = 16;

/// Records that were read, and where the reader was seen since.
pub(super) struct Remembered {
    first: u64,
    run: u64,
    stride: Stride,
    starts: Starts,
    last: u64,
    met: u32,
}

impl Remembered {
    /// Of a stream that is given up at `last`.
    pub(super) fn of(stream: &Stream) -> Option<Self> {
        let Course::Strided { stride, starts, .. } = &stream.course else { return None };
        let (first, last) = (stream.first, stream.last);
        let run = first.abs_diff(last);
        (run >= LONG).then(|| Self { first, run, stride: *stride, starts: starts.clone(), last, met: 0 })
    }

    /// It tripped at `position`: whether it is there for the last of [`TRIPS`].
    fn meets(&mut self, position: u64, leap: u64) -> bool {
        let stride = self.stride.near(position, &self.starts);
        let is_ahead = if stride.is_backward { position < self.last } else { self.last < position };
        let ahead = position.abs_diff(self.last);
        let is_another = ahead + 4 * PAGE >= stride.period();
        let is_on = is_ahead && ahead <= leap;
        if stride.place(position) == Place::Gap {
            (self.met, self.last) = (0, position);
            return false;
        }
        match (stride.is_exact(position), is_on) {
            // A step within a record.
            (false, _) => {}
            (true, true) if !is_another => {}
            (true, true) => (self.met, self.last) = (self.met + 1, position),
            (true, false) => (self.met, self.last) = (1, position),
        }
        self.met >= TRIPS
    }
}

impl Streams {
    /// The stream is given up: what it did is remembered, unless a longer one is.
    pub(super) fn remember(&mut self, index: usize) {
        let remembered = Remembered::of(&self.streams[index]);
        let run = self.remembered.as_ref().map_or(0, |before| before.run / 2);
        self.remembered = remembered.filter(|new| new.run >= run).or(self.remembered.take());
    }

    /// How far a reader may have come while nothing was heard of it.
    pub(super) fn leap(&self) -> u64 {
        (self.plan.length() / PART).max(LONG)
    }

    /// A stream of no known order has come to `position`: it may be the one that is remembered.
    pub(super) fn take_up(&mut self, index: usize, position: u64) {
        let leap = self.leap();
        let Some(remembered) = self.remembered.as_mut().filter(|_| !self.streams[index].is_known()) else { return };
        if remembered.meets(position, leap) {
            remembered.met = 0;
            let stream = &mut self.streams[index];
            stream.course = Course::again(remembered.stride, remembered.starts.clone(), position);
            // It may have been known late in the pass before.
            let is_backward = remembered.stride.is_backward;
            let first = if is_backward { remembered.first.max(position) } else { remembered.first.min(position) };
            (stream.first, stream.windows) = (first, None);
            self.close_up = 0;
        }
    }
}
