//! Where a mapping is protected, and what changes when a checkpoint is hit. Pure: no calls, no clock.
//!
//! A new mapping is protected as a whole, one `PROT_NONE` area: the **curtain**. Every reader opens it where it first
//! faults, in small steps at first, so that its start address and its pattern are seen exactly; then up to the next
//! **checkpoint** of the grid, where the curtain begins again.
//!
//! ```text
//!       open, read already        reader      checkpoint             never touched
//!  |..S............S............S...R........|####################################|
//!     sentinels, one a coarse cell           next multiple of `distance`,
//!                                            or a threshold that lies before it
//! ```
//!
//! What has been read stays open: closing it again would cost a page table entry for every page of it. Only
//! **sentinels** are re-armed behind the reader, where it tripped, bounded in number; the first one lies where it
//! began, so the next epoch is seen at its first byte. A reader that comes back gets its checkpoints placed in front of
//! it one by one.
//!
//! So a mapping costs a bounded number of kernel mappings, whatever its length; every jump to what was never touched is
//! seen, and jumps elsewhere at the next sentinel.
//!
//! Offsets are bytes from the start of the protected part; pages are given by the offset of their first byte.

mod guide;
mod spans;
mod streams;

pub use self::guide::{Guide, Told};
pub use self::spans::Span;
use self::spans::Spans;
use self::streams::{Carried, STREAMS, Streams};
use precache_contract::{PAGE, STEP, STEPS, segment::Method};

/// Trips up to which a reader goes on in leaps, while the optimizer has said nothing, and how long these are.
const PATIENT: u32 = STEPS + 8;
const LEAP: u64 = 1 << 20;

/// Last trips whose pages stay open whatever happens, so that an instruction that needs several gets on.
const RECENT: usize = 4;

/// Cells of the mapping that keep one sentinel each.
const COARSE: u64 = 48;

/// Checkpoints in the open part: the sentinels, and one in front of each reader.
const CHECKPOINTS: usize = COARSE as usize + STREAMS + 1;

/// Trips after which the pattern is judged, and how many of them must have carried a stream on.
const BLOCK: u32 = 64;
const CARRIED: u32 = 16;

/// A trip carries a stream on from this run length.
const RUN: u32 = 8;

/// Single protected pages that remain while the curtain is up because access is random.
const SENTINELS: u64 = 16;

/// Looks at a pattern after which it is called random for good; it is still looked at, but rarely.
const LOOKS: u32 = 5;

/// Milliseconds from the first such look to the next, doubled by each.
const REST: u64 = 20;

/// What to do to the page tables, in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Give the span the program's own protection and lift guards in it.
    Open(Span),
    /// Protect the span.
    Close(Span),
    /// Guard one page of an open window.
    Guard(u64),
    /// Lift the guard of one page of an open window.
    Lift(u64),
}

/// What a trip told about the mapping as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Follow,
    /// Access is random: the curtain has been lifted but for a few sentinels.
    Random,
    /// The same, and so were the last looks.
    GivenUp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Drawn,
    /// Lifted but for sentinels, until the clock says `until`; from then on, after `left` more of them have been hit, or
    /// two neighbours one after the other, the curtain is drawn again. `last`: the one hit before.
    Resting {
        left: u32,
        last: u64,
        until: u64,
    },
    Lifted,
}

/// The protection of one mapping.
pub struct Curtain {
    length: u64,
    distance: u64,
    method: Method,
    /// What is open; the rest is behind the curtain.
    open: Spans,
    /// Start of each checkpoint in the open part, `u64::MAX` where there is none.
    checkpoints: [u64; CHECKPOINTS],
    streams: Streams,
    /// What the last trip opened ahead of a reader whose order is known.
    ahead: Span,
    recent: [u64; RECENT],
    /// When a sentinel was last re-armed.
    rearmed: u64,
    judged: u32,
    carried: u32,
    /// Clock of the first trip of the block being judged.
    since: u64,
    looks: u32,
    state: State,
}

