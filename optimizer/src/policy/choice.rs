//! Which of several ways to fill is the best on this file: each is tried on chunks that a reader needs anyway.
//!
//! What counts is the rate at which a way delivered while it had requests in flight, less a handicap for what the rate does
//! not show (a copy, a thread). A trial of milliseconds is decided by luck where the processors are busy, and a long one of
//! a slow way keeps the reader waiting: so a short trial of all only leaves out what is far behind, and the rest are tried
//! again, longer, one after the other; of buffered reads not all, where the cheapest has shown what they bring. What was chosen is
//! measured for as long as it is in use; if it falls behind what another showed, or after ever longer pauses, they are tried
//! once more, for the storage may be another by then: after the first pause without those that were far behind. A later trial
//! may be bad luck, too: if what was left did better for long than what took its place does, it has a second chance.

mod placing;
mod trial;

use std::time::Duration;

pub use self::trial::Contender;
use self::trial::Trial;

/// What was chosen is left for one that is so many times as fast in the same trials.
const FASTER: f64 = 1.1;

/// It is doubted if another showed so many times its rate; not again within so many bytes, and each time twice as many.
const DOUBTFUL: f64 = 1.5;
const DOUBT: u64 = 32 << 20;
/// Bytes until all are tried again whatever was measured, and how many times as many it is each time. The first time without
/// those that were far behind: the slower a way, the longer its trial keeps the reader waiting.
const PAUSE: u64 = 2 << 30;
const LONGER: u64 = 4;
/// Chunks that go another way while a trial is due, after which it is given up: nothing that is wanted can go that way.
const PASSED: u32 = 96;

/// The trials on one file. Ways are known by their index.
#[derive(Clone, Debug)]
pub struct Choice {
    trials: Vec<Trial>,
    chosen: Option<usize>,
    /// Nothing has come in since the last trials: what was sent before stands in front.
    is_fresh: bool,
    /// The first, short trials are not over yet.
    is_early: bool,
    /// Whether the rate that one of these trials showed was the reader's.
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
        let is_alone = trials.iter().filter(|trial| trial.is_on()).count() <= 1;
        if is_alone {
            trials.iter_mut().for_each(Trial::end);
        }
        Self {
            trials,
            chosen: is_alone.then_some(0),
            is_fresh: false,
            is_early: true,
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

    /// What has been found so far, for another file of the same mount; nothing while trials are on.
    pub fn for_another(&self) -> Option<Self> {
        let is_settled = self.chosen.is_some() && !self.is_trying();
        let trials = || self.trials.iter().map(Trial::at_rest).collect();
        is_settled.then(|| Self { trials: trials(), is_fresh: true, passed: 0, ..self.clone() })
    }

    /// Whether no chunk has gone any way yet.
    pub fn is_untouched(&self) -> bool {
        self.trials.iter().all(Trial::is_untouched)
    }

    /// Whether a trial is on.
    pub fn is_trying(&self) -> bool {
        self.trials.iter().any(Trial::is_on)
    }

    /// What is in use, if a chunk that is sent this way now tries another beside it.
    pub fn tried_beside(&self, way: usize) -> Option<usize> {
        self.chosen.filter(|&chosen| chosen != way && self.trials.get(way).is_some_and(Trial::is_on))
    }

    pub fn has_failed(&self, way: usize) -> bool {
        self.trials.get(way).is_none_or(|trial| trial.has_failed())
    }

    /// The best of those that are `wanted`, the first of equals.
    fn best_of(&self, wanted: impl Fn(&Trial) -> bool) -> Option<usize> {
        let merit = |way: &usize| self.trials[*way].merit().unwrap_or(0.0);
        let ways = (0..self.trials.len()).filter(|&way| !self.trials[way].has_failed() && wanted(&self.trials[way]));
        ways.reduce(|best, way| if merit(&way) > merit(&best) { way } else { best })
    }

    /// Whose trial is due. The longer ones come one after the other, and the likely best first, so that each need not be
    /// tried to the end if it is slower than one before; but of buffered reads the cheapest, as it may spare the others theirs.
    fn due(&self) -> Option<usize> {
        if self.is_early {
            return self.trials.iter().position(Trial::is_due);
        }
        if self.trials.iter().any(Trial::is_awaited) {
            return None;
        }
        let waits = |trial: &Trial| self.trials.iter().any(|other| other.is_due() && other.may_spare(trial));
        self.best_of(|trial| trial.is_due() && !waits(trial))
    }

    /// The way for the next chunk: where the last answers of a trial are awaited, the best so far.
    pub fn next(&self) -> usize {
        self.due().or(self.chosen).or_else(|| self.best_of(|_| true)).unwrap_or(0)
    }

    /// A chunk is sent this way now.
    pub fn send(&mut self, way: usize, now: Duration) {
        let (due, others) = (self.due(), self.trials.iter().map(Trial::in_flight).sum());
        let Some(trial) = self.trials.get_mut(way) else { return };
        trial.send(now, others, !self.is_early);
        match due {
            Some(due) if due != way => self.pass_over(due),
            _ => self.passed = 0,
        }
    }

    fn pass_over(&mut self, due: usize) {
        self.passed += 1;
        if self.passed >= PASSED {
            self.trials[due].end();
            self.passed = 0;
            self.compare();
        }
    }

    /// A chunk that was sent this way was there already: another one is tried for it.
    pub fn take_back(&mut self, way: usize, now: Duration) {
        if let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight() > 0) {
            trial.take_back(now);
            self.let_pass(way, now);
        }
    }

