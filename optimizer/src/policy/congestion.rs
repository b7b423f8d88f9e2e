//! How many requests to keep in flight on one mount: as many as bring bandwidth, no more.
//!
//! More than that only waits in the storage's queues, in front of what readers ask for themselves and of what other
//! machines ask for. The depth doubles at the beginning, until doubling brings little. From then on half of it is tried
//! now and then: where the storage delivers as much with half, the other half was queue; where it delivers half as much,
//! there was no queue. What was delivered follows from the latencies by Little's law (requests in flight / mean latency =
//! requests per second), so that a latency that varies, or is another than it was, is no error. Beside others on a full
//! link half the depth brings more than half the bandwidth too: the depth does not grow there, and shrinks until it is
//! less than theirs.

mod sample;

use super::least::Least;
pub use sample::Answered;
use sample::Sample;
use std::time::Duration;

/// Requests in flight to begin with.
const FIRST: usize = 8;
/// Fewer never are: two for the reader's next bytes and two behind them.
const LEAST: usize = 4;
/// Growth of bandwidth that is worth another doubling, and rounds without it that end the doubling.
const WORTH: f64 = 1.5;
const VAIN: u32 = 3;
/// Rounds for which a bandwidth counts.
const ROUNDS: usize = 10;
/// Rounds after a change of the depth that still show some of the depth before.
const UNSETTLED: u32 = 2;
/// Answers that tell a mean latency, at least, and how many times as many it takes where the depth has been right before. More would
/// leave the path empty for longer than they gain.
const ANSWERS: usize = 64;
const EXACT: usize = 2;
/// What the other half of the depth brings, as a share of what the one half does alone: 1 with no queue. The depth grows or
/// shrinks to where it is [`ENOUGH`], 1.3 times what fits into a path of one latency, and stays where it is hardly more.
const ENOUGH: f64 = 0.55;
const MORE: f64 = 0.15;
/// The shorter answers take, queue and all, the less is enough, down to this: nobody is kept waiting, and where the processors
/// are busy, what is in flight is what the storage has to do until the pool's next turn comes.
const LITTLE: f64 = 0.1;
const SHORT: Duration = Duration::from_millis(16);
/// Round trips of the full depth before half of it is tried: after a change, how many times as many where it has hardly changed
/// and where it has not, and at most. Half of the right depth leaves the path empty for a third of the time.
const SOON: usize = 2;
const LATER: [usize; 2] = [4, 8];
const LATEST: usize = 256;
/// A change of the depth by less than one of so many parts confirms it.
const CLOSE: usize = 5;
/// Latencies that became so many times as long, or as short, are those of another storage.
const OTHER: f64 = 1.5;

/// What is known of the storage behind a mount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes per second.
    pub bandwidth: f64,
    /// From a request to its answer, with nothing in front of it: the least of late.
    pub latency: Duration,
    /// Bytes that are kept in flight.
    pub in_flight: u64,
}

#[derive(Debug, Default)]
struct Round {
    began: Option<Duration>,
    bytes: u64,
    sample: Sample,
    /// There was not always something to send: the bandwidth is the demand's, not the storage's.
    hungry: bool,
}

/// Half the depth is tried; what was sent before does not count.
#[derive(Clone, Copy, Debug)]
struct Half {
    since: Duration,
    sample: Sample,
    least: Least,
}

/// The control of one mount. Pure: times come from the caller.
#[derive(Debug)]
pub struct Congestion {
    depth: usize,
    /// No more than this, whatever bandwidth it would bring.
    cap: usize,
    /// As long as doubling pays; rounds in which it did not.
    doubling: bool,
    vain: u32,
    /// Bandwidth of half the depth, as long as that doubles.
    surpassed: f64,
    round: Round,
    rounds: u32,
    /// Bandwidths of the last rounds.
    bandwidths: [f64; ROUNDS],
    /// The least latency: at the beginning, and later of the half depth that was tried last.
    least: Least,
    /// Mean bytes of a request, of the last round.
    chunk: f64,
    /// What the depth shows since it, or what it shows, has changed: without so many rounds after a change, and without the
    /// latest few.
    full: Sample,
    unsettled: u32,
    block: Sample,
    half: Option<Half>,
    /// Answers since half of the depth was tried or what the full one shows has changed, and round trips until it is tried.
    waited: usize,
    patience: usize,
}

impl Congestion {
    /// At most `cap` requests will be allowed in flight.
    pub fn new(cap: usize) -> Self {
        let cap = cap.max(1);
        Self {
            depth: FIRST.min(cap),
            cap,
            doubling: true,
            vain: 0,
            surpassed: 0.0,
            round: Round::default(),
            rounds: 0,
            bandwidths: [0.0; ROUNDS],
            least: Least::default(),
            chunk: 0.0,
            full: Sample::default(),
            block: Sample::default(),
            unsettled: UNSETTLED,
            half: None,
            waited: 0,
            patience: SOON,
        }
    }

    /// Changes the bound.
    pub fn set_cap(&mut self, cap: usize) {
        let was_bound = self.depth == self.cap && cap > self.cap;
        self.cap = cap.max(1);
        if self.rounds == 0 {
            self.depth = FIRST.min(self.cap);
        } else if was_bound {
            (self.doubling, self.vain, self.surpassed) = (true, 0, 0.0);
        } else {
            self.depth = self.depth.min(self.cap);
        }
    }

    /// Requests that may be in flight now.
    pub fn depth(&self) -> usize {
        if self.half.is_some() { self.depth / 2 } else { self.depth }
    }

    /// What is known of the storage; nothing before the first round is over.
    pub fn estimate(&self) -> Option<Estimate> {
        let bandwidth = self.bandwidth();
        let in_flight = (self.depth as f64 * self.chunk) as u64;
        Some(Estimate { bandwidth, latency: self.least.latency()?, in_flight }).filter(|_| bandwidth > 0.0)
    }

