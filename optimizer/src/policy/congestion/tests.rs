//! The control on simulated storage: the clock is the simulation's.

use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const CHUNK: u64 = 128 << 10;

/// A path: each request takes the latency, then its bytes pass one link.
#[derive(Clone, Copy, Debug)]
struct Path {
    latency: f64,
    bandwidth: f64,
}

impl Path {
    /// Requests that fit into it.
    fn fits(&self) -> f64 {
        (self.latency + CHUNK as f64 / self.bandwidth) * self.bandwidth / CHUNK as f64
    }
}

#[derive(Default)]
struct Simulation {
    now: f64,
    link_free: f64,
    /// Completion and sending times, in nanoseconds.
    flying: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Simulation {
    /// Sends `chunks` as fast as the control allows; returns bytes per second. With `window`, there is only so much to
    /// send at a time, and the next comes when all is answered.
    fn run(&mut self, control: &mut Congestion, path: Path, chunks: usize, window: Option<usize>) -> f64 {
        let began = self.now;
        let mut left = chunks;
        let mut offered = window.unwrap_or(chunks).min(left);
        while left > 0 || !self.flying.is_empty() {
            while self.flying.len() < control.depth() && offered > 0 {
                self.link_free = (self.now + path.latency).max(self.link_free) + CHUNK as f64 / path.bandwidth;
                self.flying.push(Reverse(((self.link_free * 1e9) as u64, (self.now * 1e9) as u64)));
                (offered, left) = (offered - 1, left - 1);
            }
            if self.flying.len() < control.depth() {
                control.starve();
            }
            if let Some(Reverse((answered, sent))) = self.flying.pop() {
                self.now = answered as f64 / 1e9;
                let (sent, answered) = (Duration::from_nanos(sent), Duration::from_nanos(answered));
                control.learn(Answered { bytes: CHUNK, sent, answered });
            }
            if self.flying.is_empty() && offered == 0 {
                offered = window.unwrap_or(left).min(left);
            }
        }
        (chunks as u64 * CHUNK) as f64 / (self.now - began)
    }
}

proptest! {
    /// Whatever the path: nearly all of its bandwidth, with no long queue in front of it.
    #[test]
    fn finds_the_depth_of_the_path(latency in 0.0001f64..0.02, bandwidth in 50e6f64..2e9) {
        let path = Path { latency, bandwidth };
        let mut control = Congestion::new(4096);
        let mut simulation = Simulation::default();
        simulation.run(&mut control, path, 2000, None);
        let rate = simulation.run(&mut control, path, 8000, None);
        prop_assert!(rate > 0.95 * bandwidth, "{rate} of {bandwidth}, depth {}", control.depth());
        let depth = control.depth as f64;
        prop_assert!(depth <= (2.6 * path.fits()).max(LEAST as f64) + 1.0, "{depth} where {} fit", path.fits());
    }

    #[test]
    fn never_exceeds_the_cap(cap in 1usize..100, latency in 0.0001f64..0.02) {
        let mut control = Congestion::new(cap);
        let mut simulation = Simulation::default();
        for _ in 0..50 {
            simulation.run(&mut control, Path { latency, bandwidth: 1e9 }, 100, None);
            prop_assert!((1..=cap).contains(&control.depth()));
        }
    }
}

#[test]
fn backs_off_when_others_take_the_bandwidth() {
    let mut control = Congestion::new(256);
    let mut simulation = Simulation::default();
    simulation.run(&mut control, Path { latency: 0.002, bandwidth: 800e6 }, 4000, None);
    let before = control.depth();
    simulation.run(&mut control, Path { latency: 0.002, bandwidth: 100e6 }, 2000, None);
    assert!(control.depth() * 3 < before, "{} after {before}", control.depth());
}

#[test]
fn follows_a_path_that_has_become_longer() {
    let mut control = Congestion::new(256);
    let mut simulation = Simulation::default();
    simulation.run(&mut control, Path { latency: 0.001, bandwidth: 400e6 }, 4000, None);
    let far = Path { latency: 0.01, bandwidth: 400e6 };
    simulation.run(&mut control, far, 40_000, None);
    let rate = simulation.run(&mut control, far, 4000, None);
    assert!(rate > 0.9 * 400e6, "{rate}, depth {}", control.depth());
}

/// Latencies that are measured while our own requests queue are no longer path.
#[test]
fn does_not_take_its_own_queue_for_latency() {
    let path = Path { latency: 0.002, bandwidth: 400e6 };
    let mut control = Congestion::new(4096);
    // Two minutes: latencies have expired many times.
    Simulation::default().run(&mut control, path, 400_000, None);
    assert!(control.depth() as f64 <= 2.6 * path.fits() + 1.0, "{}", control.depth());
}

/// Little to send says little about the storage.
#[test]
fn a_reader_that_wants_little_does_not_make_the_storage_look_slow() {
    let path = Path { latency: 0.002, bandwidth: 800e6 };
    let mut control = Congestion::new(256);
    let mut simulation = Simulation::default();
    simulation.run(&mut control, path, 4000, None);
    let before = control.estimate().unwrap().bandwidth;
    simulation.run(&mut control, path, 4000, Some(2));
    assert!(control.estimate().unwrap().bandwidth > 0.95 * before);
}

/// The first windows are short; the depth grows as soon as they are long enough to show what it brings.
#[test]
fn grows_while_windows_are_short() {
    let path = Path { latency: 0.01, bandwidth: 800e6 };
    let mut control = Congestion::new(256);
    let mut simulation = Simulation::default();
    for window in [8, 32, 128, 400] {
        simulation.run(&mut control, path, window, None);
    }
    let rate = simulation.run(&mut control, path, 400, None);
    assert!(rate > 0.8 * path.bandwidth, "{rate}, depth {}", control.depth());
}