    /// A chunk has come in, in this way.
    pub fn answer(&mut self, way: usize, bytes: u64, now: Duration) {
        let is_measured = self.chosen == Some(way) && !self.is_trying();
        let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight() > 0) else { return };
        let counts = trial.land(bytes, now);
        self.let_pass(way, now);
        self.since += bytes;
        // What has overtaken others may have been the last that was awaited.
        if !counts && !self.trials[way].is_on() {
            return;
        }
        let best = if self.is_early { 0.0 } else { self.best() };
        let used = self.chosen.and_then(|chosen| self.trials[chosen].merit()).unwrap_or(0.0);
        let trial = &mut self.trials[way];
        if trial.is_on() {
            if trial.has_passed(best.max(used)) {
                trial.begin();
            } else if trial.is_over(best) {
                self.is_idle |= !trial.conclude();
                self.spare_others();
                self.compare();
            }
        } else if !is_measured || std::mem::take(&mut self.is_fresh) {
            trial.start_over();
        } else if trial.is_measurable() && trial.measure() {
            trial.note_lasting();
            self.reconsider(way);
        }
    }

    /// One chunk less of this way stands in front of the others' trials.
    fn let_pass(&mut self, way: usize, now: Duration) {
        let others = self.trials.iter_mut().enumerate().filter(|(other, _)| *other != way);
        others.for_each(|(_, trial)| trial.let_pass(now));
    }

    /// The way does not work on this file: it is not taken again.
    pub fn fail(&mut self, way: usize, now: Duration) {
        let Some(trial) = self.trials.get_mut(way) else { return };
        let (was_in_flight, was_on) = (trial.in_flight() > 0, trial.is_on());
        let is_new = trial.fail(now);
        if was_in_flight {
            self.let_pass(way, now);
        }
        if !is_new {
            return;
        }
        // What the others were far behind may have been this one.
        self.trials.iter_mut().for_each(|trial| trial.set_far(false));
        let was_chosen = self.chosen == Some(way);
        if was_chosen {
            self.chosen = None;
        }
        if was_on {
            self.compare();
        } else if was_chosen && !self.is_trying() {
            self.choose();
        }
    }

    /// Takes the best, once all trials are over; after the short ones those that came near it are tried longer.
    fn compare(&mut self) {
        if self.is_trying() {
            return;
        }
        self.note_far();
        self.choose();
        if std::mem::take(&mut self.is_early) {
            self.try_near(None);
        }
    }

    /// Takes the best of what was tried, if it is clearly better than what is in use.
    fn choose(&mut self) {
        // What took no part may have done better at another time; it counts where nothing else is left.
        let told = self.best_of(|trial| trial.merit().is_some() && trial.has_told());
        let any = || self.best_of(|trial| trial.merit().is_some()).filter(|_| self.chosen.is_none());
        let merit = |way: usize| self.trials[way].merit().unwrap_or(0.0);
        let is_clear = |way| self.chosen.is_none_or(|chosen| merit(way) > merit(chosen) * FASTER);
        if !self.is_idle || self.chosen.is_none() {
            self.chosen = told.or_else(any).filter(|&way| is_clear(way)).or(self.chosen);
        }
        (self.is_fresh, self.since) = (true, 0);
    }

    /// What was chosen was measured anew.
    fn reconsider(&mut self, chosen: usize) {
        let merit = self.trials[chosen].merit().unwrap_or(f64::MAX);
        let is_doubtful = self.trials.iter().filter_map(Trial::merit).any(|other| other > merit * DOUBTFUL);
        if self.since >= self.pause {
            self.repeat();
        } else if let Some(lost) = self.lost_by_luck(chosen).filter(|_| self.since >= DOUBT) {
            self.trials[lost].forget_lasting();
            self.try_near(Some(lost));
        } else if is_doubtful && self.since >= self.doubt {
            self.doubt = self.doubt.saturating_mul(2);
            self.try_near(None);
        }
    }

    /// Tries all again, the first time without those that were far behind.
    fn repeat(&mut self) {
        let (chosen, is_first) = (self.chosen, self.pause == PAUSE);
        let is_wanted = |way, trial: &Trial| chosen == Some(way) || !(is_first && trial.is_far());
        let again = self.trials.iter_mut().enumerate().filter(|(way, trial)| is_wanted(*way, trial));
        again.for_each(|(_, trial)| trial.doubt());
        self.trials.iter_mut().for_each(Trial::forget_lasting);
        (self.pause, self.since) = (self.pause.saturating_mul(LONGER), 0);
        self.try_again(is_wanted);
    }

    /// One that was in use before, and showed more for long than what was chosen instead does.
    fn lost_by_luck(&self, chosen: usize) -> Option<usize> {
        let merit = self.trials[chosen].lasting()?;
        let mut others = (0..self.trials.len()).filter(|&way| way != chosen);
        others.find(|&way| self.trials[way].lasting().is_some_and(|other| other > merit * FASTER))
    }

    /// Tries those again that are near the best, and this one.
    fn try_near(&mut self, also: Option<usize>) {
        let most = self.trials.iter().filter_map(Trial::merit).fold(0.0, f64::max);
        let round_trip = self.trials.iter().filter_map(Trial::round_trip).min().unwrap_or_default();
        self.try_again(|way, trial| trial.is_near(most, round_trip) || also == Some(way));
    }

    /// Begins another trial of what is in use and of those that are wanted, if there are any.
    fn try_again(&mut self, is_wanted: impl Fn(usize, &Trial) -> bool) {
        let chosen = self.chosen;
        let takes_part =
            |(way, trial): (usize, &Trial)| trial.can_compete() && (chosen == Some(way) || is_wanted(way, trial));
        let part: Vec<bool> = self.trials.iter().enumerate().map(takes_part).collect();
        self.is_idle = false;
        if part.iter().filter(|takes_part| **takes_part).count() > 1 {
            for (way, (trial, takes_part)) in self.trials.iter_mut().zip(part).enumerate() {
                let is_in_use = chosen == Some(way);
                match takes_part {
                    false => trial.sit_out(),
                    true if is_in_use => trial.begin(),
                    true => trial.probe(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
