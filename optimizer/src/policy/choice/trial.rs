//! The trial of one way to fill: what came in, and what that says of it.

use std::time::Duration;

/// A longer trial is so many times what is in flight, at least.
const QUEUES: u32 = 2;
/// What was chosen is measured over so many times its longer trial.
const SPELL: u32 = 2;
/// What lasts is a mean in which the last spell is one of so many.
const SPELLS: f64 = 8.0;
/// Of a longer trial one of so many parts shows who is so many times as slow as another: that one is not tried to the end.
const PART: u32 = 3;
const BEHIND: f64 = 1.5;
/// A way that is not in use is probed first, on so many times its short trial: all of that may be in flight at once, and no more
/// keeps the reader waiting. It takes as many answers as the short trial has to tell whether the way may be the best.
const PROBE: u32 = 2;
/// Who showed less than one of so many parts of what the best did is not tried again with it; after a trial that took
/// long, [`BEHIND`] will do.
const NEAR: f64 = 4.0;
/// A buffered read brings at most so many times what a cheaper one does.
const ALIKE: f64 = 2.0;
/// A trial that took so long, and so many times what the first answer of the quickest way took, was not decided by luck: a
/// few round trips tell little of a rate.
const SURE: Duration = Duration::from_millis(100);
const ROUND_TRIPS: u32 = 8;

/// One way, before its trials.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// Chunks that it is tried on at first, and later; 0: only where no other works.
    pub chunks: [u32; 2],
    /// How many times as fast as another without one it must be.
    pub handicap: f64,
    /// To the kernel it is a buffered read: such ways differ in what they cost more than in what they bring.
    pub is_read: bool,
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
    /// Bytes and time of the first answer.
    first: (u64, Duration),
}

impl Spell {
    fn add(&mut self, bytes: u64, lasted: Duration, in_flight: u32) {
        self.bytes += bytes;
        self.answered += 1;
        self.load += in_flight;
        self.busy += lasted;
        if self.answered == 1 {
            self.first = (bytes, self.busy);
        }
    }

    /// Bytes per second.
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.busy.as_secs_f64().max(1e-6)
    }

    /// About the most that more in flight could bring: what came in after the first answer, as if that had taken no time. What is
    /// sent at once and bounded elsewhere comes in bunches, a round trip apart; of two bunches that is twice what it would bring.
    fn bound(&self) -> f64 {
        let (bytes, busy) = self.first;
        (self.bytes - bytes) as f64 / self.busy.saturating_sub(busy).as_secs_f64().max(1e-6)
    }
}

/// One way in its trials.
#[derive(Clone, Debug)]
pub struct Trial {
    contender: Contender,
    /// Chunks of the trial that is on, 0 between trials, and how many of them were sent.
    chunks: u32,
    sent: u32,
    /// It is the probe before the trial.
    pub(super) is_probe: bool,
    in_flight: u32,
    /// Those of them that were sent before the trial began, and do not count.
    pub(super) apart: u32,
    /// What others had in flight when the first of them was sent, and is still in front of it.
    pub(super) queue: u32,
    /// When the requests in flight began to be some.
    busy_since: Duration,
    spell: Spell,
    /// Mean of requests in flight in its first trial.
    load: u32,
    /// Bytes per second, as it has shown them last.
    rate: Option<f64>,
    /// How long it took to show that.
    took: Duration,
    /// Whether it has shown something in these trials.
    has_told: bool,
    /// It was far behind another in the last trials in which it took part, or would have been.
    is_far: bool,
    /// What it has shown, over the last spells in which it was in use.
    lasting: Option<f64>,
    /// When its first chunk was sent, and how long that took.
    begun: Duration,
    first: Option<Duration>,
    failed: bool,
}

impl Trial {
    pub fn of(contender: Contender) -> Self {
        Self {
            contender,
            chunks: contender.chunks[0],
            sent: 0,
            is_probe: false,
            in_flight: 0,
            apart: 0,
            queue: 0,
            busy_since: Duration::ZERO,
            spell: Spell::default(),
            load: 0,
            rate: None,
            took: Duration::ZERO,
            has_told: false,
            is_far: false,
            lasting: None,
            begun: Duration::ZERO,
            first: None,
            failed: false,
        }
    }

    /// The same without anything in flight.
    pub fn at_rest(&self) -> Self {
        Self { in_flight: 0, apart: 0, queue: 0, spell: Spell::default(), ..self.clone() }
    }

