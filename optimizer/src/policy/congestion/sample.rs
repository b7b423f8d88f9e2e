//! What requests tell that were answered at one depth.

use std::time::Duration;

/// A request that has been answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub bytes: u64,
    /// When it was sent and when it was answered, on one clock with any origin.
    pub sent: Duration,
    pub answered: Duration,
    /// Requests in flight when it was answered, with it.
    pub in_flight: usize,
}

impl Answered {
    pub fn latency(&self) -> Duration {
        self.answered.saturating_sub(self.sent)
    }
}

/// Latencies at one depth, and what they tell of the rate by Little's law.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub answers: usize,
    latency: Duration,
    in_flight: usize,
}

impl Sample {
    pub fn add(&mut self, answer: &Answered) {
        let one = Self { answers: 1, latency: answer.latency(), in_flight: answer.in_flight };
        self.merge(&one);
    }

    pub fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.latency += other.latency;
        self.in_flight += other.in_flight;
    }

    /// Older answers count half.
    pub fn fade(&mut self) {
        *self = Self { answers: self.answers / 2, latency: self.latency / 2, in_flight: self.in_flight / 2 };
    }

    pub fn mean(&self) -> Duration {
        self.latency / self.answers.clamp(1, u32::MAX as usize) as u32
    }

    /// Requests per second, by Little's law.
    fn rate(&self) -> f64 {
        self.in_flight as f64 / self.latency.as_secs_f64().max(1e-9)
    }

    /// How much more this brings than `less`, for each time that there is as much more in flight.
    pub fn brings_beyond(&self, less: &Self) -> f64 {
        let in_flight = |sample: &Self| sample.in_flight as f64 / sample.answers.max(1) as f64;
        let more = in_flight(self) / in_flight(less).max(1.0) - 1.0;
        // Something else bounds what is in flight.
        if more < 0.1 { 0.0 } else { (self.rate() / less.rate() - 1.0) / more }
    }
}
