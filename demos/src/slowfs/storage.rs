//! The model of the storage: what a request costs, in virtual time.
//!
//! A request waits for one of `concurrency` servers, then for the latency, then its bytes pass
//! through one link that all requests share:
//!
//! ```text
//! arrival --- server free --- + latency --- link free --- + bytes / bandwidth = completion
//! ```
//!
//! With a jitter, each request arrives later by a random part of it, so that requests overtake each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use precache_demos::random::Random;

/// The limits of the storage.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time from the start of a request to its first byte.
    pub latency: Duration,
    /// The most that a request takes longer than that.
    pub jitter: Duration,
    /// Bytes per second of the shared link; 0 is unlimited.
    pub bandwidth: u64,
    /// Requests served at the same time.
    pub concurrency: usize,
}

/// Pure state of the model; times are measured from an arbitrary origin.
#[derive(Debug)]
struct Schedule {
    limits: Limits,
    /// Completion times of the requests being served, at most `concurrency` of them.
    servers: BinaryHeap<Reverse<Duration>>,
    link_free: Duration,
}

impl Schedule {
    fn new(limits: Limits) -> Self {
        Self { limits, servers: BinaryHeap::new(), link_free: Duration::ZERO }
    }

    /// Accepts a request of `bytes` that arrives at `now`, and returns when it completes.
    fn admit(&mut self, now: Duration, bytes: u64) -> Duration {
        let start = if self.servers.len() < self.limits.concurrency {
            now
        } else {
            self.servers.pop().map_or(now, |Reverse(free)| free.max(now))
        };
        let first_byte = (start + self.limits.latency).max(self.link_free);
        let completion = first_byte + self.transfer_time(bytes);
        self.link_free = completion;
        self.servers.push(Reverse(completion));
        completion
    }

    fn transfer_time(&self, bytes: u64) -> Duration {
        match self.limits.bandwidth {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(bytes as f64 / rate as f64),
        }
    }
}

/// The model on the real clock: makes threads wait as the storage would.
#[derive(Debug)]
pub struct Storage {
    /// None where nothing is limited: no lock, no clock.
    schedule: Option<Mutex<Schedule>>,
    jitter: Duration,
    random: Mutex<Random>,
    origin: Instant,
}

impl Storage {
    /// The same `seed` makes requests that come in the same order take the same time.
    pub fn new(limits: Limits, seed: u64) -> Self {
        let limited = !limits.latency.is_zero() || !limits.jitter.is_zero() || limits.bandwidth != 0;
        Self {
            schedule: limited.then(|| Mutex::new(Schedule::new(limits))),
            jitter: limits.jitter,
            random: Mutex::new(Random::new(seed)),
            origin: Instant::now(),
        }
    }

    /// Sleeps as long as the storage takes for a request of `bytes` that arrives now.
    pub fn serve(&self, bytes: u64) {
        let Some(schedule) = &self.schedule else { return };
        if !self.jitter.is_zero() {
            let part = self.random.lock().expect("no thread panics while it draws").fraction();
            thread::sleep(self.jitter.mul_f64(part));
        }
        let completion = {
            let mut schedule = schedule.lock().expect("no thread panics while it schedules");
            schedule.admit(self.origin.elapsed(), bytes)
        };
        thread::sleep(completion.saturating_sub(self.origin.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn schedule(latency: Duration, bandwidth: u64, concurrency: usize) -> Schedule {
        Schedule::new(Limits { latency, jitter: Duration::ZERO, bandwidth, concurrency })
    }

    #[test]
    fn a_lone_request_costs_latency_and_transfer() {
        assert_eq!(schedule(2 * MS, 1_000_000, 64).admit(10 * MS, 3000), 15 * MS);
    }

    #[test]
    fn latencies_overlap_but_the_link_is_shared() {
        let mut storage = schedule(2 * MS, 1_000_000, 64);
        let completions: Vec<_> = (0..4).map(|_| storage.admit(Duration::ZERO, 1000)).collect();
        assert_eq!(completions, [3 * MS, 4 * MS, 5 * MS, 6 * MS]);
    }

    #[test]
    fn an_idle_link_gives_no_credit() {
        let mut storage = schedule(Duration::ZERO, 1_000_000, 64);
        storage.admit(Duration::ZERO, 1000);
        assert_eq!(storage.admit(100 * MS, 1000), 101 * MS);
    }

    #[test]
    fn requests_beyond_the_concurrency_wait_for_a_server() {
        let mut storage = schedule(2 * MS, 0, 2);
        let completions: Vec<_> = (0..5).map(|_| storage.admit(Duration::ZERO, 1)).collect();
        assert_eq!(completions, [2 * MS, 2 * MS, 4 * MS, 4 * MS, 6 * MS]);
        assert_eq!(storage.admit(50 * MS, 1), 52 * MS);
    }

    #[test]
    fn a_long_run_of_requests_moves_at_the_bandwidth() {
        let mut storage = schedule(2 * MS, 400_000_000, 64);
        let last = (0..8192).map(|_| storage.admit(Duration::ZERO, 131_072)).last().unwrap();
        let expected = 2e-3 + 8192.0 * 131_072.0 / 400e6;
        assert!((last.as_secs_f64() - expected).abs() < 1e-3, "{last:?}");
    }

    #[test]
    fn unlimited_storage_does_not_wait() {
        let limits = Limits { latency: Duration::ZERO, jitter: Duration::ZERO, bandwidth: 0, concurrency: 1 };
        let storage = Storage::new(limits, 1);
        assert!(storage.schedule.is_none());
    }
}