impl Curtain {
    /// For a protected part of `length` bytes with checkpoints every `distance` bytes, both multiples of a page.
    /// The caller closes the whole part first.
    pub const fn new(length: u64, distance: u64, method: Method) -> Self {
        Self {
            length,
            distance,
            method,
            open: Spans::new(),
            checkpoints: [u64::MAX; CHECKPOINTS],
            streams: Streams::new(),
            ahead: Span { start: 0, end: 0 },
            recent: [u64::MAX; RECENT],
            rearmed: 0,
            judged: 0,
            since: 0,
            carried: 0,
            looks: 0,
            state: State::Drawn,
        }
    }

    /// The whole protected part.
    pub fn whole(&self) -> Span {
        Span { start: 0, end: self.length }
    }

    /// For a new curtain: checkpoints are protected as the rest is.
    pub fn do_without_guards(&mut self) {
        self.method = Method::Mprotect;
    }

    /// Opens everything for good: the mapping is not followed any more.
    pub fn lift(&mut self, apply: &mut dyn FnMut(Action)) {
        self.state = State::Lifted;
        self.forget();
        apply(Action::Open(self.whole()));
    }

    /// Whether nothing is protected any more, nor will be.
    pub fn is_lifted(&self) -> bool {
        self.state == State::Lifted
    }

    /// As new, for a process that begins with a copy of this; the caller closes the whole part unless it is lifted.
    pub fn begin_again(&mut self) {
        if !self.is_lifted() {
            self.state = State::Drawn;
        }
        self.forget();
        self.recent.fill(u64::MAX);
        (self.rearmed, self.judged, self.since, self.carried) = (0, 0, 0, 0);
    }

    /// The first page of the span that is protected, while the curtain is drawn.
    pub fn first_closed(&self, span: Span) -> Option<u64> {
        if self.state != State::Drawn {
            return None;
        }
        let behind = self.open.first_gap(span).map(|gap| gap.start);
        let checkpoints = self.checkpoints.iter().filter(|&&at| at != u64::MAX && at < span.end);
        let checkpoint = checkpoints.map(|&at| self.checkpoint(at)).filter(|c| c.end > span.start);
        checkpoint.map(|c| c.start.max(span.start)).chain(behind).min()
    }

    /// Whether nothing of the span can be protected.
    pub fn is_open(&self, span: Span) -> bool {
        match self.state {
            State::Drawn => self.first_closed(span).is_none(),
            State::Resting { .. } => false,
            State::Lifted => true,
        }
    }

    /// What the last trip opened that its reader will read next, and has not read before: empty, unless its order of
    /// reading is known, and is forward.
    pub fn ahead(&self) -> Span {
        self.ahead
    }

    /// What a thread opens that cannot wait for its turn at the curtain: the step around its page.
    pub fn step_around(&self, at: u64) -> Span {
        let start = at - at % STEP;
        Span { start, end: (start + STEP).min(self.length) }
    }

