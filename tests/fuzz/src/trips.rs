//! The policy, told by a reader where it is: any reader, on any mapping of any file.

use crate::input::Input;
use precache::options::RunOptions;
use precache::policy::congestion::Estimate;
use precache::policy::plan::Plan;
use precache::policy::storage::Storage;
use precache::policy::stream::{Decision, Streams, Thresholds};
use precache::policy::window::Sizing;
use precache_contract::ring::Advice;
use precache_contract::{PAGE, STEP};
use std::ops::Range;
use std::time::Duration;

/// More trips tell nothing new, and take long.
const TRIPS: usize = 512;

pub fn trips(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut mapping = Mapping::begin(&mut input);
    let mut position = 0_u64;
    for _ in 0..TRIPS {
        if input.is_empty() {
            break;
        }
        let order = input.byte();
        position = match order % 8 {
            // As a reader that goes on in small steps, from checkpoint to checkpoint, or in jumps.
            0 => position.wrapping_add(STEP),
            1 => position.wrapping_sub(STEP),
            2 => mapping.next_told(position),
            3 => position.wrapping_add(u64::from(input.short()).wrapping_mul(PAGE)),
            4 => position.wrapping_sub(u64::from(input.short()).wrapping_mul(PAGE)),
            5 => input.magnitude(),
            6 => input.word(),
            _ if order < 128 => {
                mapping.measure(&mut input);
                position
            }
            _ => {
                let start = input.magnitude();
                mapping.advise(order / 8, start..start.saturating_add(input.magnitude()));
                position
            }
        };
        mapping.now += Duration::from_micros(u64::from(order) << (order % 16));
        mapping.observe(position);
    }
}

/// A few honest readers, with the options that somebody sent.
pub fn run_with(options: &RunOptions) {
    let size = 1 << 30;
    let ranges = options.ranges.iter().map(|range| range.start..range.end);
    let plan = Plan::of_mapping(0..size, size, ranges);
    let sizing = Sizing { size: options.size, is_auto: options.size_auto, threshold: options.threshold };
    let mut mapping = Mapping::new(plan, 0, size, sizing, (options.distance, options.distance_auto));
    for trip in 0..64 {
        mapping.now += Duration::from_millis(1);
        mapping.observe(trip * STEP);
        mapping.observe(size - trip * STEP);
        mapping.observe((trip * (10 << 20)) % size);
    }
}

/// One mapping, as the optimizer keeps it.
pub struct Mapping {
    pub streams: Streams,
    size: u64,
    readable: u64,
    told: Vec<Thresholds>,
    pub now: Duration,
}

impl Mapping {
    /// As the input registers it.
    fn begin(input: &mut Input) -> Self {
        let switches = input.byte();
        let size = input.magnitude().min(i64::MAX as u64);
        let start = input.magnitude();
        let extent = start..start.saturating_add(input.magnitude());
        let wanted: Vec<_> = (0..switches % 4).map(|_| input.magnitude()..input.magnitude()).collect();
        let threshold = (switches >> 2) % 99 + 1;
        let distance = input.magnitude().clamp(PAGE, 1 << 60);
        let window = input.magnitude().clamp(PAGE, 1 << 28);
        let plan = Plan::of_mapping(extent.clone(), size, wanted.into_iter());
        let sizing = Sizing { size: window, is_auto: switches & 64 != 0, threshold };
        Self::new(plan, extent.start.min(size), size, sizing, (distance, switches & 128 != 0))
    }

    pub fn new(plan: Plan, origin: u64, size: u64, sizing: Sizing, (distance, is_auto): (u64, bool)) -> Self {
        let readable = plan.length();
        assert!(readable <= size);
        let streams = Streams::new(plan, origin, sizing, distance, is_auto, Storage::default());
        Self { streams, size, readable, told: Vec::new(), now: Duration::ZERO }
    }

    fn measure(&mut self, input: &mut Input) {
        let bandwidth = input.magnitude() as f64;
        let latency = Duration::from_micros(input.short().into());
        self.streams.measured(Estimate { bandwidth, latency, in_flight: input.magnitude() % (1 << 30) });
    }

    /// The next checkpoint that the reader was told of.
    fn next_told(&self, position: u64) -> u64 {
        let told = self.told.iter().flat_map(|told| told.checkpoints);
        told.filter(|&at| at > position && at != u64::MAX).min().unwrap_or(position)
    }

    /// The program says how it will read.
    pub fn advise(&mut self, what: u8, part: Range<u64>) {
        let part = part.start.min(self.size)..part.end.min(self.size);
        let orders = [Advice::Normal, Advice::Sequential, Advice::Random];
        if !part.is_empty() {
            let decision = self.streams.advise(part, orders[usize::from(what) % orders.len()]);
            self.check(decision);
        }
    }

    pub fn observe(&mut self, offset: u64) {
        let decision = self.streams.observe(offset, self.now);
        self.check(decision);
    }

    /// What is asked for is in the file, and no byte of it is asked for twice.
    fn check(&mut self, Decision { request, repair, .. }: Decision) {
        for (_, extents) in [request, repair].into_iter().flatten() {
            let all_inside = extents.iter().all(|extent| extent.start < extent.end && extent.end <= self.size);
            assert!(all_inside, "{extents:?} of {}", self.size);
            assert!(sum(&extents) <= self.readable, "{extents:?}");
        }
        self.told.clear();
        self.told.extend(self.streams.thresholds());
        assert!(self.told.iter().all(|told| told.known.start < told.known.end));
        assert!(self.streams.distance() >= PAGE);
    }
}

fn sum(extents: &[Range<u64>]) -> u64 {
    extents.iter().map(|extent| extent.end - extent.start).sum()
}
