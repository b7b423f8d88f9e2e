//! The time that a reader took, told on standard error so that standard output stays comparable.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Measures from its creation.
#[derive(Debug)]
pub struct Timing {
    start: Instant,
    first: Cell<Option<Duration>>,
}

impl Timing {
    pub fn start() -> Self {
        Self { start: Instant::now(), first: Cell::new(None) }
    }

    /// Notes that a record has been read; only the first one matters.
    pub fn record_read(&self) {
        if self.first.get().is_none() {
            self.first.set(Some(self.start.elapsed()));
        }
    }

    /// Prints one line of JSON when an epoch, counted from 1, has ended: seconds since the start.
    pub fn print_epoch(&self, rank: usize, epoch: u64) {
        let seconds = self.start.elapsed().as_secs_f64();
        eprintln!("{{\"rank\": {rank}, \"epoch\": {epoch}, \"seconds\": {seconds:.6}}}");
    }

    /// Prints one line of JSON: seconds to the first record, and in all.
    pub fn print(&self, rank: usize) {
        let first = self.first.get().unwrap_or_default().as_secs_f64();
        let total = self.start.elapsed().as_secs_f64();
        eprintln!("{{\"rank\": {rank}, \"first_record_seconds\": {first:.6}, \"total_seconds\": {total:.6}}}");
    }
}
