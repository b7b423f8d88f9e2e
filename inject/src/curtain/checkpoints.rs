//! Checkpoints: one in front of each reader, sentinels where readers tripped, and where the next one lies.

use super::streams::STREAMS;
use super::{Action, Clock, Curtain, Span, State, Told, page};
use precache_contract::{PAGE, STEP, STEPS, segment::Method};

/// Trips up to which a reader goes on in leaps, while the optimizer has said nothing, and how long these are.
const PATIENT: u32 = STEPS + 8;
const LEAP: u64 = 1 << 20;

/// Cells of the mapping that keep one sentinel each.
const COARSE: u64 = 48;

/// From one re-armed sentinel to the next: a millisecond, and another one for so many trips meanwhile, up to the longest pause.
const DENSE: u32 = 12;
const LONGEST: u64 = 8;

/// Checkpoints in the open part: the sentinels, one in front of each reader, a stop, and the first page of a pass.
pub const CHECKPOINTS: usize = COARSE as usize + STREAMS + 2;

/// One in the open part. A mapping's entry is a page in all: what it is takes a bit that no multiple of a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint(u64);

impl Checkpoint {
    /// A reader was there, so another one may come there, or the same one again.
    pub const fn sentinel(start: u64) -> Self {
        Self(start)
    }

    /// A reader may come there, and may leap over it.
    pub const fn front(start: u64) -> Self {
        Self(start | 1)
    }

    pub fn start(self) -> u64 {
        self.0 & !1
    }

    fn is_sentinel(self) -> bool {
        self.0 & 1 == 0
    }
}

impl Curtain {
    /// The next place where a reader at `at` should trip.
    #[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
    pub(super) fn checkpoint_after(&self, at: u64, run: u32, told: &Told) -> u64 {
        // A reader just before a grid point, at a sentinel's first page, gets on to the one after.
        let from = at + STEP.min(self.distance) - 1;
        let grid = floor(from, self.distance).saturating_add(self.distance);
        let next = match run {
            ..=STEPS => self.step_around(at).end,
            _ if self.distance == STEP => self.step_around(at).end,
            // The optimizer's answer is late: it should not find the reader blind for a whole distance.
            ..PATIENT if told.is_silence() => grid.min(at - at % LEAP + LEAP),
            _ => grid,
        };
        next.min(told.after(at)).min(self.length)
    }

    /// Where to open from for a reader that goes backward: what lies before is where it should trip next.
    pub(super) fn checkpoint_before(&self, at: u64, told: &Told) -> u64 {
        let grid = floor(at.saturating_sub(STEP.min(self.distance)), self.distance);
        grid.max(told.before(at)).min(at)
    }

    /// The first page of the span that is protected, while the curtain is drawn.
    pub fn first_closed(&self, span: Span) -> Option<u64> {
        if self.state != State::Drawn {
            return None;
        }
        let mut first = self.open.first_gap(span).map_or(u64::MAX, |gap| gap.start);
        let mut take_in = |closed: Span| {
            if closed.overlaps(span) {
                first = first.min(closed.start.max(span.start));
            }
        };
        take_in(self.net);
        self.checkpoints.items().iter().for_each(|c| take_in(self.checkpoint(c.start())));
        (first < u64::MAX).then_some(first)
    }

    /// Bytes of a sentinel's cell.
    fn coarse(&self) -> u64 {
        self.length.div_ceil(COARSE).max(self.distance)
    }

    /// Bytes of a checkpoint that does not reach beyond the mapping's end.
    pub(super) fn width(&self) -> u64 {
        width_of(self.method)
    }

    /// The pages of the checkpoint that begins at `at`.
    pub(super) fn checkpoint(&self, at: u64) -> Span {
        span_of(self.method, at, self.length)
    }

