//! Access that follows no order: the curtain is lifted but for a few sentinels, and drawn again for another look when these
//! tell of order, later each time.

use super::{Action, Clock, Curtain, Span, State, page};
use precache_contract::PAGE;

/// Trips after which the pattern is judged, and how many of them must have carried a stream on.
const BLOCK: u32 = 64;
const CARRIED: u32 = 16;

/// So many go further than all before them in their block, or it may go round in circles: one instruction needs 34 pages at most
/// (docs/decisions.md, 6).
const ONWARD: u32 = 48;

/// Threads that read in turns begin their records near each other. After so many blocks the optimizer has told them by what
/// they have read together, or they are none.
const TURNS: u32 = 5;
const NEAR: u64 = 8 << 20;

/// A trip carries a stream on from this run length.
pub const RUN: u32 = 8;

/// Single protected pages that remain while the curtain is up because access is random.
pub const SENTINELS: u64 = 16;

/// Looks at a pattern after which it is called random for good; it is still looked at, but rarely.
pub const LOOKS: u32 = 5;

/// Milliseconds from the first such look to the next, doubled by each.
pub const REST: u64 = 20;

/// What a trip told about the mapping as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Follow,
    /// Go on: it has been lifted before.
    Rest,
    /// Access is random: the curtain has been lifted but for a few sentinels.
    Random,
    /// The same, and so were the last looks.
    GivenUp,
}

impl Curtain {
    /// Every block of trips, asks whether streams were carried on; if hardly any, access is random and the curtain
    /// only costs. So it does if they came faster than storage could deliver what they ask for, and most of them to where others
    /// had been: something goes round in circles, and whatever it is must get on. (Who reads what is cached comes as fast, and
    /// always further.)
    pub(super) fn judge(&mut self, at: u64, carried: bool, clock: &Clock, apply: &mut dyn FnMut(Action)) -> Verdict {
        if self.judged == 0 {
            (self.since, self.first, self.farthest, self.onward) = (clock.now(), at, 0, 0);
        }
        let far = at.abs_diff(self.first);
        self.onward += u32::from(far > self.farthest);
        self.farthest = self.farthest.max(far);
        self.judged += 1;
        self.carried += u32::from(carried);
        if self.judged < BLOCK { Verdict::Follow } else { self.judge_block(clock.now(), apply) }
    }

    #[cold]
    fn judge_block(&mut self, now: u64, apply: &mut dyn FnMut(Action)) -> Verdict {
        self.blocks += 1;
        let may_be_turns = 4 * self.near >= 3 * self.begun && self.blocks < TURNS;
        let goes_round = now == self.since && self.onward < ONWARD;
        let random = self.carried < CARRIED && !may_be_turns || goes_round;
        (self.judged, self.carried, self.begun, self.near) = (0, 0, 0, 0);
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

    /// A stream begins at `at`.
    pub(super) fn note_begin(&mut self, at: u64) {
        self.begun += 1;
        self.near += u32::from(self.recent[1].abs_diff(at) <= NEAR);
    }

    /// Distance between the sentinels of a mapping that is not followed.
    fn spacing(&self) -> u64 {
        self.length / (SENTINELS + 1) / PAGE * PAGE
    }

    /// Whether a page of the span may be a sentinel while access is random.
    pub(super) fn may_hold_sentinel(&self, span: Span) -> bool {
        let spacing = self.spacing();
        // That begins in the span, or in the page before it.
        let first = || span.start.saturating_sub(PAGE - 1).next_multiple_of(spacing);
        spacing > 0 && first() < span.end
    }

    /// A sentinel has been hit while access is random: one that was hit some trips ago is protected again, or the curtain is
    /// to be drawn again (`false`).
    #[cold]
    pub(super) fn rest_on(&mut self, at: u64, fallen: u64, now: u64, apply: &mut dyn FnMut(Action)) -> bool {
        let State::Resting { left, last, until } = self.state else { return false };
        if now >= until && (left <= 1 || at.abs_diff(last) == self.spacing()) {
            return false;
        }
        self.state = State::Resting { left: left.saturating_sub(1).max(1), last: at, until };
        apply(Action::Open(page(at)));
        if fallen != u64::MAX && fallen.is_multiple_of(self.spacing().max(PAGE)) && now != self.rearmed {
            self.rearmed = now;
            apply(Action::Close(page(fallen)));
        }
        true
    }

    #[cold]
    pub(super) fn draw_again(&mut self, apply: &mut dyn FnMut(Action)) {
        self.state = State::Drawn;
        self.blocks = 0;
        self.whole().without(&self.recent, &mut |span| apply(Action::Close(span)));
    }
}