    /// There is nothing to send although more might be in flight.
    pub fn starve(&mut self) {
        self.round.hungry = true;
    }

    /// Something else takes the place of what is usually in flight: what comes in meanwhile, and soon after, shows nothing.
    pub fn interrupt(&mut self) {
        (self.round, self.block, self.half) = (Round::default(), Sample::default(), None);
        self.unsettled = UNSETTLED;
    }

    /// Takes in an answer.
    pub fn learn(&mut self, answer: Answered) {
        if self.half.is_some() {
            return self.learn_from_half(&answer);
        }
        if self.doubling {
            self.least.hear(answer.latency());
        }
        let began = *self.round.began.get_or_insert(answer.sent);
        self.round.bytes += answer.bytes;
        self.round.sample.add(&answer);
        // Answers come in bunches: a round is no shorter than the path.
        let lasted = answer.answered.saturating_sub(began);
        let path = self.round.sample.mean().min(self.least.latency().unwrap_or(Duration::MAX));
        if self.round.sample.answers >= self.depth && lasted >= path && !lasted.is_zero() {
            self.end_round(began, answer.answered);
        }
    }

    fn end_round(&mut self, began: Duration, now: Duration) {
        let round = self.begin_round(now);
        let bandwidth = round.bytes as f64 / now.saturating_sub(began).as_secs_f64().max(1e-6);
        let best = self.bandwidth();
        if round.hungry && bandwidth < best {
            // Says nothing about the storage; and what is sent next finds its queues empty.
            self.unsettled = UNSETTLED;
            return;
        }
        self.chunk = round.bytes as f64 / round.sample.answers as f64;
        if let Some(oldest) = self.bandwidths.get_mut(self.rounds as usize % ROUNDS) {
            *oldest = bandwidth;
        }
        self.rounds = self.rounds.wrapping_add(1);
        if self.doubling {
            // What there is to send may not show what more would bring.
            if bandwidth >= self.surpassed * WORTH && !round.hungry {
                (self.surpassed, self.vain) = (bandwidth, 0);
                self.depth = (self.depth * 2).min(self.cap);
            } else if !round.hungry {
                self.vain += 1;
                self.doubling = self.vain < VAIN;
            }
        } else if self.unsettled > 0 {
            self.unsettled -= 1;
        } else if round.hungry {
            self.unsettled = UNSETTLED;
        } else {
            self.block.merge(&round.sample);
            if self.block.answers >= self.depth.max(2 * ANSWERS) {
                self.end_block(now);
            }
        }
    }

    /// Answers of half the depth that tell a mean latency: a depth that has been right takes more to change it.
    fn enough(&self) -> usize {
        (self.depth / 2).max(ANSWERS * if self.patience > SOON { EXACT } else { 1 })
    }

    /// Takes in what the full depth shows, and looks what half of it does when that has been the same for long.
    fn end_block(&mut self, now: Duration) {
        let block = std::mem::take(&mut self.block);
        let change = block.mean().as_secs_f64() / self.full.mean().as_secs_f64().max(1e-9);
        if self.full.answers > 0 && !(1.0 / OTHER..OTHER).contains(&change) {
            // What changed in the middle of this one shows neither the one nor the other.
            (self.full, self.waited, self.patience) = (Sample::default(), 0, SOON);
            return;
        }
        self.waited += block.answers;
        if self.full.answers > 4 * self.enough() {
            self.full.fade();
        }
        self.full.merge(&block);
        if self.depth > 1 && self.waited >= (self.depth + 2 * ANSWERS) * self.patience {
            self.half = Some(Half { since: now, sample: Sample::default(), least: Least::default() });
        }
    }

    fn begin_round(&mut self, now: Duration) -> Round {
        std::mem::replace(&mut self.round, Round { began: Some(now), ..Round::default() })
    }

    fn learn_from_half(&mut self, answer: &Answered) {
        let enough = self.enough();
        let Some(half) = &mut self.half else { return };
        // The first ones still wait behind what was sent before.
        if answer.sent >= half.since {
            half.sample.add(answer);
            half.least.hear(answer.latency());
        }
        let sample = half.sample;
        if self.round.hungry {
            self.try_later(answer.answered);
        } else if sample.answers >= enough {
            self.least = half.least;
            self.steer(self.full.brings_beyond(&sample));
            self.try_later(answer.answered);
        }
    }

    /// Chooses the depth by what the half of it that was left out brings.
    fn steer(&mut self, brings: f64) {
        let enough = (ENOUGH * self.full.mean().div_duration_f64(SHORT)).clamp(LITTLE, ENOUGH);
        let exact = self.depth as f64 * (1.0 + brings.clamp(0.0, 1.0)) / (1.0 + enough);
        let depth = match brings {
            // All of it is queue.
            nothing if nothing < LITTLE => exact.floor(),
            right if (enough..enough + MORE).contains(&right) => self.depth as f64,
            _ => exact.ceil(),
        };
        let depth = (depth as usize).clamp(LEAST.min(self.cap), self.cap);
        let is_close = depth.abs_diff(self.depth) * CLOSE <= self.depth;
        let later = LATER[usize::from(depth == self.depth)];
        self.patience = if is_close { (self.patience * later).min(LATEST) } else { SOON };
        self.depth = depth;
    }

    /// Goes on with the full depth.
    fn try_later(&mut self, now: Duration) {
        (self.half, self.unsettled, self.waited) = (None, UNSETTLED, 0);
        (self.full, self.block) = (Sample::default(), Sample::default());
        self.begin_round(now);
    }

    fn bandwidth(&self) -> f64 {
        self.bandwidths.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
