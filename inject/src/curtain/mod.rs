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
//! it one by one; one that skips would leap over most of these, and gets **stops** where the optimizer tells that it reads.
//!
//! So a mapping costs a bounded number of kernel mappings, whatever its length; every jump to what was never touched is
//! seen, and jumps elsewhere at the next sentinel.
//!
//! Offsets are bytes from the start of the protected part; pages are given by the offset of their first byte.

mod checkpoints;
mod clock;
mod guide;
mod list;
mod random;
mod spans;
mod streams;

use self::checkpoints::{CHECKPOINTS, Checkpoint, floor, may_rearm};
pub use self::clock::Clock;
use self::guide::Stops;
pub use self::guide::{Guide, Told};
use self::list::List;
use self::random::RUN;
pub use self::random::Verdict;
pub use self::spans::Span;
use self::spans::Spans;
use self::streams::{Carried, Streams};
use precache_contract::{PAGE, STEP, segment::Method};

/// Last trips whose pages stay open whatever happens, so that an instruction that needs several gets on.
const RECENT: usize = 4;

/// What was told before holds for one trip with no word of any order for each so many bytes of spacing: for 64 where small steps are
/// asked for, as the order seems to be another one.
const UNTOLD: u64 = STEP / 64;

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
    /// Those in the open part.
    checkpoints: List<Checkpoint, CHECKPOINTS>,
    /// The cell of a sentinel: that which was last found where a trip could have left another.
    kept: Span,
    /// What was told last of where a reader stops, and of its direction.
    stops: Stops,
    goes_backward: bool,
    /// Trips since.
    untold: u32,
    /// Closed for a reader that skips: the stop to which it will come next, and what it leaves out in front of that. It lies in
    /// the open part, and no checkpoint in it.
    net: Span,
    streams: Streams,
    /// What the last trip opened ahead of a reader whose order is known.
    ahead: Span,
    recent: [u64; RECENT],
    /// Where each of these leaves a sentinel.
    sentinels: [u64; RECENT],
    /// When a sentinel was last re-armed, trips since, and how many of them could have left another.
    rearmed: u64,
    trips: u32,
    unarmed: u32,
    judged: u32,
    carried: u32,
    /// Streams that began, and those of them that did so near the trip before.
    begun: u32,
    near: u32,
    /// Blocks judged since the curtain was drawn.
    blocks: u32,
    /// Clock and place of the first trip of the block being judged, how far from there the others were, and how many of them went
    /// farther than those before.
    since: u64,
    first: u64,
    farthest: u64,
    onward: u32,
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
            checkpoints: List::new(Checkpoint::front(0)),
            kept: Span { start: 0, end: 0 },
            stops: Stops::NONE,
            goes_backward: false,
            untold: 0,
            net: Span { start: 0, end: 0 },
            streams: Streams::new(),
            ahead: Span { start: 0, end: 0 },
            recent: [u64::MAX; RECENT],
            sentinels: [u64::MAX; RECENT],
            rearmed: 0,
            trips: 0,
            unarmed: 0,
            judged: 0,
            since: 0,
            first: 0,
            farthest: 0,
            onward: 0,
            carried: 0,
            begun: 0,
            near: 0,
            blocks: 0,
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
        self.sentinels.fill(u64::MAX);
        (self.rearmed, self.trips, self.unarmed) = (0, 0, 0);
        (self.judged, self.since, self.carried) = (0, 0, 0);
        (self.begun, self.near, self.blocks) = (0, 0, 0);
    }

    /// Whether nothing of the span can be protected.
    pub fn is_open(&self, span: Span) -> bool {
        match self.state {
            State::Drawn => self.first_closed(span).is_none(),
            State::Resting { .. } => !self.may_hold_sentinel(span),
            State::Lifted => true,
        }
    }

    /// What the last trip opened that its reader will read next, and has not read before: empty, unless pages are mapped
    /// ahead, and its order of reading is known, and is forward.
    pub fn ahead(&self) -> Span {
        self.ahead
    }

    /// What a thread opens that cannot wait for its turn at the curtain: the step around its page.
    pub fn step_around(&self, at: u64) -> Span {
        let start = at - at % STEP;
        Span { start, end: (start + STEP).min(self.length) }
    }

    /// A thread touched the protected page `at` (a multiple of the page size, inside the protected part), and this has
    /// been told.
    ///
    /// Every call makes `at` accessible, and none of the last [`RECENT`] pages that tripped is protected by it. Else pages that
    /// tripped are protected again so seldom (see [`may_rearm`]) that an instruction or loop which needs many of them gets on,
    /// but for what lies ahead of `at`: the next checkpoint, and the next stop of a reader that skips.
    pub fn trip(&mut self, at: u64, told: &Told, clock: &Clock, apply: &mut dyn FnMut(Action)) -> Verdict {
        let fallen = self.remember(at);
        self.ahead = Span::default();
        match self.state {
            State::Drawn => {}
            State::Resting { .. } => {
                if self.rest_on(at, fallen, clock.now(), apply) {
                    return Verdict::Rest;
                }
                self.draw_again(apply);
            }
            State::Lifted => {
                apply(Action::Open(page(at)));
                return Verdict::Rest;
            }
        }
        if told.distance >= PAGE {
            let distance = told.distance / PAGE * PAGE;
            if distance != self.distance {
                (self.distance, self.kept) = (distance, Span::default());
            }
        }
        let at_stop = self.lift_net(at, apply);
        if !at_stop {
            self.disarm(at, apply);
        }
        let guide = told.guide(at);
        let is_backward = guide.is_some_and(|guide| guide.is_backward);
        let step = self.step_around(at);
        let carried = self.streams.carry_on(at, self.distance, guide.is_some(), is_backward);
        let is_expected = guide.is_some_and(|guide| carried.is_some() || guide.stops.apart > 0);
        let Carried { stream, from, to } = carried.unwrap_or_else(|| {
            self.note_begin(at);
            let stream = self.streams.begin(at);
            Carried { stream, from: step.start, to: step.end }
        });
        let run = self.streams.run(stream);
        let open = if told.by_grid {
            Span { start: floor(at, self.distance), end: self.checkpoint_after(at, u32::MAX, told) }
        } else if is_backward {
            Span { start: self.checkpoint_before(at, told), end: to.max(at + PAGE) }
        } else {
            let end = self.checkpoint_after(at, if guide.is_some() { u32::MAX } else { run }, told);
            let start = match guide {
                // The step in which it began is open from its start.
                None if from == at => step.start,
                // Another thread may be about to read it.
                Some(guide) if guide.is_exact => at,
                _ => from,
            };
            Span { start, end }
        };
        self.streams.expect(stream, open.start, open.end);
        if told.maps_ahead && guide.is_some() && !is_backward {
            self.ahead = self.open.first_gap(Span { start: at, end: open.end }).unwrap_or_default();
        }
        if told.by_grid {
            self.disarm_all(open, apply);
        }
        let is_new = told.by_grid && !self.open.covers(open);
        self.trips = self.trips.saturating_add(1);
        let (rearmed, trips) = (self.rearmed, self.trips);
        if self.open.insert(open, &self.recent, || may_rearm(rearmed, trips, clock), apply) {
            self.note_rearmed(clock);
            self.forget_closed();
        }
        // Also where a reader for a while outruns what is told.
        self.untold = self.untold.wrapping_add(1);
        if let Some(guide) = guide.or_else(|| told.skipping()) {
            (self.stops, self.goes_backward) = (guide.stops, guide.is_backward);
        }
        if guide.is_some() {
            self.untold = 0;
        }
        // Where nobody fetches, nobody tells of stops: beside the sentinels that are re-armed there, nets would keep an instruction
        // that needs many pages from getting on.
        let skips = !told.by_grid && self.stops.apart > 0 && u64::from(self.untold) < self.distance / UNTOLD;
        let front = match is_backward {
            // Where it comes to what others read, it would trip a second time for the same part.
            _ if is_new => u64::MAX,
            // It would leap over most of these, and comes to its net.
            _ if skips => u64::MAX,
            false => open.end,
            true => open.start.checked_sub(self.width()).unwrap_or(u64::MAX),
        };
        self.arm(Checkpoint::front(front), apply);
        if skips || is_backward {
            self.arm_stops(at, skips, clock, apply);
        }
        let is_regular = self.streams.is_regular(stream);
        if is_new && !is_regular {
            // The page of a tree, to which readers come back within an epoch, is not its own sentinel.
            self.sentinels[0] = at + STEP;
        }
        if !told.by_grid || is_regular || self.went_on(fallen) {
            self.leave_sentinel(fallen, clock, apply);
        }
        self.judge(at, is_expected || at_stop || run >= RUN || is_regular, clock, apply)
    }

    /// Pushes `at` in at the front of the recent pages; returns where the one that fell out at the back leaves a sentinel.
    fn remember(&mut self, at: u64) -> u64 {
        if self.recent.contains(&at) {
            self.remember_again(at);
            return u64::MAX;
        }
        // As words: `copy_within` is a call of the C library's, whose code is in no cache by now.
        let pushed = |[first, second, third, _]: [u64; RECENT]| [at, first, second, third];
        let fallen = self.sentinels[RECENT - 1];
        (self.recent, self.sentinels) = (pushed(self.recent), pushed(self.sentinels));
        fallen
    }

    /// The same for one of them: none falls out.
    #[cold]
    fn remember_again(&mut self, at: u64) {
        let place = self.recent.iter().position(|&page| page == at).unwrap_or(0);
        for pages in [&mut self.recent, &mut self.sentinels] {
            if let Some(front) = pages.get_mut(..=place) {
                front.rotate_right(1);
            }
            pages[0] = at;
        }
    }

    /// Whether a reader has gone on from the part between two points of the grid that holds `at`, and not leapt to it alone:
    /// one that comes there later would trip for it a second time.
    fn went_on(&self, at: u64) -> bool {
        let start = floor(at, self.distance);
        let end = start.saturating_add(self.distance);
        start > 0 && self.open.covers(Span { start: start - PAGE, end: end.min(self.length) })
            || end < self.length && self.open.covers(Span { start, end: end + PAGE })
    }

    /// Knows of no stream and no open part any more.
    fn forget(&mut self) {
        self.open.forget();
        self.checkpoints.clear();
        self.kept = Span::default();
        (self.stops, self.net) = (Stops::NONE, Span::default());
        self.streams.forget();
    }
}

fn page(at: u64) -> Span {
    Span { start: at, end: at + PAGE }
}

#[cfg(test)]
mod tests;