    /// A thread touched the protected page `at` (a multiple of the page size, inside the protected part), and this has
    /// been told; `now` is a clock's reading in milliseconds, from 1.
    ///
    /// Every call makes `at` accessible, and none of the last [`RECENT`] pages that tripped is protected by it. Pages
    /// that tripped are protected again no faster than one a millisecond, while a trip takes microseconds: so an
    /// instruction or loop that needs any number of them gets on.
    pub fn trip(&mut self, at: u64, told: &Told, now: u64, apply: &mut dyn FnMut(Action)) -> Verdict {
        let fallen = self.remember(at);
        self.ahead = Span::default();
        match self.state {
            State::Drawn => {}
            State::Resting { left, last, until } => {
                if now < until || (left > 1 && at.abs_diff(last) != self.spacing()) {
                    self.state = State::Resting { left: left.saturating_sub(1).max(1), last: at, until };
                    self.rest_on(at, fallen, now, apply);
                    return Verdict::Random;
                }
                self.draw_again(apply);
            }
            State::Lifted => {
                apply(Action::Open(page(at)));
                return Verdict::Random;
            }
        }
        if told.distance >= PAGE {
            self.distance = told.distance / PAGE * PAGE;
        }
        self.disarm(at, apply);
        let guide = told.guide(at);
        let is_backward = guide.is_some_and(|guide| guide.is_backward);
        let step = self.step_around(at);
        let carried = self.streams.carry_on(at, self.distance, guide.is_some(), is_backward);
        let is_expected = guide.is_some() && carried.is_some();
        let Carried { stream, from, to } = carried.unwrap_or_else(|| {
            let stream = self.streams.begin(at);
            Carried { stream, from: step.start, to: step.end }
        });
        let run = self.streams.run(stream);
        let open = if is_backward {
            Span { start: self.checkpoint_before(at, told), end: to.max(at + PAGE) }
        } else {
            let end = self.checkpoint_after(at, if guide.is_some() { u32::MAX } else { run }, told);
            // The step in which it began is open from its start.
            Span { start: if from == at && guide.is_none() { step.start } else { from }, end }
        };
        self.streams.expect(stream, open.start, open.end);
        if guide.is_some() && !is_backward {
            self.ahead = self.open.first_gap(Span { start: at, end: open.end }).unwrap_or_default();
        }
        if self.open.insert(open, &self.recent, now != self.rearmed, apply) {
            self.rearmed = now;
        }
        match (is_backward, self.method) {
            (false, _) => self.arm(open.end, apply),
            (true, Method::Mprotect) => open.start >= STEP && self.arm(open.start - STEP, apply),
            (true, Method::Guard) => open.start >= PAGE && self.arm(open.start - PAGE, apply),
        };
        self.leave_sentinel(fallen, now, apply);
        self.judge(is_expected || run >= RUN || self.streams.is_regular(stream), now, apply)
    }

    /// Pushes `at` in at the front of the recent pages; returns the one that fell out at the back.
    fn remember(&mut self, at: u64) -> u64 {
        let known = self.recent.iter().position(|&page| page == at);
        let fallen = if known.is_some() { u64::MAX } else { self.recent[RECENT - 1] };
        self.recent.copy_within(..known.unwrap_or(RECENT - 1), 1);
        self.recent[0] = at;
        fallen
    }

    /// The next place where a reader at `at` should trip.
    fn checkpoint_after(&self, at: u64, run: u32, told: &Told) -> u64 {
        // A reader just before a grid point, at a sentinel's first page, gets on to the one after.
        let from = at + STEP.min(self.distance) - 1;
        let grid = (from / self.distance + 1).saturating_mul(self.distance);
        let next = match run {
            ..=STEPS => self.step_around(at).end,
            // The optimizer's answer is late: it should not find the reader blind for a whole distance.
            ..PATIENT if told.is_silence() => grid.min(at - at % LEAP + LEAP),
            _ => grid,
        };
        next.min(told.after(at)).min(self.length)
    }

    /// Where to open from for a reader that goes backward: what lies before is where it should trip next.
    fn checkpoint_before(&self, at: u64, told: &Told) -> u64 {
        let grid = at.saturating_sub(STEP.min(self.distance)) / self.distance * self.distance;
        grid.max(told.before(at)).min(at)
    }

    /// Bytes of a sentinel's cell.
    fn coarse(&self) -> u64 {
        self.length.div_ceil(COARSE).max(self.distance)
    }

    /// The pages of the checkpoint that begins at `at`.
    fn checkpoint(&self, at: u64) -> Span {
        match self.method {
            Method::Mprotect => Span { start: at, end: at.saturating_add(STEP).min(self.length) },
            Method::Guard => page(at),
        }
    }

    /// Protects the checkpoint at `at` in the open part, unless it is protected already, is behind the curtain, or
    /// holds a page that tripped lately.
    fn arm(&mut self, at: u64, apply: &mut dyn FnMut(Action)) -> bool {
        let span = self.checkpoint(at);
        let taken = self.checkpoints.iter().any(|&c| c != u64::MAX && self.checkpoint(c).overlaps(span));
        if at >= self.length || taken || !self.open.covers(span) || self.recent.iter().any(|&r| span.contains(r)) {
            return false;
        }
        let Some(free) = self.checkpoints.iter_mut().find(|c| **c == u64::MAX) else { return false };
        *free = at;
        apply(match self.method {
            Method::Mprotect => Action::Close(span),
            Method::Guard => Action::Guard(at),
        });
        true
    }

