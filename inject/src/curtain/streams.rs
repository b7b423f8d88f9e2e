//! Where the readers of one mapping are: a bounded table.

use super::LEARN;
use precache_contract::STEP;

/// Readers that are followed at a time; the one that has not moved for longest gives way.
pub const STREAMS: usize = 32;

#[derive(Clone, Copy)]
struct Stream {
    /// Where it tripped last.
    position: u64,
    /// The checkpoint in front of it.
    next: u64,
    /// Trips that carried it on, one after the other.
    run: u32,
    /// Clock of its last trip; 0: unused.
    stamp: u32,
}

pub struct Streams {
    table: [Stream; STREAMS],
    /// Counts trips.
    clock: u32,
}

impl Streams {
    pub const fn new() -> Self {
        Self { table: [Stream { position: 0, next: 0, run: 0, stamp: 0 }; STREAMS], clock: 0 }
    }

    /// The stream that a trip at `at` carries on, the nearest behind it that could have come so far, and from where on
    /// it has come.
    pub fn carry_on(&mut self, at: u64, distance: u64) -> Option<(usize, u64)> {
        let reach = |s: &Stream| s.next + if s.run >= LEARN { distance.max(STEP) } else { STEP };
        let streams = self.table.iter().enumerate();
        let near = streams.filter(|(_, s)| s.stamp != 0 && s.position <= at && at < reach(s));
        let (found, from) = near.max_by_key(|(_, s)| s.position).map(|(i, s)| (i, s.next.min(at)))?;
        self.trip(found, at);
        Some((found, from))
    }

    /// A new stream at `at`, in an unused place or that of the stream which has not moved for longest.
    pub fn begin(&mut self, at: u64) -> usize {
        let oldest = self.table.iter().enumerate().min_by_key(|(_, s)| s.stamp).map_or(0, |(i, _)| i);
        if let Some(stream) = self.table.get_mut(oldest) {
            stream.run = 0;
        }
        self.trip(oldest, at);
        oldest
    }

    fn trip(&mut self, stream: usize, at: u64) {
        self.clock = self.clock.wrapping_add(1).max(1);
        if let Some(stream) = self.table.get_mut(stream) {
            (stream.position, stream.run, stream.stamp) = (at, stream.run.saturating_add(1), self.clock);
        }
    }

    /// Trips of the stream, one after the other.
    pub fn run(&self, stream: usize) -> u32 {
        self.table.get(stream).map_or(0, |stream| stream.run)
    }

    /// The stream's next checkpoint.
    pub fn expect(&mut self, stream: usize, next: u64) {
        if let Some(stream) = self.table.get_mut(stream) {
            stream.next = next;
        }
    }
}