    /// Protects a checkpoint in the open part, unless it is protected already, is behind the curtain, or holds a page that tripped
    /// lately.
    #[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
    pub(super) fn arm(&mut self, checkpoint: Checkpoint, apply: &mut dyn FnMut(Action)) -> bool {
        let at = checkpoint.start();
        let span = self.checkpoint(at);
        // Nearly always the front of a reader is behind the curtain: that is asked first.
        if at >= self.length || !self.open.covers(span) || self.recent.iter().any(|&r| span.contains(r)) {
            return false;
        }
        let is_taken = self.net.overlaps(span)
            || self.checkpoints.items().iter().any(|c| self.checkpoint(c.start()).overlaps(span));
        if is_taken
            || self.checkpoints.is_full() && !self.make_room(apply)
            || self.checkpoints.push(checkpoint).is_none()
        {
            return false;
        }
        apply(match self.method {
            Method::Mprotect => Action::Close(span),
            Method::Guard => Action::Guard(at),
        });
        true
    }

    /// Opens a checkpoint that a reader has leapt over; `false`: there is none.
    #[cold]
    fn make_room(&mut self, apply: &mut dyn FnMut(Action)) -> bool {
        let (streams, width) = (&self.streams, self.width());
        let is_leapt_over = |c: &Checkpoint| !c.is_sentinel() && !streams.come_to(c.start(), width);
        let leapt_over = self.checkpoints.items().iter().copied().find(is_leapt_over);
        leapt_over.is_some_and(|leapt_over| self.take(leapt_over.start(), 1, apply))
    }

    /// For a reader at `at` that goes backward or skips: the net to which one that `skips` will come, for it may leap over its
    /// front; and as any sentinel, but whatever else its cell holds, the first page of its next pass.
    #[cold]
    pub(super) fn arm_stops(&mut self, at: u64, skips: bool, clock: &Clock, apply: &mut dyn FnMut(Action)) {
        if skips {
            self.cast_net(at, apply);
        }
        let first = self.stops.first / PAGE * PAGE;
        if first > 0 && self.may_rearm(clock) && self.arm(Checkpoint::sentinel(first), apply) {
            self.note_rearmed(clock);
        }
    }

    /// Moves the net to the next stop of a reader at `at`. Wherever its next record begins in the net, there it trips: where it
    /// was told a few pages off, it does not leap over it.
    fn cast_net(&mut self, at: u64, apply: &mut dyn FnMut(Action)) {
        let stop = self.stops.next(at, self.length, self.goes_backward);
        if stop == u64::MAX || self.net.contains(stop) {
            return;
        }
        let Span { start, end } = self.checkpoint(stop);
        let [before, after] = [self.stops.before, self.stops.after].map(|pages| u64::from(pages) * PAGE);
        let after = stop.saturating_add(after).min(self.length);
        let net = Span { start: start.saturating_sub(before), end: end.max(after) };
        let last = self.net;
        self.lift_net(last.start, apply);
        // A record that is being read already lies in no net.
        if !self.open.covers(net) || self.recent.iter().any(|&page| net.contains(page)) {
            self.arm(Checkpoint::front(stop), apply);
        } else {
            // Also one that reaches into it.
            self.disarm_all(Span { start: net.start.saturating_sub(self.width() - PAGE), end: net.end }, apply);
            self.net = net;
            apply(Action::Close(net));
        }
        // Another reader comes to it, or this one after all.
        if !last.is_empty() {
            let stop = if self.goes_backward { last.start } else { last.end.saturating_sub(self.width()) };
            self.arm(Checkpoint::front(stop), apply);
        }
    }

    /// Opens the net if it holds `at`, and tells whether it does.
    pub(super) fn lift_net(&mut self, at: u64, apply: &mut dyn FnMut(Action)) -> bool {
        let holds = self.net.contains(at);
        if holds {
            apply(Action::Open(core::mem::take(&mut self.net)));
        }
        holds
    }

    /// Re-arms a page that tripped some trips ago, if its cell has no sentinel.
    pub(super) fn leave_sentinel(&mut self, at: u64, clock: &Clock, apply: &mut dyn FnMut(Action)) {
        if at == u64::MAX {
            return;
        }
        // A reader leaves several trips in a cell: that the first one's is there need not be looked up for the next.
        if self.kept.contains(at) {
            return;
        }
        let start = floor(at, self.coarse());
        let cell = Span { start, end: start.saturating_add(self.coarse()) };
        let is_kept = |c: &Checkpoint| c.is_sentinel() && cell.contains(c.start());
        if self.checkpoints.items().iter().any(is_kept) {
            self.kept = cell;
            return;
        }
        if !self.is_time(clock) {
            return;
        }
        let start = match self.method {
            // The step that a reader begins with does not reach into its next one.
            Method::Mprotect => self.step_around(at).start,
            Method::Guard => at,
        };
        if self.arm(Checkpoint::sentinel(start), apply) {
            self.note_rearmed(clock);
        }
    }

