//! Where a mapping is protected, and what changes when a checkpoint is hit. Pure: no calls, no clock.
//!
//! A new mapping is protected as a whole, one `PROT_NONE` area: the **curtain**. Every reader opens a **window** in
//! it where it first faults, in small steps at first, so that its start address and its pattern are seen exactly;
//! then up to the next **checkpoint** of the grid. The window's trail is closed again behind the reader, which
//! re-arms what the next epoch must trip.
//!
//! ```text
//!        closed         trail     reader      checkpoint              closed
//!  |################|.............R..........|##################################|
//!                   start                    end = next multiple of `distance`,
//!                                                  or a threshold that lies before it
//! ```
//!
//! With guard regions the window is opened a whole **zone** ahead, and the checkpoints inside it are guarded pages:
//! cheaper than moving the curtain, and without the lock that this takes.
//!
//! So the whole mapping costs two mapped areas per stream, whatever its length, and a jump to anywhere is seen.
//!
//! Offsets are bytes from the start of the protected part; pages are given by the offset of their first byte.

use precache_contract::{PAGE, segment::Method};

/// Readers of one mapping that are followed at a time; the one that has not moved for longest gives way.
const WINDOWS: usize = 32;

/// What is opened at a time while the pattern is not known yet: what one fault maps around itself (`fault_around_bytes`).
pub const STEP: u64 = 64 << 10;

/// Trips in small steps before a window opens up to the next checkpoint.
const LEARN: u32 = 4;

/// Last trips whose pages stay open whatever happens, so that an instruction that needs several gets on.
const RECENT: usize = 4;

/// Checkpoints in a zone of guarded pages.
const ZONE: u64 = 16;

/// Trips after which the pattern is judged, and how many of them must have carried a stream on.
const BLOCK: u32 = 64;
const CARRIED: u32 = 16;

/// A trip carries a stream on from this run length.
const RUN: u32 = 8;

/// Single protected pages that remain while the curtain is up because access is random.
const SENTINELS: u64 = 16;

/// Times that a pattern judged random is looked at again.
const SECOND_LOOKS: u32 = 4;

/// Part of the mapping: `start..end` in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
}

impl Span {
    fn contains(self, at: u64) -> bool {
        (self.start..self.end).contains(&at)
    }

    fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

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
}

#[derive(Clone, Copy, Default)]
struct Window {
    open: Span,
    /// Trips that carried this stream on, one after the other.
    run: u32,
    /// Clock of its last trip; 0: unused.
    stamp: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Drawn,
    /// Lifted but for sentinels; after `left` more of them have been hit, the curtain is drawn again.
    Resting {
        left: u32,
    },
    Lifted,
}