    pub fn is_untouched(&self) -> bool {
        self.in_flight == 0 && self.first.is_none() && !self.failed
    }

    /// Another trial, of what is in use.
    pub fn begin(&mut self) {
        (self.chunks, self.sent, self.apart, self.queue) = (self.contender.chunks[1], 0, self.in_flight, 0);
        (self.spell, self.has_told, self.is_probe) = (Spell::default(), false, false);
    }

    /// Another trial of what is not in use: the probe before it.
    pub fn probe(&mut self) {
        self.begin();
        (self.chunks, self.is_probe) = (self.contender.chunks[0] * PROBE, true);
    }

    /// Whether the probe is through, and may be one of the best, or has told nothing.
    pub fn has_passed(&self, best: f64) -> bool {
        let is_short = self.spell.answered < self.contender.chunks[0];
        self.is_probe && self.is_through() && (is_short || !self.is_behind(self.spell.bound(), best))
    }

    fn is_through(&self) -> bool {
        self.spell.answered >= self.chunks
    }

    fn is_behind(&self, rate: f64, best: f64) -> bool {
        rate / self.contender.handicap * BEHIND < best
    }

    /// It takes no part in the others' trials.
    pub fn sit_out(&mut self) {
        self.has_told = false;
    }

    pub fn has_begun(&self) -> bool {
        self.sent > 0
    }

    /// Its trial is over; whether that says anything.
    pub fn conclude(&mut self) -> bool {
        self.has_told = self.measure();
        self.end();
        self.has_told
    }

    pub fn has_told(&self) -> bool {
        self.has_told
    }

    pub fn is_due(&self) -> bool {
        self.sent < self.chunks
    }

    pub fn is_awaited(&self) -> bool {
        self.chunks > 0 && !self.is_due()
    }

    /// Whether it may be tried.
    pub fn can_compete(&self) -> bool {
        !self.failed && self.contender.chunks[0] > 0
    }

    /// What is compared, once it is known.
    pub fn merit(&self) -> Option<f64> {
        self.rate.filter(|_| self.can_compete()).map(|rate| rate / self.contender.handicap)
    }

    /// It was in use when it showed what it has shown last.
    pub fn note_lasting(&mut self) {
        let Some(rate) = self.rate else { return };
        self.lasting = Some(self.lasting.map_or(rate, |lasting| lasting + (rate - lasting) / SPELLS));
    }

    /// What it has shown for long, which a trial that it lost does not refute.
    pub fn lasting(&self) -> Option<f64> {
        self.lasting.filter(|_| self.can_compete()).map(|rate| rate / self.contender.handicap)
    }

    /// What it has shown for long does not count any more.
    pub fn forget_lasting(&mut self) {
        self.lasting = None;
    }

    /// From the first chunk that it ever sent to its answer.
    pub fn round_trip(&self) -> Option<Duration> {
        self.first
    }

    /// Whether it is near what the best has shown, or has shown nothing yet; what is sure, where an answer takes a `round_trip`,
    /// need not be far behind to be out.
    pub fn is_near(&self, best: f64, round_trip: Duration) -> bool {
        let is_sure = self.took >= SURE.max(round_trip * ROUND_TRIPS);
        self.merit().is_none_or(|merit| merit * if is_sure { BEHIND } else { NEAR } >= best)
    }

    /// Whether both are buffered reads, and this one costs less.
    pub fn may_spare(&self, other: &Self) -> bool {
        let [cost, others] = [self, other].map(|trial| trial.contender.handicap);
        self.contender.is_read && other.contender.is_read && cost < others
    }

    /// Whether the other one cannot come up to this merit, by what this one has shown.
    pub fn puts_below(&self, other: &Self, merit: f64) -> bool {
        self.may_spare(other) && self.rate.is_some_and(|rate| rate * ALIKE / other.contender.handicap < merit)
    }

    /// It needs no trial, and counts for the most that it can bring by what a cheaper one has shown, as surely as that.
    pub fn spare(&mut self, shown: &Self) {
        self.end();
        self.rate = self.rate.zip(shown.rate).map(|(rate, shown)| rate.min(shown * ALIKE));
        self.took = self.took.max(shown.took);
    }

    pub fn is_far(&self) -> bool {
        self.is_far
    }

    pub fn set_far(&mut self, is_far: bool) {
        self.is_far = is_far;
    }

