//! Which of several ways to fill is the best on this file: each is tried on chunks that a reader needs anyway.
//!
//! What counts is the rate at which a way delivered while it had requests in flight, less a handicap for what the rate does
//! not show (a copy, a thread) and for the chance that a short trial was lucky. What was chosen is held against what the
//! others showed for as long as it is in use: on a busy machine, luck in a trial of milliseconds is common.

use std::time::Duration;

/// What was chosen is measured over so many times its trial.
const SPELL: u32 = 2;
/// It is left for another that was so many times as fast in its own trial.
const CLEARLY: f64 = 1.5;

/// One way, before its trial.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// Chunks that it is tried on; 0: only where no other works.
    pub chunks: u32,
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

#[derive(Clone, Debug)]
struct Trial {
    contender: Contender,
    sent: u32,
    in_flight: u32,
    /// When the requests in flight began to be some.
    busy_since: Duration,
    spell: Spell,
    /// Mean of requests in flight in its trial.
    load: u32,
    /// Bytes per second, as it has shown them last.
    rate: Option<f64>,
    failed: bool,
}

impl Trial {
    fn of(contender: Contender) -> Self {
        Self {
            contender,
            sent: 0,
            in_flight: 0,
            busy_since: Duration::ZERO,
            spell: Spell::default(),
            load: 0,
            rate: None,
            failed: false,
        }
    }
}

/// The trials on one file. Ways are known by their index.
#[derive(Clone, Debug)]
pub struct Choice {
    trials: Vec<Trial>,
    chosen: Option<usize>,
    /// Nothing has come in since that was chosen: what was sent before stands in front.
    is_fresh: bool,
}

impl Choice {
    /// Among these, at least one; the first, if it is the only one to be tried.
    pub fn new(contenders: impl IntoIterator<Item = Contender>) -> Self {
        let trials: Vec<_> = contenders.into_iter().map(Trial::of).collect();
        let tried = trials.iter().filter(|trial| trial.contender.chunks > 0).count();
        Self { trials, chosen: (tried <= 1).then_some(0), is_fresh: false }
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
        if let Some(chosen) = self.chosen {
            return chosen;
        }
        let usable = |(_, trial): &(usize, &Trial)| !trial.failed;
        let untried =
            self.trials.iter().enumerate().filter(usable).find(|(_, trial)| trial.sent < trial.contender.chunks);
        // All are on their way, and the last answers are awaited: the first one goes on meanwhile.
        untried.or_else(|| self.trials.iter().enumerate().find(usable)).map_or(0, |(way, _)| way)
    }

    /// A chunk is sent this way now.
    pub fn send(&mut self, way: usize, now: Duration) {
        let Some(trial) = self.trials.get_mut(way) else { return };
        if trial.in_flight == 0 {
            trial.busy_since = now;
        }
        trial.sent += 1;
        trial.in_flight += 1;
    }

    /// A chunk has come in, in this way.
    pub fn answer(&mut self, way: usize, bytes: u64, now: Duration) {
        if self.settle(way, bytes, now) {
            self.choose();
        }
    }

