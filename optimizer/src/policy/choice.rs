//! Which of several ways to fill is the best on this file: each is tried on chunks that a reader needs anyway.
//!
//! What counts is the rate at which a way delivered while it had requests in flight, less a handicap for what the rate does
//! not show (a copy, a thread). A trial of milliseconds is decided by luck where the processors are busy, and a long one of
//! a slow way keeps the reader waiting: so a short trial of all only leaves out what is far behind, and the rest are tried
//! again, longer. What was chosen is measured for as long as it is in use; if it falls behind what another showed, or after
//! ever longer pauses, those that were not far behind are tried once more, for the storage may be another by then.

use std::time::Duration;

/// Who delivers less than one of so many parts of what the best does is not tried again.
const NEAR: f64 = 4.0;
/// What was chosen is measured over so many times its longer trial.
const SPELL: u32 = 2;
/// Another one that was so many times as fast in its trial is reason to try them all again; one that is so many times as
/// slow as another need not be tried to the end.
const CLEARLY: f64 = 1.5;
/// What a part of a trial shows, of so many parts.
const PART: u32 = 3;
/// What was chosen is left for one that is so many times as fast in the same trial.
const FASTER: f64 = 1.1;
/// Bytes until they are tried again, and how many times as many it is from then on.
const PAUSE: u64 = 2 << 30;
const LONGER: u64 = 4;

/// A longer trial is so many times what is in flight, at least: what others sent before stands in front of the first.
const QUEUES: u32 = 2;

/// One way, before its trials.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// Chunks that it is tried on at first, and later; 0: only where no other works.
    pub chunks: [u32; 2],
    /// How many times as fast as another without one it must be.
    pub handicap: f64,
}

/// What came in since the last measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Spell {
    answered: u32,
    bytes: u64,
    /// Time with requests in flight.
    busy: Duration,
    /// Requests in flight at the answers, in sum.
    load: u32,
}

impl Spell {
    /// Bytes per second.
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.busy.as_secs_f64().max(1e-6)
    }
}

#[derive(Clone, Debug)]
struct Trial {
    contender: Contender,
    /// Chunks of the trial that is on, 0 between trials, and how many of them were sent.
    chunks: u32,
    sent: u32,
    in_flight: u32,
    /// Those of them that were sent before the trial began.
    earlier: u32,
    /// When the requests in flight began to be some.
    busy_since: Duration,
    spell: Spell,
    /// Mean of requests in flight in its first trial.
    load: u32,
    /// Bytes per second, as it has shown them last.
    rate: Option<f64>,
    failed: bool,
}

impl Trial {
    fn of(contender: Contender) -> Self {
        Self {
            contender,
            chunks: contender.chunks[0],
            sent: 0,
            in_flight: 0,
            earlier: 0,
            busy_since: Duration::ZERO,
            spell: Spell::default(),
            load: 0,
            rate: None,
            failed: false,
        }
    }

    /// Another trial.
    fn begin(&mut self) {
        (self.chunks, self.sent, self.earlier) = (self.contender.chunks[1], 0, self.in_flight);
        self.spell = Spell::default();
    }

    /// What is compared, once it is known; of those that can be compared.
    fn merit(&self) -> Option<f64> {
        self.rate.filter(|_| !self.failed && self.contender.chunks[0] > 0).map(|rate| rate / self.contender.handicap)
    }

    /// A chunk that was in flight has come in; whether it counts.
    fn land(&mut self, bytes: u64, now: Duration) -> bool {
        if self.earlier == 0 {
            self.spell.bytes += bytes;
            self.spell.answered += 1;
            self.spell.load += self.in_flight;
            self.spell.busy += now.saturating_sub(self.busy_since);
        }
        self.in_flight -= 1;
        self.busy_since = now;
        let is_earlier = self.earlier > 0;
        self.earlier = self.earlier.saturating_sub(1);
        !is_earlier
    }

    /// All has come in, or enough to tell that it is not the best.
    fn is_over(&self, best: f64) -> bool {
        let is_behind = || self.spell.rate() / self.contender.handicap * CLEARLY < best;
        self.spell.answered >= self.chunks || self.spell.answered >= self.chunks.div_ceil(PART) && is_behind()
    }

    /// Takes the rate from what came in; whether that says anything.
    fn measure(&mut self) -> bool {
        let spell = std::mem::take(&mut self.spell);
        let load = spell.load / spell.answered.max(1);
        if self.rate.is_none() {
            self.load = load;
        }
        // Readers want much less than in the first trial: the rate is theirs.
        let tells = 2 * load >= self.load;
        if tells {
            self.rate = Some(spell.rate());
        }
        tells
    }
}

/// The trials on one file. Ways are known by their index.
#[derive(Clone, Debug)]
pub struct Choice {
    trials: Vec<Trial>,
    chosen: Option<usize>,
    /// Nothing has come in since that was chosen: what was sent before stands in front.
    is_fresh: bool,
    /// Only the first, short trials have been made.
    is_early: bool,
    /// The best that these trials have shown so far.
    best: f64,
    /// Bytes that came in since the last trials, and with how many there are others.
    since: u64,
    pause: u64,
}

