//! The control on simulated storage: the clock is the simulation's.

use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const CHUNK: u64 = 128 << 10;

/// How long a request takes before its bytes pass the link.
#[derive(Clone, Copy, Debug)]
enum Latency {
    Always(f64),
    Between(f64, f64),
    /// The first in this share of all cases, else the second: a cache in front of the storage.
    Cached(f64, f64, f64),
}

impl Latency {
    fn mean(&self) -> f64 {
        match *self {
            Self::Always(latency) => latency,
            Self::Between(least, most) => (least + most) / 2.0,
            Self::Cached(share, hit, miss) => share * hit + (1.0 - share) * miss,
        }
    }

    fn draw(&self, random: &mut Random) -> f64 {
        match *self {
            Self::Always(latency) => latency,
            Self::Between(least, most) => least + (most - least) * random.next(),
            Self::Cached(share, hit, miss) => {
                if random.next() < share {
                    hit
                } else {
                    miss
                }
            }
        }
    }
}

/// Numbers from 0 to 1, always the same ones.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// A path: each request takes the latency, then its bytes pass one link.
#[derive(Clone, Copy, Debug)]
struct Path {
    latency: Latency,
    bandwidth: f64,
}

impl Path {
    fn steady(latency: f64, bandwidth: f64) -> Self {
        Self { latency: Latency::Always(latency), bandwidth }
    }

    /// Requests that fit into it.
    fn fits(&self) -> f64 {
        (self.latency.mean() + CHUNK as f64 / self.bandwidth) * self.bandwidth / CHUNK as f64
    }
}

/// Mean seconds for which the pool runs and waits in turns, and when it waits next.
struct Turns {
    runs: f64,
    waits: f64,
    until: f64,
}

struct Simulation {
    now: f64,
    link_free: f64,
    /// When they have passed the latency, in nanoseconds, when they were sent, and by whom.
    coming: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Requests that each user has in flight: ours first.
    flying: Vec<usize>,
    /// Requests that another user always has in flight.
    others: usize,
    random: Random,
    turns: Option<Turns>,
    /// Looks at half the depth that are interrupted at their first answer.
    interruptions: u32,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            now: 0.0,
            link_free: 0.0,
            coming: BinaryHeap::new(),
            flying: vec![0; 2],
            others: 0,
            random: Random(1),
            turns: None,
            interruptions: 0,
        }
    }
}

impl Simulation {
    fn send(&mut self, path: Path, user: usize) {
        let comes = self.now + path.latency.draw(&mut self.random);
        self.coming.push(Reverse(((comes * 1e9) as u64, (self.now * 1e9) as u64, user)));
        self.flying[user] += 1;
    }

    fn wait_for_turn(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        while turns.until < self.now {
            let waits = -turns.waits * self.random.next().ln();
            self.now = self.now.max(turns.until + waits);
            turns.until += waits - turns.runs * self.random.next().ln();
        }
    }

    /// Sends `chunks` as fast as the control allows; returns bytes per second. With `window`, there is only so much to
    /// send at a time, and the next comes when all is answered.
    fn run(&mut self, control: &mut Congestion, path: Path, chunks: usize, window: Option<usize>) -> f64 {
        let began = self.now;
        let mut left = chunks;
        let mut offered = window.unwrap_or(chunks).min(left);
        while left > 0 || self.flying[0] > 0 {
            while self.flying[0] < control.depth() && offered > 0 {
                self.send(path, 0);
                (offered, left) = (offered - 1, left - 1);
            }
            while self.flying[1] < self.others {
                self.send(path, 1);
            }
            if self.flying[0] < control.depth() {
                control.starve();
            }
            if let Some(Reverse((comes, sent, user))) = self.coming.pop() {
                self.link_free = self.link_free.max(comes as f64 / 1e9) + CHUNK as f64 / path.bandwidth;
                self.now = self.now.max(self.link_free);
                self.wait_for_turn();
                if user == 0 {
                    let (sent, answered) = (Duration::from_nanos(sent), Duration::from_secs_f64(self.now));
                    control.learn(Answered { bytes: CHUNK, sent, answered, in_flight: self.flying[0] });
                    if self.interruptions > 0 && control.half.is_some() {
                        control.interrupt();
                        assert_eq!(control.depth(), control.depth);
                        self.interruptions -= 1;
                    }
                }
                self.flying[user] -= 1;
            }
            if self.flying[0] == 0 && offered == 0 {
                offered = window.unwrap_or(left).min(left);
            }
        }
        (chunks as u64 * CHUNK) as f64 / (self.now - began)
    }
}