    /// What it has shown may not hold any more.
    pub fn doubt(&mut self) {
        self.took = Duration::ZERO;
    }

    /// No trial, for now.
    pub fn end(&mut self) {
        (self.chunks, self.is_probe) = (0, false);
    }

    pub fn is_on(&self) -> bool {
        self.chunks > 0
    }

    pub fn has_failed(&self) -> bool {
        self.failed
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// It does not work on this file; whether that is new.
    pub fn fail(&mut self, now: Duration) -> bool {
        if self.in_flight > 0 {
            self.land(0, now);
        }
        self.end();
        !std::mem::replace(&mut self.failed, true)
    }

    /// A chunk is sent now, with so many of `others` in flight. A longer trial gets as long as what is in flight demands.
    pub fn send(&mut self, now: Duration, others: u32, is_longer: bool) {
        if self.in_flight == 0 {
            self.busy_since = now;
            self.queue = if self.is_on() { others } else { 0 };
            self.begun = if self.first.is_none() { now } else { self.begun };
        }
        if self.is_probe && self.sent == 0 && self.chunks * PART > QUEUES * others {
            // No more than that of the trial itself tells that it is behind.
            (self.chunks, self.is_probe) = (self.contender.chunks[1], false);
        }
        self.sent += u32::from(self.is_on());
        self.in_flight += 1;
        if self.is_on() && is_longer && !self.is_probe {
            self.chunks = self.chunks.max(QUEUES * self.in_flight.saturating_sub(self.apart));
        }
    }

    /// Something that others had sent has come in, or is not in flight any more. Its time was theirs: the trial's begins when
    /// all of them are through.
    pub fn let_pass(&mut self, now: Duration) {
        if self.queue == 1 {
            self.busy_since = now;
        }
        self.queue = self.queue.saturating_sub(1);
    }

    /// A chunk that was sent was there already.
    pub fn take_back(&mut self, now: Duration) {
        if self.apart > 0 {
            self.apart -= 1;
        } else {
            self.sent = self.sent.saturating_sub(1);
            let counts = self.queue == 0 && self.in_flight > 1;
            self.spell.busy += if counts { now.saturating_sub(self.busy_since) } else { Duration::ZERO };
        }
        self.in_flight -= 1;
        self.busy_since = now;
    }

    /// A chunk that was in flight has come in; whether it counts.
    pub fn land(&mut self, bytes: u64, now: Duration) -> bool {
        self.first.get_or_insert(now.saturating_sub(self.begun));
        let counts = self.apart == 0 && (self.queue == 0 || self.chunks <= QUEUES);
        if counts {
            self.spell.add(bytes, now.saturating_sub(self.busy_since), self.in_flight);
        } else if self.apart == 0 {
            // It has overtaken the queue: how long it would have taken alone, nobody knows. The trial is one shorter.
            (self.sent, self.chunks) = (self.sent.saturating_sub(1), self.chunks.saturating_sub(1));
        }
        (self.apart, self.queue) = (self.apart.saturating_sub(1), 0);
        self.in_flight -= 1;
        self.busy_since = now;
        counts
    }

    /// All has come in, or enough to tell that it is not the best.
    pub fn is_over(&self, best: f64) -> bool {
        let is_enough = !self.is_probe && self.spell.answered >= self.chunks.div_ceil(PART);
        self.is_through() || is_enough && self.is_behind(self.spell.rate(), best)
    }

    /// What came in so far does not count.
    pub fn start_over(&mut self) {
        self.spell = Spell::default();
    }

    /// Whether so much has come in between trials that it can be measured anew.
    pub fn is_measurable(&self) -> bool {
        self.spell.answered >= SPELL * self.contender.chunks[1].max(1)
    }

    /// Takes the rate from what came in; whether that says anything.
    pub fn measure(&mut self) -> bool {
        let spell = std::mem::take(&mut self.spell);
        let load = spell.load / spell.answered.max(1);
        if self.rate.is_none() {
            self.load = load;
        }
        // With a probe, what is in flight and how long the first answer took are no fault of the way.
        let (least, rate) = match self.is_probe {
            true => (self.load.min(self.contender.chunks[0]), spell.bound()),
            false => (self.load, spell.rate()),
        };
        // Readers want much less than in the first trial: the rate is theirs.
        let tells = 2 * load >= least;
        if tells {
            (self.rate, self.took) = (Some(rate), spell.busy);
        }
        tells
    }
}
