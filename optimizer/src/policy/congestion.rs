//! How many requests to keep in flight on one mount: as many as bring bandwidth, no more.
//!
//! More than that only waits in the storage's queues, in front of what readers ask for themselves and of what other
//! machines ask for. The control follows BBR (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016): the most
//! bandwidth that was delivered lately and the least latency that was seen lately tell how much fits into the path;
//! twice that is kept in flight. The depth doubles at the beginning, until doubling brings nothing.

use std::time::Duration;

/// Requests in flight to begin with.
const FIRST: usize = 8;
/// Fewer never are: two for the reader's next bytes and two behind them.
const LEAST: usize = 4;
/// As long as the path's own latency is looked for.
const DRAINED: usize = 2;
/// Of what fits into the path: latencies vary, and completions come in bunches.
const GAIN: f64 = 2.0;
/// Growth of bandwidth that is worth another doubling.
const WORTH: f64 = 1.2;
/// Rounds for which a bandwidth counts.
const ROUNDS: usize = 10;
/// Every so many rounds, one with more in flight looks whether there is more bandwidth now.
const PROBE_EVERY: u32 = 8;
const PROBE: f64 = 1.25;
/// How long a least latency counts before it is looked for anew.
const LATENCY_LASTS: Duration = Duration::from_secs(10);

/// What is known of the storage behind a mount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes per second.
    pub bandwidth: f64,
    /// From a request to its answer, with nothing in front of it.
    pub latency: Duration,
    /// Bytes that are kept in flight.
    pub in_flight: u64,
}

/// A request that has been answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub bytes: u64,
    /// When it was sent and when it was answered, on one clock with any origin.
    pub sent: Duration,
    pub answered: Duration,
}

#[derive(Debug, Default)]
struct Round {
    began: Option<Duration>,
    bytes: u64,
    answers: usize,
    /// There was not always something to send: the bandwidth is the demand's, not the storage's.
    hungry: bool,
}

/// Few requests are sent until some have met no queue of ours: their latency is the path's own.
#[derive(Clone, Copy, Debug)]
struct Drain {
    since: Duration,
    least: Option<Duration>,
    answers: usize,
}

/// The control of one mount. Pure: times come from the caller.
#[derive(Debug)]
pub struct Congestion {
    depth: usize,
    /// No more than this, whatever bandwidth it would bring.
    cap: usize,
    /// As long as doubling pays.
    doubling: bool,
    round: Round,
    rounds: u32,
    /// Bandwidths of the last rounds.
    bandwidths: [f64; ROUNDS],
    /// The least latency, and when it was seen.
    latency: Option<(Duration, Duration)>,
    drain: Option<Drain>,
    /// Mean bytes of a request, of the last round.
    chunk: f64,
}

impl Congestion {
    /// At most `cap` requests will be allowed in flight.
    pub fn new(cap: usize) -> Self {
        let cap = cap.max(1);
        Self {
            depth: FIRST.min(cap),
            cap,
            doubling: true,
            round: Round::default(),
            rounds: 0,
            bandwidths: [0.0; ROUNDS],
            latency: None,
            drain: None,
            chunk: 0.0,
        }
    }

    /// Changes the bound.
    pub fn set_cap(&mut self, cap: usize) {
        self.cap = cap.max(1);
        self.depth = self.depth.min(self.cap);
    }

    /// Requests that may be in flight now.
    pub fn depth(&self) -> usize {
        if self.drain.is_some() { self.depth.min(DRAINED) } else { self.depth }
    }

    /// What is known of the storage; nothing before the first round is over.
    pub fn estimate(&self) -> Option<Estimate> {
        let bandwidth = self.bandwidth();
        let (latency, _) = self.latency?;
        let in_flight = (self.depth as f64 * self.chunk) as u64;
        (bandwidth > 0.0).then_some(Estimate { bandwidth, latency, in_flight })
    }

    /// There is nothing to send although more might be in flight.
    pub fn starve(&mut self) {
        self.round.hungry = true;
    }

    /// Takes in an answer.
    pub fn learn(&mut self, answer: Answered) {
        let latency = answer.answered.saturating_sub(answer.sent);
        if self.drain.is_some() {
            return self.learn_in_drain(answer, latency);
        }
        let least = self.latency.map_or(latency, |(least, _)| least);
        if latency <= least {
            self.latency = Some((latency, answer.answered));
        }
        let began = *self.round.began.get_or_insert(answer.sent);
        self.round.bytes += answer.bytes;
        self.round.answers += 1;
        // Answers come in bunches: a round is no shorter than the path.
        let lasted = answer.answered.saturating_sub(began);
        if self.round.answers >= self.depth && lasted >= least.min(latency) && !lasted.is_zero() {
            self.end_round(began, answer.answered);
        }
    }

    fn end_round(&mut self, began: Duration, now: Duration) {
        let round = std::mem::replace(&mut self.round, Round { began: Some(now), ..Round::default() });
        let bandwidth = round.bytes as f64 / now.saturating_sub(began).as_secs_f64().max(1e-6);
        let best = self.bandwidth();
        if round.hungry && bandwidth < best {
            // Says nothing about the storage.
            return;
        }
        self.chunk = round.bytes as f64 / round.answers as f64;
        if let Some(oldest) = self.bandwidths.get_mut(self.rounds as usize % ROUNDS) {
            *oldest = bandwidth;
        }
        self.rounds = self.rounds.wrapping_add(1);
        if self.doubling && (round.hungry || bandwidth >= best * WORTH) {
            // What there was to send did not show what more would bring.
            self.depth = if round.hungry { self.depth } else { (self.depth * 2).min(self.cap) };
            return;
        }
        self.doubling = false;
        let probe = if self.rounds.is_multiple_of(PROBE_EVERY) { PROBE } else { 1.0 };
        self.depth = self.fitting(probe);
        if self.latency.is_some_and(|(_, seen)| now.saturating_sub(seen) > LATENCY_LASTS) {
            self.drain = Some(Drain { since: now, least: None, answers: 0 });
        }
    }

    /// The path may have become another: what it takes now replaces what it took.
    fn learn_in_drain(&mut self, answer: Answered, latency: Duration) {
        let Some(drain) = &mut self.drain else { return };
        // The first ones still wait behind what was sent before; the last ones do not.
        if answer.sent < drain.since {
            return;
        }
        drain.answers += 1;
        drain.least = Some(drain.least.map_or(latency, |least| least.min(latency)));
        if drain.answers >= 3 * DRAINED {
            self.latency = drain.least.map(|least| (least, answer.answered));
            self.drain = None;
            self.round = Round { began: Some(answer.answered), ..Round::default() };
        }
    }

    fn bandwidth(&self) -> f64 {
        self.bandwidths.iter().copied().fold(0.0, f64::max)
    }

    /// Requests that fit into the path, times the gain.
    fn fitting(&self, probe: f64) -> usize {
        let Some(Estimate { bandwidth, latency, .. }) = self.estimate() else { return self.depth };
        let requests = bandwidth * latency.as_secs_f64() / self.chunk.max(1.0);
        ((requests * GAIN * probe).ceil() as usize).clamp(LEAST.min(self.cap), self.cap)
    }
}

#[cfg(test)]
mod tests;