    /// Re-arms a page that tripped some trips ago, if its cell has no checkpoint left.
    fn leave_sentinel(&mut self, at: u64, now: u64, apply: &mut dyn FnMut(Action)) {
        let cell = self.coarse();
        let is_kept = self.checkpoints.iter().any(|&c| c != u64::MAX && c / cell == at / cell);
        if at == u64::MAX || now == self.rearmed || is_kept {
            return;
        }
        let start = match self.method {
            // The step that a reader begins with does not reach into its next one.
            Method::Mprotect => self.step_around(at).start,
            Method::Guard => at,
        };
        if self.arm(start, apply) {
            self.rearmed = now;
        }
    }

    /// Opens the checkpoint that holds `at`, if there is one.
    fn disarm(&mut self, at: u64, apply: &mut dyn FnMut(Action)) {
        let found = self.checkpoints.iter().position(|&c| c != u64::MAX && self.checkpoint(c).contains(at));
        match found.and_then(|i| self.checkpoints.get_mut(i)) {
            Some(entry) => {
                let start = core::mem::replace(entry, u64::MAX);
                apply(match self.method {
                    Method::Mprotect => Action::Open(self.checkpoint(start)),
                    Method::Guard => Action::Lift(start),
                });
            }
            // Another thread opened it in the meantime, or nobody knows why the page is protected: it is opened in
            // any case.
            None if self.open.covers(page(at)) => apply(Action::Open(page(at))),
            None => {}
        }
    }

    /// Every block of trips, asks whether streams were carried on; if hardly any, access is random and the curtain
    /// only costs. So it does if they came faster than storage could deliver what they ask for: something goes round in
    /// circles, and whatever it is must get on.
    fn judge(&mut self, carried: bool, now: u64, apply: &mut dyn FnMut(Action)) -> Verdict {
        if self.judged == 0 {
            self.since = now;
        }
        self.judged += 1;
        self.carried += u32::from(carried);
        if self.judged < BLOCK {
            return Verdict::Follow;
        }
        let random = self.carried < CARRIED || now == self.since;
        (self.judged, self.carried) = (0, 0);
        if !random {
            return Verdict::Follow;
        }
        self.forget();
        apply(Action::Open(self.whole()));
        let looks = self.looks.min(LOOKS);
        self.state = State::Resting { left: 1 << looks, last: u64::MAX, until: now.saturating_add(REST << looks) };
        self.looks += 1;
        let spacing = self.spacing();
        for sentinel in (1..=SENTINELS).map(|n| n * spacing) {
            if spacing > 0 && !self.recent.contains(&sentinel) {
                apply(Action::Close(page(sentinel)));
            }
        }
        if self.looks == LOOKS { Verdict::GivenUp } else { Verdict::Random }
    }

    /// Distance between the sentinels of a mapping that is not followed.
    fn spacing(&self) -> u64 {
        self.length / (SENTINELS + 1) / PAGE * PAGE
    }

    /// A sentinel has been hit while access is random; one that was hit some trips ago is protected again.
    fn rest_on(&mut self, at: u64, fallen: u64, now: u64, apply: &mut dyn FnMut(Action)) {
        apply(Action::Open(page(at)));
        if fallen != u64::MAX && fallen.is_multiple_of(self.spacing().max(PAGE)) && now != self.rearmed {
            self.rearmed = now;
            apply(Action::Close(page(fallen)));
        }
    }

    /// Knows of no stream and no open part any more.
    fn forget(&mut self) {
        self.open.forget();
        self.checkpoints.fill(u64::MAX);
        self.streams.forget();
    }

    fn draw_again(&mut self, apply: &mut dyn FnMut(Action)) {
        self.state = State::Drawn;
        self.whole().without(&self.recent, &mut |span| apply(Action::Close(span)));
    }
}

fn page(at: u64) -> Span {
    Span { start: at, end: at + PAGE }
}

#[cfg(test)]
mod tests;