proptest! {
    /// Whatever the path: nearly all of its bandwidth, but for what looking costs, with no long queue in front of it.
    #[test]
    fn finds_the_depth_of_the_path(latency in 0.0001f64..0.02, bandwidth in 50e6f64..2e9) {
        let path = Path::steady(latency, bandwidth);
        let mut control = Congestion::new(4096);
        let mut simulation = Simulation::default();
        simulation.run(&mut control, path, 4000, None);
        let rate = simulation.run(&mut control, path, 16_000, None);
        prop_assert!(rate > 0.93 * bandwidth, "{rate} of {bandwidth}, depth {}", control.depth());
        let depth = control.depth as f64;
        let is_short = depth * (CHUNK as f64) < 0.006 * bandwidth;
        prop_assert!(is_short || depth <= (2.6 * path.fits()).max(LEAST as f64) + 1.0, "{depth} where {} fit", path.fits());
    }

    #[test]
    fn never_exceeds_the_cap(cap in 1usize..100, latency in 0.0001f64..0.02) {
        let mut control = Congestion::new(cap);
        let mut simulation = Simulation::default();
        for _ in 0..50 {
            simulation.run(&mut control, Path::steady(latency, 1e9), 100, None);
            prop_assert!((1..=cap).contains(&control.depth()));
        }
    }
}

#[test]
fn backs_off_when_others_take_the_bandwidth() {
    let mut control = Congestion::new(256);
    let mut simulation = Simulation::default();
    simulation.run(&mut control, Path::steady(0.002, 800e6), 4000, None);
    let before = control.depth();
    simulation.run(&mut control, Path::steady(0.002, 100e6), 4000, None);
    assert!(control.depth * 3 < before, "{} after {before}", control.depth());
}

#[test]
fn follows_a_path_that_has_become_longer() {
    let mut control = Congestion::new(256);
    let mut simulation = Simulation::default();
    simulation.run(&mut control, Path::steady(0.001, 400e6), 4000, None);
    let far = Path::steady(0.01, 400e6);
    simulation.run(&mut control, far, 40_000, None);
    let rate = simulation.run(&mut control, far, 4000, None);
    assert!(rate > 0.9 * 400e6, "{rate}, depth {}", control.depth());
}

/// Latencies that are measured while our own requests queue are no longer path.
#[test]
fn does_not_take_its_own_queue_for_latency() {
    let path = Path::steady(0.002, 400e6);
    let mut control = Congestion::new(4096);
    // Two minutes: latencies have expired many times.
    Simulation::default().run(&mut control, path, 400_000, None);
    assert!(control.depth() as f64 <= 2.6 * path.fits() + 1.0, "{}", control.depth());
}

/// Where something else takes the place of half the depth that is looked at, all of it goes on, and half is looked at later.
#[test]
fn interruptions_end_a_look_and_leave_the_depth() {
    let path = Path::steady(0.01, 800e6);
    let run = |interruptions| {
        let (mut control, mut simulation) = (Congestion::new(256), Simulation::default());
        simulation.run(&mut control, path, 4000, None);
        simulation.interruptions = interruptions;
        simulation.run(&mut control, path, 40_000, None);
        assert_eq!(simulation.interruptions, 0);
        (control.depth, control.patience)
    };
    assert_eq!(run(5), run(0));
}

/// Little to send says little about the storage.
#[test]
fn a_reader_that_wants_little_does_not_make_the_storage_look_slow() {
    let path = Path::steady(0.002, 800e6);
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
    let path = Path::steady(0.01, 800e6);
    let mut control = Congestion::new(256);
    let mut simulation = Simulation::default();
    for window in [8, 32, 128, 400] {
        simulation.run(&mut control, path, window, None);
    }
    let rate = simulation.run(&mut control, path, 400, None);
    assert!(rate > 0.8 * path.bandwidth, "{rate}, depth {}", control.depth());
}

