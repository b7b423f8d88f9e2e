//! The control on latencies that real storage has shown with so many requests in flight (`simulation/recorded/README.md`).

use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const CHUNK: u64 = 128 << 10;

/// What was recorded with so many requests in flight.
struct Level {
    depth: usize,
    /// Seconds, one request after the other.
    latencies: Vec<f64>,
    next: usize,
}

impl Level {
    /// Bytes per second, by Little's law.
    fn rate(&self) -> f64 {
        (self.depth as u64 * CHUNK) as f64 * self.latencies.len() as f64 / self.latencies.iter().sum::<f64>()
    }

    fn draw(&mut self) -> f64 {
        self.next += 1;
        self.latencies[self.next % self.latencies.len()]
    }
}

fn levels(recorded: &str) -> Vec<Level> {
    let level = |line: &str| {
        let mut words = line.split(' ').map(|word| word.parse::<usize>().unwrap());
        let depth = words.next().unwrap();
        Level { depth, latencies: words.map(|microseconds| microseconds as f64 / 1e6).collect(), next: 0 }
    };
    recorded.lines().map(level).collect()
}

/// How long a request takes that makes so many: between what was recorded with fewer and with more.
fn latency(levels: &mut [Level], in_flight: usize) -> f64 {
    let above = levels.iter().position(|level| level.depth >= in_flight).unwrap_or(levels.len() - 1);
    let below = above.saturating_sub(1);
    let (few, many) = (levels[below].depth, levels[above].depth);
    let share = if few == many { 1.0 } else { (in_flight - few) as f64 / (many - few) as f64 };
    (1.0 - share) * levels[below].draw() + share * levels[above].draw()
}

/// Bytes per second of the second half of so many requests, and the depth at their end.
fn run(levels: &mut [Level], requests: usize) -> (f64, usize) {
    let mut control = Congestion::new(128);
    let mut flying: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let (mut now, mut half) = (0u64, 0);
    for answered in 0..requests {
        while flying.len() < control.depth() {
            let takes = latency(levels, flying.len() + 1);
            flying.push(Reverse((now + (takes * 1e9) as u64, now)));
        }
        let in_flight = flying.len();
        let Some(Reverse((comes, sent))) = flying.pop() else { unreachable!("some are in flight") };
        now = now.max(comes);
        let (sent, at) = (Duration::from_nanos(sent), Duration::from_nanos(now));
        control.learn(Answered { bytes: CHUNK, sent, answered: at, in_flight });
        if answered == requests / 2 {
            half = now;
        }
    }
    ((requests / 2) as f64 * CHUNK as f64 / ((now - half) as f64 / 1e9), control.depth)
}

/// Nearly the best that was recorded with any number in flight, with no more in flight than twice what that takes. Of the local
/// disk, where twice as many bring an eighth more and take nearly twice as long, not the last of it.
#[test]
fn finds_what_a_recorded_storage_can_bear() {
    for (name, recorded) in [
        ("slowfs", include_str!("../simulation/recorded/slowfs.latencies")),
        ("slowfs-jitter", include_str!("../simulation/recorded/slowfs-jitter.latencies")),
        ("local-disk", include_str!("../simulation/recorded/local-disk.latencies")),
    ] {
        let mut levels = levels(recorded);
        let best = levels.iter().map(Level::rate).fold(0.0, f64::max);
        let enough = levels.iter().find(|level| level.rate() > 0.95 * best).unwrap().depth;
        let (rate, depth) = run(&mut levels, 40_000);
        assert!(rate > 0.88 * best, "{name}: {rate} of {best}, depth {depth} where {enough} do");
        assert!(depth <= 2 * enough, "{name}: depth {depth} where {enough} do");
    }
}
