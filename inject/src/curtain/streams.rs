//! Where the readers of one mapping are: a bounded table.

use super::list::List;
use precache_contract::{PAGE, REACH, STEP};

/// Readers that are followed at a time; the one that has not moved for longest gives way.
pub const STREAMS: usize = 32;

/// Jumps of about equal length, one after the other, that make a stride.
const REGULAR: u32 = 2;

/// A reader jumps from where one of so many last trips were.
const LATEST: u32 = 2;

#[derive(Clone, Copy)]
struct Stream {
    /// Where it tripped last.
    position: u64,
    /// What has been opened for it: from here ...
    low: u64,
    /// ... to here, the checkpoint in front of a reader that goes forward.
    next: u64,
    /// Trips that carried it on, one after the other.
    run: u32,
    /// Where it began, or jumped to last.
    start: u64,
    /// How far it jumped then, from its last start or that of the reader that tripped before.
    stride: i64,
    /// Jumps as long as the one before.
    regular: u32,
    /// Clock of its last trip.
    stamp: u32,
}

impl Stream {
    const UNUSED: Self = Self { position: 0, low: 0, next: 0, run: 0, start: 0, stride: 0, regular: 0, stamp: 0 };

    /// Where the next record begins if the last two tell, and how far off it may be.
    fn predicted(&self) -> (u64, u64) {
        let tolerance = (self.stride.unsigned_abs() / 16).max(4 * PAGE);
        (self.start.wrapping_add_signed(self.stride), tolerance)
    }
}

/// How a trip carries a stream on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    pub stream: usize,
    /// From here on to the trip it has come forward.
    pub from: u64,
    /// Up to here from the trip it has come backward.
    pub to: u64,
}

pub struct Streams {
    table: List<Stream, STREAMS>,
    /// Counts trips.
    clock: u32,
    /// Place of the stream that tripped last.
    latest: usize,
}

impl Streams {
    pub const fn new() -> Self {
        Self { table: List::new(Stream::UNUSED), clock: 0, latest: 0 }
    }

    /// Knows of none any more.
    pub fn forget(&mut self) {
        self.table.clear();
    }

    /// The stream that a trip at `at` carries on: the nearest behind it that could have come so far, or in front of it
    /// if the reader `is_backward`; else one that jumps here as it jumped before.
    pub fn carry_on(&mut self, at: u64, distance: u64, is_known: bool, is_backward: bool) -> Option<Carried> {
        // Nearly always the reader that tripped last goes on to where it is awaited.
        let is_awaited = |s: &&Stream| s.next == at && s.position < at && !is_backward;
        if self.table.items().get(self.latest).filter(is_awaited).is_some() {
            let carried = Carried { stream: self.latest, from: at, to: at };
            self.trip(self.latest, at);
            return Some(carried);
        }
        self.find(at, distance, is_known, is_backward)
    }

    #[inline(never)] // Apart from what runs at nearly all trips.
    #[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
    fn find(&mut self, at: u64, distance: u64, is_known: bool, is_backward: bool) -> Option<Carried> {
        let streams = || self.table.items().iter().enumerate();
        // What is unknown is seen step by step: one that is missed is a jump.
        let far = if is_known { distance.max(STEP) } else { STEP };
        let onward = if is_backward {
            let near = streams().filter(|(_, s)| at < s.next && s.low <= at.saturating_add(far));
            near.min_by_key(|(_, s)| s.low)
        } else {
            let near = streams().filter(|(_, s)| s.position <= at && at < s.next + far);
            near.max_by_key(|(_, s)| s.position)
        };
        if let Some((stream, s)) = onward {
            let carried = Carried { stream, from: s.next.min(at), to: s.low.max(at) };
            self.trip(stream, at);
            return Some(carried);
        }
        if is_known && !is_backward {
            let passed = streams().find(|(_, s)| at < s.position && s.position - at <= REACH);
            if let Some((stream, _)) = passed {
                return Some(Carried { stream, from: at, to: at });
            }
        }
        self.jump(at)
    }

    /// The stream that jumps to `at` as it jumped before.
    #[cold]
    fn jump(&mut self, at: u64) -> Option<Carried> {
        let jumping = self.table.items().iter().enumerate().filter(|(_, s)| {
            let (predicted, tolerance) = s.predicted();
            // Among many streams one would fit by chance.
            s.stride != 0 && s.stamp + LATEST > self.clock && at.abs_diff(predicted) <= tolerance
        });
        let (stream, s) = jumping.max_by_key(|(_, s)| s.stamp)?;
        let (stride, regular) = ((at as i64).wrapping_sub(s.start as i64), s.regular.saturating_add(1));
        self.trip(stream, at);
        if let Some(s) = self.table.items_mut().get_mut(stream) {
            *s = Stream { start: at, stride, regular, run: 1, low: at, ..*s };
        }
        Some(Carried { stream, from: at, to: at })
    }

    /// A new stream at `at`, if need be in the place of the one that has not moved for longest.
    #[cold]
    pub fn begin(&mut self, at: u64) -> usize {
        let streams = self.table.items();
        let latest = streams.iter().max_by_key(|s| s.stamp);
        let near = latest.filter(|s| s.start.abs_diff(at) <= REACH);
        let stride = near.map_or(0, |s| (at as i64).wrapping_sub(s.start as i64));
        let oldest = streams.iter().enumerate().min_by_key(|(_, s)| s.stamp).map_or(0, |(i, _)| i);
        let new = Stream { start: at, low: at, stride, ..Stream::UNUSED };
        let place = self.table.push(new).unwrap_or(oldest);
        if let Some(stream) = self.table.items_mut().get_mut(place) {
            *stream = new;
        }
        self.trip(place, at);
        place
    }

    fn trip(&mut self, stream: usize, at: u64) {
        self.clock = self.clock.wrapping_add(1).max(1);
        self.latest = stream;
        if let Some(stream) = self.table.items_mut().get_mut(stream) {
            (stream.position, stream.run, stream.stamp) = (at, stream.run.saturating_add(1), self.clock);
        }
    }

    /// Trips of the stream, one after the other.
    pub fn run(&self, stream: usize) -> u32 {
        self.table.items().get(stream).map_or(0, |stream| stream.run)
    }

    /// Whether the stream jumps by a stride.
    pub fn is_regular(&self, stream: usize) -> bool {
        self.table.items().get(stream).is_some_and(|stream| stream.regular >= REGULAR)
    }

    /// Whether a stream's next checkpoint is this one, which is so many bytes wide.
    pub fn come_to(&self, at: u64, width: u64) -> bool {
        self.table.items().iter().any(|stream| stream.next == at || stream.low == at + width)
    }

    /// What has been opened around the stream's last trip.
    pub fn expect(&mut self, stream: usize, low: u64, next: u64) {
        if let Some(stream) = self.table.items_mut().get_mut(stream) {
            // What lies behind its last trip was opened for another thread.
            stream.next = if next > stream.position || low < stream.low { next } else { stream.next };
            stream.low = low;
        }
    }
}