/// The protection of one mapping.
pub struct Curtain {
    length: u64,
    distance: u64,
    method: Method,
    windows: [Window; WINDOWS],
    recent: [u64; RECENT],
    clock: u32,
    judged: u32,
    carried: u32,
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
            windows: [Window { open: Span { start: 0, end: 0 }, run: 0, stamp: 0 }; WINDOWS],
            recent: [u64::MAX; RECENT],
            clock: 0,
            judged: 0,
            carried: 0,
            looks: 0,
            state: State::Drawn,
        }
    }

    /// The whole protected part.
    pub fn whole(&self) -> Span {
        Span { start: 0, end: self.length }
    }

    /// Opens everything for good: the mapping is not followed any more.
    pub fn lift(&mut self, apply: &mut dyn FnMut(Action)) {
        self.state = State::Lifted;
        self.windows = [Window::default(); WINDOWS];
        apply(Action::Open(self.whole()));
    }

    /// Whether nothing is protected any more, nor will be.
    pub fn is_lifted(&self) -> bool {
        self.state == State::Lifted
    }

    /// As new, for a process that begins with a copy of this; the caller closes the whole part unless it is lifted.
    pub fn begin_again(&mut self) {
        let state = if self.is_lifted() { State::Lifted } else { State::Drawn };
        *self = Self { state, looks: self.looks, ..Self::new(self.length, self.distance, self.method) };
    }

    /// The first page of the span that no window holds, while the curtain is drawn.
    pub fn first_closed(&self, span: Span) -> Option<u64> {
        let mut at = span.start;
        while self.state == State::Drawn && at < span.end {
            match self.find(|w| w.open.contains(at)).and_then(|i| self.windows.get(i)) {
                Some(window) => at = window.open.end,
                None => return Some(at),
            }
        }
        None
    }

    /// What a thread opens that cannot wait for its turn at the curtain: the step around its page.
    pub fn step_around(&self, at: u64) -> Span {
        let start = at - at % STEP;
        Span { start, end: (start + STEP).min(self.length) }
    }

    /// A thread touched the protected page `at` (a multiple of the page size, inside the protected part).
    /// `thresholds` are offsets at which the optimizer wants to hear from the reader.
    ///
    /// Every call makes `at` accessible, and none of the last [`RECENT`] pages that tripped is protected by it.
    pub fn trip(&mut self, at: u64, thresholds: &[u64], apply: &mut dyn FnMut(Action)) -> Verdict {
        self.clock = self.clock.wrapping_add(1).max(1);
        let rearmed = self.remember(at);
        match self.state {
            State::Drawn => {}
            State::Resting { left } if left > 1 => {
                self.state = State::Resting { left: left - 1 };
                apply(Action::Open(page(at)));
                return Verdict::Random;
            }
            State::Resting { .. } => self.draw_again(apply),
            State::Lifted => {
                apply(Action::Open(page(at)));
                return Verdict::Random;
            }
        }
        let carried = if let Some(i) = self.find(|w| w.open.contains(at)) {
            self.hit_inside(i, at, thresholds, rearmed, apply)
        } else if let Some(i) = self.find(|w| (w.open.end..w.open.end + Self::reach(w, self.distance)).contains(&at)) {
            self.carry_on(i, at, thresholds, apply)
        } else {
            self.open_new(at, thresholds, apply);
            false
        };
        self.judge(carried, at, apply)
    }

    fn find(&self, holds: impl Fn(&Window) -> bool) -> Option<usize> {
        self.windows.iter().position(|w| w.stamp != 0 && holds(w))
    }

    /// How far past its end a window takes a trip for its own stream's.
    fn reach(window: &Window, distance: u64) -> u64 {
        if window.run >= LEARN { distance.max(STEP) } else { STEP }
    }

    /// Pushes `at` out at the front of the recent pages and returns the one that fell out at the back.
    fn remember(&mut self, at: u64) -> u64 {
        if self.recent[0] == at {
            return u64::MAX;
        }
        let oldest = self.recent[RECENT - 1];
        self.recent.copy_within(..RECENT - 1, 1);
        self.recent[0] = at;
        if self.recent[1..].contains(&oldest) { u64::MAX } else { oldest }
    }

    /// A guarded page of an open window, or a page that another thread opened in the meantime.
    fn hit_inside(
        &mut self,
        i: usize,
        at: u64,
        thresholds: &[u64],
        rearmed: u64,
        apply: &mut dyn FnMut(Action),
    ) -> bool {
        let clock = self.clock;
        let Some(window) = self.windows.get_mut(i) else { return false };
        window.stamp = clock;
        window.run = window.run.saturating_add(1);
        let (open, run) = (window.open, window.run);
        match self.method {
            Method::Mprotect => apply(Action::Open(page(at))),
            Method::Guard => {
                apply(Action::Lift(at));
                self.guard_thresholds(
                    at,
                    Span { start: at, end: self.grid_after(at).min(open.end) },
                    thresholds,
                    apply,
                );
                if open.contains(rearmed) && rearmed != at {
                    apply(Action::Guard(rearmed));
                }
            }
        }
        run >= RUN
    }

    /// The reader reached the end of its window, or passed it by less than a distance.
    fn carry_on(&mut self, i: usize, at: u64, thresholds: &[u64], apply: &mut dyn FnMut(Action)) -> bool {
        let clock = self.clock;
        let Some(window) = self.windows.get_mut(i) else { return false };
        window.stamp = clock;
        window.run = window.run.saturating_add(1);
        let (old, run) = (window.open, window.run);
        let end = self.end_of_opening(at, run, thresholds);
        // A window that begins within what this one now opens is swallowed by it.
        let end = end.max(old.end);
        self.open_and_guard(at, Span { start: old.end, end }, thresholds, apply);
        let cut = self.trail(Span { start: old.start, end }, at);
        if cut > old.start {
            apply(Action::Close(Span { start: old.start, end: cut }));
        }
        if let Some(window) = self.windows.get_mut(i) {
            window.open = Span { start: cut, end };
        }
        self.swallow(i);
        run >= RUN
    }

    /// A page that no stream was expected to touch.
    fn open_new(&mut self, at: u64, thresholds: &[u64], apply: &mut dyn FnMut(Action)) {
        let Some(i) = (0..WINDOWS).min_by_key(|&i| self.windows.get(i).map_or(0, |w| w.stamp)) else { return };
        let step = self.step_around(at);
        let open = Span { start: step.start, end: step.end.min(self.boundary_after(at, thresholds)) };
        let clock = self.clock;
        let Some(window) = self.windows.get_mut(i) else { return };
        let old = core::mem::replace(window, Window { open, run: 1, stamp: clock });
        if old.stamp != 0 {
            self.close_but_recent(old.open, apply);
        }
        // Last, for the old window may have held part of the new one's step.
        self.open_and_guard(at, open, &[], apply);
        self.swallow(i);
    }

    /// Drops other windows that window `i` now covers, and gives those that overlap it the rest.
    fn swallow(&mut self, i: usize) {
        let Some(grown) = self.windows.get(i).map(|w| w.open) else { return };
        for (j, other) in self.windows.iter_mut().enumerate() {
            if i == j || other.stamp == 0 || other.open.end <= grown.start || other.open.start >= grown.end {
                continue;
            }
            if other.open.end > grown.end {
                other.open.start = grown.end;
            } else if other.open.start < grown.start {
                other.open.end = grown.start;
            } else {
                *other = Window::default();
            }
        }
    }

    /// Closes what a window held except the pages that tripped last.
    fn close_but_recent(&self, open: Span, apply: &mut dyn FnMut(Action)) {
        let mut from = open.start;
        while from < open.end {
            let next = self.recent.iter().copied().filter(|&r| r >= from && r < open.end).min().unwrap_or(open.end);
            let span = Span { start: from, end: next };
            if !span.is_empty() {
                apply(Action::Close(span));
            }
            from = next + PAGE;
        }
    }

    fn open_and_guard(&self, at: u64, span: Span, thresholds: &[u64], apply: &mut dyn FnMut(Action)) {
        if span.is_empty() {
            return;
        }
        apply(Action::Open(span));
        if self.method == Method::Guard {
            let mut checkpoint = self.grid_after(at);
            while checkpoint < span.end {
                if checkpoint >= span.start && !self.recent.contains(&checkpoint) {
                    apply(Action::Guard(checkpoint));
                }
                checkpoint += self.distance;
            }
            self.guard_thresholds(at, span, thresholds, apply);
        }
    }

    fn guard_thresholds(&self, at: u64, span: Span, thresholds: &[u64], apply: &mut dyn FnMut(Action)) {
        for threshold in thresholds.iter().map(|t| t - t % PAGE) {
            if threshold > at && span.contains(threshold) && !self.recent.contains(&threshold) {
                apply(Action::Guard(threshold));
            }
        }
    }

    fn grid_after(&self, at: u64) -> u64 {
        (at / self.distance + 1).saturating_mul(self.distance)
    }

    /// The next place after `at` where the reader should trip.
    fn boundary_after(&self, at: u64, thresholds: &[u64]) -> u64 {
        let thresholds = thresholds.iter().map(|t| t - t % PAGE).filter(|&t| t > at);
        thresholds.fold(self.grid_after(at), u64::min).min(self.length)
    }

    fn end_of_opening(&self, at: u64, run: u32, thresholds: &[u64]) -> u64 {
        let boundary = self.boundary_after(at, thresholds);
        if run < LEARN {
            return self.step_around(at).end.min(boundary);
        }
        match self.method {
            Method::Mprotect => boundary,
            Method::Guard => {
                let zone = self.distance.saturating_mul(ZONE);
                (at / zone + 1).saturating_mul(zone).min(self.length)
            }
        }
    }

    /// Up to where the trail of a window can be closed: two distances behind the reader, in front of every page that
    /// tripped lately, and with guards no less than a zone at a time.
    fn trail(&self, open: Span, at: u64) -> u64 {
        let behind = (at - at % self.distance).saturating_sub(2 * self.distance);
        let cut = self.recent.iter().copied().filter(|&r| open.contains(r)).fold(behind, u64::min);
        let least = match self.method {
            Method::Mprotect => PAGE,
            Method::Guard => self.distance.saturating_mul(ZONE),
        };
        if cut >= open.start.saturating_add(least) { cut } else { open.start }
    }

    /// Every block of trips, asks whether streams were carried on; if hardly any, access is random and the curtain
    /// only costs.
    fn judge(&mut self, carried: bool, at: u64, apply: &mut dyn FnMut(Action)) -> Verdict {
        self.judged += 1;
        self.carried += u32::from(carried);
        if self.judged < BLOCK {
            return Verdict::Follow;
        }
        let random = self.carried < CARRIED;
        (self.judged, self.carried) = (0, 0);
        if !random {
            return Verdict::Follow;
        }
        self.windows = [Window::default(); WINDOWS];
        apply(Action::Open(self.whole()));
        if self.looks >= SECOND_LOOKS {
            self.state = State::Lifted;
            return Verdict::Random;
        }
        self.state = State::Resting { left: 1 << self.looks };
        self.looks += 1;
        let spacing = self.length / (SENTINELS + 1) / PAGE * PAGE;
        if spacing > 0 {
            for sentinel in (1..=SENTINELS).map(|n| n * spacing) {
                if sentinel != at && !self.recent.contains(&sentinel) {
                    apply(Action::Close(page(sentinel)));
                }
            }
        }
        Verdict::Random
    }

    fn draw_again(&mut self, apply: &mut dyn FnMut(Action)) {
        self.state = State::Drawn;
        self.close_but_recent(self.whole(), apply);
    }
}

fn page(at: u64) -> Span {
    Span { start: at, end: at + PAGE }
}

#[cfg(test)]
mod tests;
