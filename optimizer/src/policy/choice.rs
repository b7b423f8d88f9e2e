//! Which of several ways to fill is the best on this file: each is tried on chunks that a reader needs anyway.
//!
//! What counts is the rate at which a way delivered while it had requests in flight, less a handicap for what the rate does
//! not show (a copy, a thread). A trial of milliseconds is decided by luck where the processors are busy, and a long one of
//! a slow way keeps the reader waiting: so a short trial of all only leaves out what is far behind, and the rest are tried
//! again, longer, one after the other. What was chosen is measured for as long as it is in use; if it falls behind what
//! another showed, or after ever longer pauses, they are tried once more, for the storage may be another by then.

use std::time::Duration;

/// Who showed less than one of so many parts of what the best did is not tried again with it.
const NEAR: f64 = 4.0;
/// A longer trial is so many times what is in flight, at least.
const QUEUES: u32 = 2;
/// Of a longer trial one of so many parts shows who is so many times as slow as another: that one is not tried to the end.
const PART: u32 = 3;
const BEHIND: f64 = 1.5;
/// What was chosen is left for one that is so many times as fast in the same trials.
const FASTER: f64 = 1.1;

/// What was chosen is measured over so many times its longer trial.
const SPELL: u32 = 2;
/// It is doubted if another showed so many times its rate; not again within so many bytes, and each time twice as many.
const DOUBTFUL: f64 = 1.5;
const DOUBT: u64 = 32 << 20;
/// Bytes until all are tried again whatever was measured, and how many times as many it is each time.
const PAUSE: u64 = 2 << 30;
const LONGER: u64 = 4;
/// Chunks that go another way while a trial is due, after which it is given up: nothing that is wanted can go that way.
const PASSED: u32 = 96;

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
    /// Those of them that do not count: sent before the trial began, or behind what others had in flight.
    apart: u32,
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
            apart: 0,
            busy_since: Duration::ZERO,
            spell: Spell::default(),
            load: 0,
            rate: None,
            failed: false,
        }
    }

    /// Another trial.
    fn begin(&mut self) {
        (self.chunks, self.sent, self.apart) = (self.contender.chunks[1], 0, self.in_flight);
        self.spell = Spell::default();
    }

    fn is_due(&self) -> bool {
        self.sent < self.chunks
    }

    fn is_awaited(&self) -> bool {
        self.chunks > 0 && !self.is_due()
    }

    /// Whether it may be tried.
    fn can_compete(&self) -> bool {
        !self.failed && self.contender.chunks[0] > 0
    }

    /// What is compared, once it is known.
    fn merit(&self) -> Option<f64> {
        self.rate.filter(|_| self.can_compete()).map(|rate| rate / self.contender.handicap)
    }

    /// A chunk that was in flight has come in; whether it counts.
    fn land(&mut self, bytes: u64, now: Duration) -> bool {
        let counts = self.apart == 0;
        if counts {
            self.spell.bytes += bytes;
            self.spell.answered += 1;
            self.spell.load += self.in_flight;
            self.spell.busy += now.saturating_sub(self.busy_since);
        }
        self.apart = self.apart.saturating_sub(1);
        self.in_flight -= 1;
        self.busy_since = now;
        counts
    }

    /// All has come in, or enough to tell that it is not the best.
    fn is_over(&self, best: f64) -> bool {
        let is_behind = || self.spell.rate() / self.contender.handicap * BEHIND < best;
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
    /// Nothing has come in since the last trials: what was sent before stands in front.
    is_fresh: bool,
    /// The first, short trials are not over yet.
    is_early: bool,
    /// The best that these trials have shown so far, and whether the rate of one of them was the reader's.
    best: f64,
    is_idle: bool,
    /// Chunks that went another way while a trial was due.
    passed: u32,
    /// Bytes that came in since the last trials, and with how many there are others.
    since: u64,
    doubt: u64,
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
        Self {
            trials,
            chosen: is_alone.then_some(0),
            is_fresh: false,
            is_early: true,
            best: 0.0,
            is_idle: false,
            passed: 0,
            since: 0,
            doubt: DOUBT,
            pause: PAUSE,
        }
    }

    /// The best that the trials so far have shown, once those are over in which all take part.
    pub fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    pub fn has_failed(&self, way: usize) -> bool {
        self.trials.get(way).is_none_or(|trial| trial.failed)
    }

    /// The best of those that are `wanted`, the first of equals.
    fn best_of(&self, wanted: impl Fn(&Trial) -> bool) -> Option<usize> {
        let merit = |way: &usize| self.trials[*way].merit().unwrap_or(0.0);
        let ways = (0..self.trials.len()).filter(|&way| !self.trials[way].failed && wanted(&self.trials[way]));
        ways.reduce(|best, way| if merit(&way) > merit(&best) { way } else { best })
    }

    /// Whose trial is due. The longer ones come one after the other, and the likely best first, so that each need not be
    /// tried to the end if it is slower than one before.
    fn due(&self) -> Option<usize> {
        if self.is_early {
            self.trials.iter().position(Trial::is_due)
        } else if self.trials.iter().any(Trial::is_awaited) {
            None
        } else {
            self.best_of(Trial::is_due)
        }
    }

    /// The way for the next chunk: where the last answers of a trial are awaited, the best so far.
    pub fn next(&self) -> usize {
        self.due().or(self.chosen).or_else(|| self.best_of(|_| true)).unwrap_or(0)
    }

    /// A chunk is sent this way now.
    pub fn send(&mut self, way: usize, now: Duration) {
        let (due, others) = (self.due(), self.trials.iter().map(|trial| trial.in_flight).sum::<u32>());
        let Some(trial) = self.trials.get_mut(way) else { return };
        if trial.in_flight == 0 {
            trial.busy_since = now;
        }
        if trial.chunks > 0 && trial.sent == 0 && trial.in_flight == 0 && others > 0 {
            // What others have sent stands in front of it: that time is theirs.
            trial.apart = 1;
        } else if trial.chunks > 0 {
            trial.sent += 1;
        }
        trial.in_flight += 1;
        if trial.chunks > 0 && !self.is_early {
            trial.chunks = trial.chunks.max(QUEUES * trial.in_flight.saturating_sub(trial.apart));
        }
        match due {
            Some(due) if due != way => self.pass_over(due),
            _ => self.passed = 0,
        }
    }

    fn pass_over(&mut self, due: usize) {
        self.passed += 1;
        if self.passed >= PASSED {
            (self.trials[due].chunks, self.passed) = (0, 0);
            self.compare();
        }
    }

    /// A chunk that was sent this way was there already: another one is tried for it.
    pub fn take_back(&mut self, way: usize, now: Duration) {
        let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight > 0) else { return };
        if trial.apart > 0 {
            trial.apart -= 1;
        } else {
            trial.sent = trial.sent.saturating_sub(1);
            trial.spell.busy += if trial.in_flight > 1 { now.saturating_sub(trial.busy_since) } else { Duration::ZERO };
        }
        trial.in_flight -= 1;
        trial.busy_since = now;
    }

    /// A chunk has come in, in this way.
    pub fn answer(&mut self, way: usize, bytes: u64, now: Duration) {
        let is_on = self.trials.iter().any(|trial| trial.chunks > 0);
        let is_measured = self.chosen == Some(way) && !is_on;
        let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight > 0) else { return };
        self.since += bytes;
        if !trial.land(bytes, now) {
            return;
        }
        if trial.chunks > 0 {
            if trial.is_over(if self.is_early { 0.0 } else { self.best }) {
                trial.chunks = 0;
                self.is_idle |= !trial.measure();
                self.best = self.best.max(trial.merit().unwrap_or(0.0));
                self.compare();
            }
        } else if !is_measured || std::mem::take(&mut self.is_fresh) {
            trial.spell = Spell::default();
        } else if trial.spell.answered >= SPELL * trial.contender.chunks[1].max(1) && trial.measure() {
            self.reconsider(way);
        }
    }

    /// The way does not work on this file: it is not taken again.
    pub fn fail(&mut self, way: usize, now: Duration) {
        let Some(trial) = self.trials.get_mut(way) else { return };
        if trial.in_flight > 0 {
            trial.land(0, now);
        }
        if std::mem::replace(&mut trial.failed, true) {
            return;
        }
        trial.chunks = 0;
        if self.chosen == Some(way) {
            self.chosen = None;
        }
        self.compare();
    }

    /// Takes the best, once all trials are over; after the short ones those that came near it are tried longer.
    fn compare(&mut self) {
        if self.trials.iter().any(|trial| trial.chunks > 0) {
            return;
        }
        let best = self.best_of(|trial| trial.merit().is_some());
        let merit = |way: usize| self.trials[way].merit().unwrap_or(0.0);
        let is_clear = |way| self.chosen.is_none_or(|chosen| merit(way) > merit(chosen) * FASTER);
        if !self.is_idle || self.chosen.is_none() {
            self.chosen = best.filter(|&way| is_clear(way)).or(self.chosen);
        }
        (self.is_fresh, self.since) = (true, 0);
        if std::mem::take(&mut self.is_early) {
            self.try_again(NEAR);
        }
    }

    /// What was chosen was measured anew.
    fn reconsider(&mut self, chosen: usize) {
        let merit = self.trials[chosen].merit().unwrap_or(f64::MAX);
        let is_doubtful = self.trials.iter().filter_map(Trial::merit).any(|other| other > merit * DOUBTFUL);
        if self.since >= self.pause {
            self.pause = self.pause.saturating_mul(LONGER);
            self.try_again(f64::INFINITY);
        } else if is_doubtful && self.since >= self.doubt {
            self.doubt = self.doubt.saturating_mul(2);
            self.try_again(NEAR);
        }
    }

    /// Begins another trial of what is in use, and of those that are not so many times behind the best, if there are any.
    fn try_again(&mut self, behind: f64) {
        let most = self.trials.iter().filter_map(Trial::merit).fold(0.0, f64::max);
        let is_near = |trial: &Trial| trial.merit().is_none_or(|merit| merit * behind >= most);
        let chosen = self.chosen;
        let again = self.trials.iter_mut().enumerate();
        let again = again.filter(|(way, trial)| trial.can_compete() && (is_near(trial) || chosen == Some(*way)));
        let again: Vec<_> = again.map(|(_, trial)| trial).collect();
        (self.best, self.is_idle) = (0.0, false);
        if again.len() > 1 {
            again.into_iter().for_each(Trial::begin);
        }
    }
}

#[cfg(test)]
mod tests;