    /// Whether a sentinel may be re-armed. Asking the clock is much of a trip's own work: the more trips could have left one, the
    /// fewer of them ask, at least each eighth.
    fn is_time(&mut self, clock: &Clock) -> bool {
        self.unarmed = self.unarmed.wrapping_add(1);
        let asks = self.unarmed.is_power_of_two() || self.unarmed.is_multiple_of(8);
        let is_time = asks && self.may_rearm(clock);
        if is_time {
            self.unarmed = 0;
        }
        is_time
    }

    fn may_rearm(&self, clock: &Clock) -> bool {
        may_rearm(self.rearmed, self.trips, clock)
    }

    pub(super) fn note_rearmed(&mut self, clock: &Clock) {
        (self.rearmed, self.trips) = (clock.now(), 0);
    }

    /// Opens the checkpoint that holds `at`, if there is one.
    pub(super) fn disarm(&mut self, at: u64, apply: &mut dyn FnMut(Action)) {
        if !self.open.covers(page(at)) {
            // Nearly always it is the curtain, in front of a reader: there are none.
            return;
        }
        // Another thread opened it in the meantime, or nobody knows why the page is protected: it is opened in any case.
        let width = self.width();
        if !self.take(at.wrapping_sub(width - 1), width, apply) {
            apply(Action::Open(page(at)));
        }
    }

    /// A part has been closed: what lies in it is behind the curtain, and no checkpoint any more.
    #[cold]
    pub(super) fn forget_closed(&mut self) {
        let (open, method, length) = (&self.open, self.method, self.length);
        while self.checkpoints.take(|c| !open.covers(span_of(method, c.start(), length))).is_some() {}
        self.kept = Span::default();
        if !self.open.covers(self.net) {
            self.net = Span::default();
        }
    }

    /// Opens the checkpoints that begin in the span.
    pub(super) fn disarm_all(&mut self, span: Span, apply: &mut dyn FnMut(Action)) {
        if self.net.overlaps(span) {
            self.lift_net(self.net.start, apply);
        }
        while self.take(span.start, span.end - span.start, apply) {}
    }

    /// Opens a checkpoint that begins in so many bytes from `first` on; `false`: there is none.
    #[inline(never)]
    fn take(&mut self, first: u64, length: u64, apply: &mut dyn FnMut(Action)) -> bool {
        let taken = self.checkpoints.take(|c| c.start().wrapping_sub(first) < length);
        if let Some(start) = taken.map(Checkpoint::start) {
            self.kept = Span::default();
            apply(match self.method {
                Method::Mprotect => Action::Open(self.checkpoint(start)),
                Method::Guard => Action::Lift(start),
            });
        }
        taken.is_some()
    }
}

/// Whether what tripped may be closed again, so many trips after that was done last: no sooner than a millisecond later, and longer
/// where trips come one upon the other. An instruction that needs many pages may spend longer than a millisecond on its way through
/// them, for each trip may close the next one's checkpoint or net; with each sentinel it would begin anew.
pub(super) fn may_rearm(rearmed: u64, trips: u32, clock: &Clock) -> bool {
    let pause = (1 + u64::from(trips / DENSE)).min(LONGEST);
    clock.now().saturating_sub(rearmed) >= pause
}

/// The last multiple of `unit` up to `at`. A division takes as long as twenty other instructions, and nearly always the unit is a
/// power of two.
pub(super) fn floor(at: u64, unit: u64) -> u64 {
    if unit.is_power_of_two() { at & !(unit - 1) } else { at - at % unit }
}

fn span_of(method: Method, at: u64, length: u64) -> Span {
    let end = at.saturating_add(width_of(method));
    Span { start: at, end: if method == Method::Mprotect { end.min(length) } else { end } }
}

fn width_of(method: Method) -> u64 {
    match method {
        Method::Mprotect => STEP,
        Method::Guard => PAGE,
    }
}
