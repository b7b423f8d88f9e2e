//! Checkpoints: one in front of each reader, sentinels where readers tripped, and where the next one lies.

use super::streams::STREAMS;
use super::{Action, Clock, Curtain, Span, State, Told, page};
use precache_contract::{PAGE, STEP, STEPS, segment::Method};

/// Trips up to which a reader goes on in leaps, while the optimizer has said nothing, and how long these are.
const PATIENT: u32 = STEPS + 8;
const LEAP: u64 = 1 << 20;

/// Cells of the mapping that keep one sentinel each.
const COARSE: u64 = 48;

/// Checkpoints in the open part: the sentinels, and one in front of each reader.
pub const CHECKPOINTS: usize = COARSE as usize + STREAMS + 1;

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
        let behind = self.open.first_gap(span).map(|gap| gap.start);
        let checkpoints = self.checkpoints.items().iter().map(|&at| self.checkpoint(at)).filter(|c| c.overlaps(span));
        checkpoints.map(|c| c.start.max(span.start)).chain(behind).min()
    }

    /// Bytes of a sentinel's cell.
    fn coarse(&self) -> u64 {
        self.length.div_ceil(COARSE).max(self.distance)
    }

    /// The pages of the checkpoint that begins at `at`.
    pub(super) fn checkpoint(&self, at: u64) -> Span {
        span_of(self.method, at, self.length)
    }

    /// Protects the checkpoint at `at` in the open part, unless it is protected already, is behind the curtain, or
    /// holds a page that tripped lately.
    #[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
    pub(super) fn arm(&mut self, at: u64, apply: &mut dyn FnMut(Action)) -> bool {
        let span = self.checkpoint(at);
        // Nearly always the front of a reader is behind the curtain: that is asked first.
        if at >= self.length || !self.open.covers(span) || self.recent.iter().any(|&r| span.contains(r)) {
            return false;
        }
        let is_taken = self.checkpoints.items().iter().any(|&c| self.checkpoint(c).overlaps(span));
        if is_taken || self.checkpoints.push(at).is_none() {
            return false;
        }
        apply(match self.method {
            Method::Mprotect => Action::Close(span),
            Method::Guard => Action::Guard(at),
        });
        true
    }

    /// Re-arms a page that tripped some trips ago, if its cell has no checkpoint left but that in `front` of the reader, which
    /// will leave the cell.
    pub(super) fn leave_sentinel(&mut self, at: u64, front: Option<u64>, clock: &Clock, apply: &mut dyn FnMut(Action)) {
        if at == u64::MAX {
            return;
        }
        let front = front.unwrap_or(u64::MAX);
        // A reader leaves several trips in a cell: that the first one's is there need not be looked up for the next.
        if self.kept.is_some_and(|(cell, kept)| cell.contains(at) && kept != front) {
            return;
        }
        let start = floor(at, self.coarse());
        let cell = Span { start, end: start.saturating_add(self.coarse()) };
        let kept = self.checkpoints.items().iter().copied().find(|&c| cell.contains(c) && c != front);
        self.kept = kept.map(|kept| (cell, kept));
        if kept.is_some() || !self.is_another_tick(clock) {
            return;
        }
        let start = match self.method {
            // The step that a reader begins with does not reach into its next one.
            Method::Mprotect => self.step_around(at).start,
            Method::Guard => at,
        };
        if self.arm(start, apply) {
            self.rearmed = clock.now();
        }
    }

    /// Whether the clock has moved on since a sentinel was re-armed. Asking it is much of a trip's own work: the more
    /// trips a tick has, the fewer of them ask, at least each eighth.
    fn is_another_tick(&mut self, clock: &Clock) -> bool {
        self.unarmed = self.unarmed.wrapping_add(1);
        let asks = self.unarmed.is_power_of_two() || self.unarmed.is_multiple_of(8);
        let is_another = asks && clock.now() != self.rearmed;
        if is_another {
            self.unarmed = 0;
        }
        is_another
    }

    /// Opens the checkpoint that holds `at`, if there is one.
    pub(super) fn disarm(&mut self, at: u64, apply: &mut dyn FnMut(Action)) {
        if !self.open.covers(page(at)) {
            // Nearly always it is the curtain, in front of a reader: there are none.
            return;
        }
        // Another thread opened it in the meantime, or nobody knows why the page is protected: it is opened in any case.
        let width = width_of(self.method);
        if !self.take(|start| at.wrapping_sub(start) < width, apply) {
            apply(Action::Open(page(at)));
        }
    }

    /// A part has been closed: what lies in it is behind the curtain, and no checkpoint any more.
    #[cold]
    pub(super) fn forget_closed(&mut self) {
        let (open, method, length) = (&self.open, self.method, self.length);
        while self.checkpoints.take(|&start| !open.covers(span_of(method, start, length))).is_some() {}
        self.kept = None;
    }

    /// Opens the checkpoints that begin in the span.
    pub(super) fn disarm_all(&mut self, span: Span, apply: &mut dyn FnMut(Action)) {
        while self.take(|start| span.contains(start), apply) {}
    }

    /// Opens a checkpoint whose start is wanted; `false`: there is none.
    fn take(&mut self, is_wanted: impl Fn(u64) -> bool, apply: &mut dyn FnMut(Action)) -> bool {
        let taken = self.checkpoints.take(|&start| is_wanted(start));
        if let Some(start) = taken {
            self.kept = None;
            apply(match self.method {
                Method::Mprotect => Action::Open(self.checkpoint(start)),
                Method::Guard => Action::Lift(start),
            });
        }
        taken.is_some()
    }
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

/// Bytes of a checkpoint that does not reach beyond the mapping's end.
fn width_of(method: Method) -> u64 {
    match method {
        Method::Mprotect => STEP,
        Method::Guard => PAGE,
    }
}