/// Most of the bandwidth, though no two requests take the same time.
#[test]
fn latencies_that_vary_do_not_make_the_depth_collapse() {
    let uniform = [(0.001, 0.02), (0.0001, 0.01), (0.0001, 0.001)].map(|(least, most)| Latency::Between(least, most));
    let cached = [0.3, 0.6, 0.9].map(|share| Latency::Cached(share, 0.0001, 0.01));
    for (latency, bandwidth) in uniform.into_iter().chain(cached).flat_map(|latency| [(latency, 2e8), (latency, 8e8)]) {
        let path = Path { latency, bandwidth };
        let (mut control, mut simulation) = (Congestion::new(1024), Simulation::default());
        simulation.run(&mut control, path, 30_000, None);
        let rates: Vec<f64> = (0..5)
            .map(|_| {
                let rate = simulation.run(&mut control, path, 20_000, None);
                let depth = control.depth;
                assert!(rate > 0.7 * bandwidth, "{rate} of {path:?}, depth {depth} where {} fit", path.fits());
                let is_short = depth as f64 * (CHUNK as f64) < 0.008 * bandwidth;
                assert!(
                    is_short || depth as f64 <= 3.0 * path.fits() + 4.0,
                    "{path:?}: {depth} where {} fit",
                    path.fits()
                );
                rate
            })
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!(mean > 0.8 * bandwidth, "{mean} of {path:?}: {rates:?}");
    }
}

/// It takes no more beside it than alone, and all again afterwards.
#[test]
fn another_user_whose_load_grows_does_not_make_the_depth_grow() {
    let path = Path::steady(0.005, 400e6);
    let (mut control, mut simulation) = (Congestion::new(4096), Simulation::default());
    simulation.run(&mut control, path, 20_000, None);
    let alone = control.depth;
    for others in [4, 8, 16, 24, 32] {
        simulation.others = others;
        simulation.run(&mut control, path, 40_000, None);
        assert!(control.depth <= alone, "{} beside {others}, {alone} alone", control.depth);
    }
    simulation.others = 0;
    let rate = simulation.run(&mut control, path, 20_000, None);
    assert!(rate > 0.95 * path.bandwidth, "{rate}, depth {}", control.depth);
}

/// A storage that delivers more than it did is found to do so.
#[test]
fn follows_a_storage_that_has_become_faster() {
    let (mut control, mut simulation) = (Congestion::new(1024), Simulation::default());
    simulation.run(&mut control, Path::steady(0.005, 100e6), 10_000, None);
    let fast = Path::steady(0.005, 1e9);
    simulation.run(&mut control, fast, 10_000, None);
    let rate = simulation.run(&mut control, fast, 10_000, None);
    assert!(rate > 0.95 * fast.bandwidth, "{rate}, depth {}", control.depth());
}

/// A pool is made before it is known what may be in flight.
#[test]
fn begins_with_several_whatever_was_allowed_before() {
    let mut control = Congestion::new(1);
    control.set_cap(64);
    assert_eq!(control.depth(), FIRST);
    control.set_cap(2);
    assert_eq!(control.depth(), 2);
}

#[test]
fn a_bound_that_is_lifted_no_longer_holds() {
    let path = Path::steady(0.005, 800e6);
    let (mut control, mut simulation) = (Congestion::new(2), Simulation::default());
    simulation.run(&mut control, path, 1000, None);
    control.set_cap(1024);
    simulation.run(&mut control, path, 500, None);
    let rate = simulation.run(&mut control, path, 4000, None);
    assert!(rate > 0.9 * path.bandwidth, "{rate}, depth {}", control.depth());
}

/// Others compute on the machine's processors: answers are heard in turns, and nothing is sent between them.
#[test]
fn a_busy_machine_takes_more_in_flight() {
    for seed in 1..9 {
        let path = Path::steady(0.0002, 800e6);
        let (mut control, mut simulation) = (Congestion::new(64), Simulation::default());
        simulation.random = Random(seed);
        simulation.run(&mut control, path, 4000, None);
        simulation.turns = Some(Turns { runs: 0.001, waits: 0.003, until: 0.0 });
        simulation.run(&mut control, path, 8000, None);
        let rate = simulation.run(&mut control, path, 40_000, None);
        assert!(rate > 0.65 * path.bandwidth, "{seed}: {rate}, depth {}", control.depth);
    }
}