impl Choice {
    /// Among these, at least one; the first, if it is the only one to be tried.
    pub fn new(contenders: impl IntoIterator<Item = Contender>) -> Self {
        let mut trials: Vec<_> = contenders.into_iter().map(Trial::of).collect();
        let is_alone = trials.iter().filter(|trial| trial.chunks > 0).count() <= 1;
        if is_alone {
            trials.iter_mut().for_each(|trial| trial.chunks = 0);
        }
        let chosen = is_alone.then_some(0);
        Self { trials, chosen, is_fresh: false, is_early: true, best: 0.0, since: 0, pause: PAUSE }
    }

    /// The way that all were found to be slower than, once that is known.
    pub fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    pub fn has_failed(&self, way: usize) -> bool {
        self.trials.get(way).is_none_or(|trial| trial.failed)
    }

    /// The way for the next chunk.
    pub fn next(&self) -> usize {
        let is_untried = |way: &usize| self.trials[*way].sent < self.trials[*way].chunks;
        let is_awaited = || self.trials.iter().any(|trial| trial.chunks > 0 && trial.sent >= trial.chunks);
        let untried = match self.chosen {
            // One after the other, so that each need not be tried to the end if it is slower than the one before.
            Some(_) if is_awaited() => None,
            chosen => chosen.filter(is_untried).or_else(|| (0..self.trials.len()).find(is_untried)),
        };
        // The last answers are awaited: the best so far goes on meanwhile.
        let usable = || self.trials.iter().position(|trial| !trial.failed);
        untried.or(self.chosen).or_else(usable).unwrap_or(0)
    }

    /// A chunk is sent this way now.
    pub fn send(&mut self, way: usize, now: Duration) {
        let Some(trial) = self.trials.get_mut(way) else { return };
        if trial.in_flight == 0 {
            trial.busy_since = now;
        }
        trial.sent += 1;
        trial.in_flight += 1;
        if trial.chunks > 0 && !self.is_early {
            trial.chunks = trial.chunks.max(QUEUES * (trial.in_flight - trial.earlier.min(trial.in_flight)));
        }
    }

    /// A chunk that was sent this way was there already: another one is tried for it.
    pub fn take_back(&mut self, way: usize, now: Duration) {
        let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight > 0) else { return };
        trial.sent = trial.sent.saturating_sub(1);
        trial.in_flight -= 1;
        trial.earlier = trial.earlier.min(trial.in_flight);
        if trial.in_flight > 0 {
            trial.spell.busy += now.saturating_sub(trial.busy_since);
        }
        trial.busy_since = now;
    }

    /// A chunk has come in, in this way.
    pub fn answer(&mut self, way: usize, bytes: u64, now: Duration) {
        let is_chosen = self.chosen == Some(way);
        let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight > 0) else { return };
        self.since += bytes;
        if !trial.land(bytes, now) {
            return;
        }
        if trial.chunks > 0 {
            if trial.is_over(self.best) {
                trial.chunks = 0;
                trial.measure();
                if !self.is_early {
                    self.best = self.best.max(trial.merit().unwrap_or(0.0));
                }
                self.compare();
            }
        } else if !is_chosen || std::mem::take(&mut self.is_fresh) {
            trial.spell = Spell::default();
        } else if trial.spell.answered >= SPELL * trial.contender.chunks[1].max(1) && trial.measure() {
            self.reconsider(way);
        }
    }

    /// The way does not work on this file: it is not taken again.
    pub fn fail(&mut self, way: usize, now: Duration) {
        if let Some(trial) = self.trials.get_mut(way) {
            if trial.in_flight > 0 {
                trial.land(0, now);
            }
            (trial.failed, trial.chunks) = (true, 0);
        }
        if self.chosen == Some(way) {
            self.chosen = None;
        }
        self.compare();
    }

    /// Takes the best, once all trials are over, and tries longer what came near it in short ones.
    fn compare(&mut self) {
        if self.trials.iter().any(|trial| trial.chunks > 0) {
            return;
        }
        let before = self.chosen;
        let merits = self.trials.iter().enumerate().filter_map(|(way, trial)| Some((way, trial.merit()?)));
        let mut best: Option<(usize, f64)> = None;
        for (way, merit) in merits {
            let merit = if before == Some(way) { merit * FASTER } else { merit };
            if best.is_none_or(|(_, other)| merit > other) {
                best = Some((way, merit));
            }
        }
        self.chosen = best.map(|(way, _)| way).or(before);
        self.is_fresh |= self.chosen != before;
        self.since = 0;
        if std::mem::take(&mut self.is_early) {
            self.try_again();
        }
    }

    /// What was chosen is measured anew.
    fn reconsider(&mut self, chosen: usize) {
        let merit = self.trials[chosen].merit().unwrap_or(f64::MAX);
        if self.trials.iter().filter_map(Trial::merit).any(|other| other > merit * CLEARLY) {
            self.try_again();
        } else if self.since >= self.pause {
            self.pause = self.pause.saturating_mul(LONGER);
            self.try_again();
        }
    }

    /// Begins another trial of what is in use and those that were not far behind, if there are any.
    fn try_again(&mut self) {
        let best = self.trials.iter().filter_map(Trial::merit).fold(0.0, f64::max);
        let is_near = |merit: f64| merit * NEAR >= best;
        let near = self
            .trials
            .iter_mut()
            .enumerate()
            .filter(|(way, trial)| trial.merit().is_some_and(|merit| is_near(merit) || self.chosen == Some(*way)));
        let near: Vec<_> = near.map(|(_, trial)| trial).collect();
        if near.len() > 1 {
            self.best = 0.0;
            near.into_iter().for_each(Trial::begin);
        }
    }
}

#[cfg(test)]
mod tests;
