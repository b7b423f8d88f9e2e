//! A reader, the handler in it, the policy, a page cache with the kernel's own read-ahead, and storage, on one clock.

use super::handler::Handler;
use crate::policy::congestion::Estimate;
use crate::policy::plan::Plan;
use crate::policy::storage::Storage;
use crate::policy::stream::{StreamId, Streams};
use crate::policy::window::Sizing;
use precache_contract::{PAGE, segment::Method};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// Pages of the kernel's read-ahead.
const READ_AHEAD: usize = 32;

/// Seconds that a trip takes, and from a trip to the first request that follows from it.
const TRIP: f64 = 6e-6;
const ANSWER: f64 = 60e-6;

/// Answers of which a bandwidth is taken.
const ROUND: usize = 16;

/// What the answers so far tell of the storage, which is as little as the policy knows of it.
#[derive(Default)]
struct Shown {
    /// When they were asked for, when they come, and their bytes.
    coming: VecDeque<(f64, f64, u64)>,
    round: Vec<(f64, f64, u64)>,
    bandwidth: f64,
    latency: Option<f64>,
}

impl Shown {
    fn estimate(&mut self, now: f64, storage: &Storage) -> Option<Estimate> {
        while let Some(answer) = self.coming.pop_front_if(|(_, arrival, _)| *arrival <= now) {
            let took = answer.1 - answer.0;
            self.latency = Some(self.latency.map_or(took, |least| least.min(took)));
            self.round.push(answer);
            if self.round.len() == ROUND {
                let bytes: u64 = self.round.iter().skip(1).map(|(_, _, bytes)| bytes).sum();
                self.bandwidth = self.bandwidth.max(bytes as f64 / (answer.1 - self.round[0].1));
                self.round.clear();
            }
        }
        let latency = self.latency?;
        // What brings the bandwidth, and a part of it more, as a congestion control keeps.
        let under_way = (1.25 * self.bandwidth * latency) as u64;
        let in_flight = under_way.max(storage.chunk).min(u64::from(storage.depth) * storage.chunk);
        let latency = Duration::from_secs_f64(latency);
        Some(Estimate { bandwidth: self.bandwidth, latency, in_flight }).filter(|_| self.bandwidth > 0.0)
    }
}

pub struct Machine {
    pub storage: Storage,
    /// Seconds that the reader takes for a page that is there.
    pub page: f64,
    /// When each page has come or will come, in seconds.
    arrival: Vec<Option<f64>>,
    handler: Handler,
    pub streams: Streams,
    shown: Shown,
    queue: VecDeque<(StreamId, Range<usize>)>,
    in_flight: BinaryHeap<Reverse<u64>>,
    link_free: f64,
    pub now: f64,
    pub fetched: u64,
    pub trips: Vec<(f64, u64)>,
    /// When the optimizer was woken last, and how often.
    woken: f64,
    pub wakes: usize,
}

impl Machine {
    pub fn new(pages: usize, storage: Storage, page: f64, accelerated: bool) -> Self {
        let length = pages as u64 * PAGE;
        let sizing = Sizing { size: 50 << 20, is_auto: true, threshold: 75 };
        Self {
            storage,
            page,
            arrival: vec![None; pages],
            handler: Handler::new(pages, accelerated, Method::Mprotect),
            streams: Streams::new(Plan::sequential(0..length), 0, sizing, 8 << 20, true, Storage::default()),
            shown: Shown::default(),
            queue: VecDeque::new(),
            in_flight: BinaryHeap::new(),
            link_free: 0.0,
            now: 0.0,
            fetched: 0,
            trips: Vec::new(),
            woken: 0.0,
            wakes: 0,
        }
    }

    /// The reader touches a page and reads it.
    pub fn read(&mut self, page: usize) {
        if self.handler.is_closed(page) {
            self.trip(page);
        }
        self.send();
        if self.arrival[page].is_none() {
            // The kernel reads around the page.
            let start = page.saturating_sub(READ_AHEAD / 2);
            self.fetch(start..(start + READ_AHEAD).min(self.arrival.len()), self.now);
        }
        self.now = self.now.max(self.arrival[page].unwrap_or(self.now)) + self.page;
    }

    fn trip(&mut self, page: usize) {
        self.now += TRIP;
        self.trips.push((self.now, page as u64 * PAGE));
        if let Some(heard) = self.handler.trip(page, self.now) {
            (self.woken, self.wakes) = (self.now, self.wakes + 1);
            let left = (0..heard.len()).rev();
            for (offset, left) in heard.into_iter().zip(left) {
                self.streams.fall_behind(left > 0);
                self.hear(offset);
            }
            self.handler.hear(&self.streams);
        }
    }

    fn hear(&mut self, offset: u64) {
        if let Some(estimate) = self.shown.estimate(self.now, &self.storage) {
            self.streams.measured(estimate);
        }
        let decision = self.streams.observe(offset, Duration::from_secs_f64(self.now));
        let is_over = |stream: &StreamId| {
            decision.over.contains(stream) || decision.repair.as_ref().is_some_and(|(repaired, _)| repaired == stream)
        };
        self.queue.retain(|(stream, _)| !is_over(stream));
        for (stream, extents) in decision.repair.into_iter().chain(decision.request) {
            let pages = |extent: Range<u64>| (extent.start / PAGE) as usize..extent.end.div_ceil(PAGE) as usize;
            self.queue.extend(extents.into_iter().map(|extent| (stream, pages(extent))));
        }
    }

    /// Sends what may be in flight by now.
    fn send(&mut self) {
        let chunk = (self.storage.chunk / PAGE) as usize;
        let mut at = self.woken + ANSWER;
        while let Some((_, extent)) = self.queue.front_mut() {
            if self.in_flight.len() >= self.storage.depth as usize {
                let Some(Reverse(free)) = self.in_flight.peek() else { break };
                at = at.max(*free as f64 / 1e9);
            }
            if at > self.now {
                break;
            }
            if self.in_flight.len() >= self.storage.depth as usize {
                self.in_flight.pop();
            }
            let end = ((extent.start / chunk + 1) * chunk).min(extent.end);
            let part = extent.start..end.min(self.arrival.len());
            extent.start = end;
            if extent.start >= extent.end {
                self.queue.pop_front();
            }
            if let Some(arrival) = self.fetch(part, at) {
                self.in_flight.push(Reverse((arrival * 1e9) as u64));
            }
        }
    }

    /// Fetches what is missing of these pages; answers when it comes.
    fn fetch(&mut self, pages: Range<usize>, at: f64) -> Option<f64> {
        let missing = self.arrival[pages.clone()].iter().filter(|page| page.is_none()).count() as u64 * PAGE;
        if missing == 0 {
            return None;
        }
        let arrival =
            (at + self.storage.latency.as_secs_f64()).max(self.link_free) + missing as f64 / self.storage.bandwidth;
        self.link_free = arrival;
        self.fetched += missing;
        self.shown.coming.push_back((at, arrival, missing));
        for page in &mut self.arrival[pages] {
            page.get_or_insert(arrival);
        }
        Some(arrival)
    }
}
