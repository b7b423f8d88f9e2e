//! Machines that are busy: nobody hears of trips for a while, and the storage stands still now and then.

use std::collections::VecDeque;
use std::time::Duration;

/// All by chance, the same of one seed.
pub struct Late {
    seed: u64,
    /// Trips, and when they will be heard of.
    trips: VecDeque<(Duration, u64)>,
    /// Cells for which the storage still delivers nothing.
    standing: u32,
}

impl Late {
    pub fn new(seed: u64) -> Self {
        Self { seed, trips: VecDeque::new(), standing: 0 }
    }

    /// From 0 to 1.
    fn chance(&mut self) -> f64 {
        // Knuth's linear congruential generator (MMIX).
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 40) as f64 / f64::from(1 << 24)
    }

    /// The handler has woken the optimizer: mostly that is quick, and once in twenty times it takes up to 40 ms.
    pub fn trip(&mut self, offsets: Vec<u64>, now: Duration) {
        let microseconds = match self.chance() {
            ..0.7 => 60.0,
            ..0.95 => 1e3 * self.chance(),
            _ => 4e4 * self.chance(),
        };
        let due = now + Duration::from_secs_f64(microseconds / 1e6);
        let due = self.trips.back().map_or(due, |(last, _)| due.max(*last));
        self.trips.extend(offsets.into_iter().map(|offset| (due, offset)));
    }

    /// Trips that are heard of at once: mostly one.
    pub fn together(&mut self) -> usize {
        if self.chance() < 0.7 { 1 } else { 2 + (8.0 * self.chance()) as usize }
    }

    /// The next trip that is heard of by now.
    pub fn heard(&mut self, now: Duration) -> Option<u64> {
        self.trips.pop_front_if(|(due, _)| *due <= now).map(|(_, offset)| offset)
    }

    /// Whether trips have been made that are not heard of yet.
    pub fn has_more(&self) -> bool {
        !self.trips.is_empty()
    }

    /// Whether the storage delivers nothing while the next cell is read.
    pub fn stands(&mut self) -> bool {
        if self.standing == 0 && self.chance() < 0.002 {
            self.standing = (300.0 * self.chance()) as u32;
        }
        self.standing = self.standing.saturating_sub(1);
        self.standing > 0
    }

    /// How long the reader takes for a cell: what is there it reads as fast as memory.
    pub fn time(&mut self, is_there: bool) -> Duration {
        let microseconds = if is_there { 20.0 + 100.0 * self.chance() } else { 800.0 };
        Duration::from_secs_f64(microseconds / 1e6)
    }
}