    /// A chunk that was sent this way was there already: another one is tried for it.
    pub fn take_back(&mut self, way: usize, now: Duration) {
        let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight > 0) else { return };
        trial.sent -= 1;
        trial.in_flight -= 1;
        if trial.in_flight > 0 {
            trial.spell.busy += now.saturating_sub(trial.busy_since);
        }
        trial.busy_since = now;
    }

    /// The way does not work on this file: it is not taken again.
    pub fn fail(&mut self, way: usize, now: Duration) {
        self.settle(way, 0, now);
        if let Some(trial) = self.trials.get_mut(way) {
            trial.failed = true;
        }
        if self.chosen == Some(way) {
            self.chosen = None;
        }
        self.choose();
    }

    /// Whether the rate of this way is known anew.
    fn settle(&mut self, way: usize, bytes: u64, now: Duration) -> bool {
        let is_chosen = self.chosen == Some(way);
        let Some(trial) = self.trials.get_mut(way).filter(|trial| trial.in_flight > 0) else { return false };
        trial.spell.bytes += bytes;
        trial.spell.answered += 1;
        trial.spell.load += trial.in_flight;
        trial.spell.busy += now.saturating_sub(trial.busy_since);
        trial.in_flight -= 1;
        trial.busy_since = now;
        if is_chosen && std::mem::take(&mut self.is_fresh) || !is_chosen && trial.rate.is_some() {
            trial.spell = Spell::default();
            return false;
        }
        if trial.spell.answered < trial.contender.chunks.max(1) * if is_chosen { SPELL } else { 1 } {
            return false;
        }
        let spell = std::mem::take(&mut trial.spell);
        let load = spell.load / spell.answered;
        match trial.rate {
            None => trial.load = load,
            // Readers want much less than in the trial: the rate is theirs.
            Some(_) if 2 * load < trial.load => return false,
            Some(_) => {}
        }
        trial.rate = Some(spell.bytes as f64 / spell.busy.as_secs_f64().max(1e-6));
        true
    }

    /// Takes the best, once all have shown their rates. Another one only if it is clearly better.
    fn choose(&mut self) {
        let mut best: Option<(usize, f64)> = None;
        let in_trial = |trial: &Trial| !trial.failed && trial.contender.chunks > 0;
        for (way, trial) in self.trials.iter().enumerate().filter(|(_, trial)| in_trial(trial)) {
            let Some(rate) = trial.rate.map(|rate| rate / trial.contender.handicap) else { return };
            let rate = if self.chosen == Some(way) { rate * CLEARLY } else { rate };
            if best.is_none_or(|(_, other)| rate > other) {
                best = Some((way, rate));
            }
        }
        let before = self.chosen;
        self.chosen = best.map(|(way, _)| way).or(before);
        self.is_fresh |= self.chosen != before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHUNK: u64 = 128 << 10;
    const TRIAL: u32 = 12;
    const HANDICAP: f64 = 1.25;

    /// So many, each but the first with a handicap.
    fn among(ways: usize) -> Choice {
        let handicap = |way| if way == 0 { 1.0 } else { HANDICAP };
        Choice::new((0..ways).map(|way| Contender { chunks: TRIAL, handicap: handicap(way) }))
    }

    fn send(choice: &mut Choice, now: Duration) -> usize {
        let way = choice.next();
        choice.send(way, now);
        way
    }

    /// Sends chunks, `depth` at a time; a chunk takes each way its time. Returns the ways taken.
    fn fill(choice: &mut Choice, times: &[u64], depth: usize, chunks: usize) -> Vec<usize> {
        let (mut now, mut taken) = (0, Vec::new());
        for _ in 0..chunks.div_ceil(depth) {
            let sent: Vec<usize> = (0..depth).map(|_| send(choice, Duration::from_micros(now))).collect();
            for &way in &sent {
                now += times[way];
                choice.answer(way, CHUNK, Duration::from_micros(now));
            }
            taken.extend(sent);
            // The reader computes.
            now += 5000;
        }
        taken
    }

    proptest! {
        /// The fastest is found, or one that is hardly slower and comes before it; the trial is short.
        #[test]
        fn finds_the_fastest(times in prop::collection::vec(50u64..2000, 1..5), depth in 1usize..5) {
            let mut choice = among(times.len());
            let taken = fill(&mut choice, &times, depth, 200);
            let chosen = choice.chosen().unwrap();
            let least = *times.iter().min().unwrap();
            prop_assert!(times[chosen] as f64 <= least as f64 * HANDICAP + 1.0, "{chosen} of {times:?}");
            let trial = TRIAL as usize * times.len() + depth;
            prop_assert!(taken[trial.min(taken.len())..].iter().all(|&way| way == chosen));
        }
    }

    /// The slower one is not taken for the faster one because what it was tried on was there already.
    #[test]
    fn what_was_there_already_says_nothing() {
        let mut choice = among(2);
        for now in (0..50).map(|n| Duration::from_micros(n * 10)) {
            assert_eq!(send(&mut choice, now), 0);
            choice.take_back(0, now + Duration::from_micros(5));
        }
        fill(&mut choice, &[900, 100], 2, 60);
        assert_eq!(choice.chosen(), Some(1));
    }

    #[test]
    fn a_way_that_does_not_work_is_left() {
        let mut choice = among(2);
        assert_eq!(send(&mut choice, Duration::ZERO), 0);
        choice.fail(0, Duration::ZERO);
        assert!((0..20).all(|_| send(&mut choice, Duration::ZERO) == 1));
    }

    #[test]
    fn the_reserve_is_taken_when_nothing_else_works() {
        let mut choice = Choice::new([12, 0].map(|chunks| Contender { chunks, handicap: 1.0 }));
        fill(&mut choice, &[900, 100], 2, 60);
        assert_eq!(choice.chosen(), Some(0));
        choice.fail(0, Duration::from_secs(1));
        assert_eq!(choice.next(), 1);
    }

    #[test]
    fn the_chosen_one_may_stop_working() {
        let mut choice = among(2);
        fill(&mut choice, &[100, 900], 2, 60);
        assert_eq!(choice.chosen(), Some(0));
        choice.fail(0, Duration::from_secs(1));
        assert_eq!(send(&mut choice, Duration::from_secs(1)), 1);
    }

    /// Sends chunks, `depth` in flight all the time; they come one after the other, each way in its time.
    fn go_on(choice: &mut Choice, now: &mut u64, time: impl Fn(usize) -> u64, depth: usize, chunks: usize) {
        let mut flying: std::collections::VecDeque<_> =
            (0..depth).map(|_| send(choice, Duration::from_micros(*now))).collect();
        for _ in 0..chunks {
            let way = flying.pop_front().unwrap();
            *now += time(way);
            flying.push_back(send(choice, Duration::from_micros(*now)));
            choice.answer(way, CHUNK, Duration::from_micros(*now));
        }
        for way in flying {
            choice.take_back(way, Duration::from_micros(*now));
        }
    }

    #[test]
    fn luck_in_the_trial_is_found_out() {
        let (mut choice, mut now) = (among(3), 0);
        go_on(&mut choice, &mut now, |way| [500, 300, 20][way], 4, 60);
        assert_eq!(choice.chosen(), Some(2));
        go_on(&mut choice, &mut now, |way| [500, 300, 2000][way], 4, 100);
        assert_eq!(choice.chosen(), Some(0));
        // The storage becomes slower for all, and hardly faster.
        go_on(&mut choice, &mut now, |_| 1000, 4, 1000);
        let chosen = choice.chosen();
        go_on(&mut choice, &mut now, |way| 900 + 100 * u64::from(Some(way) == chosen), 4, 1000);
        assert_eq!(choice.chosen(), chosen);
    }

    /// What was sent before the change says nothing of what was chosen.
    #[test]
    fn a_long_queue_does_not_make_the_choice_alternate() {
        let (mut choice, mut now) = (among(2), 0);
        go_on(&mut choice, &mut now, |way| [1000, 200][way], 4, 30);
        assert_eq!(choice.chosen(), Some(1));
        for _ in 0..30 {
            go_on(&mut choice, &mut now, |way| [1000, 200][way], 64, 100);
            assert_eq!(choice.chosen(), Some(1));
        }
        let mut taken = Vec::new();
        for _ in 0..60 {
            go_on(&mut choice, &mut now, |way| [1000, 5000][way], 64, 100);
            taken.extend(choice.chosen());
        }
        taken.dedup();
        assert!(taken.ends_with(&[0]) && taken.len() <= 2, "{taken:?}");
    }

    /// What little a reader wants comes at the reader's rate.
    #[test]
    fn a_reader_that_wants_little_changes_nothing() {
        let mut choice = among(2);
        fill(&mut choice, &[100, 200], 8, 60);
        assert_eq!(choice.chosen(), Some(0));
        fill(&mut choice, &[900, 200], 1, 400);
        assert_eq!(choice.chosen(), Some(0));
        fill(&mut choice, &[900, 200], 8, 400);
        assert_eq!(choice.chosen(), Some(1));
    }

    /// Also when requests are in flight all the time.
    #[test]
    fn a_busy_mount_decides_too() {
        let mut choice = among(2);
        let mut flying = std::collections::VecDeque::new();
        for now in (0..100).map(|n| Duration::from_micros(n * 10)) {
            flying.push_back(send(&mut choice, now));
            if flying.len() > 16 {
                choice.answer(flying.pop_front().unwrap(), CHUNK, now);
            }
        }
        assert!(choice.chosen().is_some());
    }

    #[test]
    fn equals_are_decided_by_their_order() {
        let mut choice = among(3);
        fill(&mut choice, &[100, 98, 95], 4, 80);
        assert_eq!(choice.chosen(), Some(0));
    }
}
