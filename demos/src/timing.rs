//! The time that a reader took, told on standard error so that standard output stays comparable.

use std::time::{Duration, Instant};

/// Measures from its creation.
#[derive(Debug)]
pub struct Timing {
    start: Instant,
    first: Option<Duration>,
}

impl Timing {
    pub fn start() -> Self {
        Self { start: Instant::now(), first: None }
    }

    /// Notes that a record has been read; only the first one matters.
    pub fn record_read(&mut self) {
        self.first.get_or_insert_with(|| self.start.elapsed());
    }

    /// Prints one line of JSON: seconds to the first record, and in all.
    pub fn print(&self, rank: usize) {
        let first = self.first.unwrap_or_default().as_secs_f64();
        let total = self.start.elapsed().as_secs_f64();
        eprintln!("{{\"rank\": {rank}, \"first_record_seconds\": {first:.6}, \"total_seconds\": {total:.6}}}");
    }
}
