//! Checkpoints in the open part: one in front of each reader, and sentinels where readers tripped.

use super::streams::STREAMS;
use super::{Action, Clock, Curtain, Span, State, page};
use precache_contract::{STEP, segment::Method};

/// Cells of the mapping that keep one sentinel each.
const COARSE: u64 = 48;

/// Checkpoints in the open part: the sentinels, and one in front of each reader.
pub const CHECKPOINTS: usize = COARSE as usize + STREAMS + 1;

impl Curtain {
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
    pub(super) fn arm(&mut self, at: u64, apply: &mut dyn FnMut(Action)) -> bool {
        let span = self.checkpoint(at);
        let taken = self.checkpoints.items().iter().any(|&c| self.checkpoint(c).overlaps(span));
        if at >= self.length || taken || !self.open.covers(span) || self.recent.iter().any(|&r| span.contains(r)) {
            return false;
        }
        if self.checkpoints.push(at).is_none() {
            return false;
        }
        apply(match self.method {
            Method::Mprotect => Action::Close(span),
            Method::Guard => Action::Guard(at),
        });
        true
    }

    /// Re-arms a page that tripped some trips ago, if its cell has no checkpoint left.
    pub(super) fn leave_sentinel(&mut self, at: u64, clock: &Clock, apply: &mut dyn FnMut(Action)) {
        if at == u64::MAX {
            return;
        }
        let start = at - at % self.coarse();
        let cell = Span { start, end: start.saturating_add(self.coarse()) };
        if self.checkpoints.items().iter().any(|&c| cell.contains(c)) || clock.now() == self.rearmed {
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

    /// Opens the checkpoint that holds `at`, if there is one.
    pub(super) fn disarm(&mut self, at: u64, apply: &mut dyn FnMut(Action)) {
        let (method, length) = (self.method, self.length);
        match self.checkpoints.take(|&start| span_of(method, start, length).contains(at)) {
            Some(start) => apply(match method {
                Method::Mprotect => Action::Open(self.checkpoint(start)),
                Method::Guard => Action::Lift(start),
            }),
            // Another thread opened it in the meantime, or nobody knows why the page is protected: it is opened in
            // any case.
            None if self.open.covers(page(at)) => apply(Action::Open(page(at))),
            None => {}
        }
    }
}

fn span_of(method: Method, at: u64, length: u64) -> Span {
    match method {
        Method::Mprotect => Span { start: at, end: at.saturating_add(STEP).min(length) },
        Method::Guard => page(at),
    }
}
