//! Memory that a system call of the program is at work on: nothing of it is closed meanwhile, for the kernel raises no
//! SIGSEGV for itself.
//!
//! Whoever pins a range then takes the turn of every mapping in it, to open it (`handler::hit_for_call`). Handlers close
//! pages in their turn alone, and look here first. So a handler whose turn was before has closed what is then opened;
//! one whose turn comes after sees the pin.
//!
//! A call that never returns (its thread is cancelled, or a handler leaves by longjmp) leaves its pin behind: those
//! pages are not closed again, and the program runs on. Where no place is left for ranges, none are: the report counts such
//! calls (`all_pinned`). A pin of everything, which one call of printf takes, is taken over by the next one whose frame lies where
//! the frame of the call was that left it behind.

mod shared;

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use shared::Shared;

/// Ranges that can be pinned at a time; when there are more, everything is.
const PINS: usize = 64;

/// Bytes of a range that stays pinned for other calls ([`Shared`]): to transfer more takes so long that pinning does not count.
const FEW: usize = 64 << 10;

struct Place {
    /// 0: free.
    start: AtomicUsize,
    end: AtomicUsize,
}

static PLACES: [Place; PINS] = [const { Place { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; PINS];

static SHARED: Shared = Shared::new(AtomicUsize::new(0), AtomicUsize::new(0), AtomicU32::new(0));

/// Pins of ranges.
static PINNED: AtomicU32 = AtomicU32::new(0);

/// Pins of everything: each is taken by one exchange, and given back by a store. 0: free, else a [`Frame`].
static WHOLES: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

/// Bytes, about, of the frames that are told apart by their places.
const FRAME: usize = 64;

/// Frames have not always found their own place free: what one has left behind may be in another.
static ARE_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Those for which no place was left.
static MORE_WHOLES: AtomicUsize = AtomicUsize::new(0);

/// Counts the times that all pins were forgotten.
static ERA: AtomicU32 = AtomicU32::new(0);

/// What stays open as long as this exists, at least.
pub enum Pin {
    Shared(SharedPin),
    Range(RangePin),
    Whole(WholePin),
}

/// One call's part in what calls share.
pub struct SharedPin {
    era: u32,
}

/// A range.
pub struct RangePin {
    place: &'static Place,
    era: u32,
}

/// All memory. Small enough to be handed on in registers.
pub struct WholePin {
    /// One of [`WHOLES`], or [`MORE_WHOLES`].
    place: &'static AtomicUsize,
    era: u32,
}

/// An address in the stack frame of a call, where no other one has its frame as long as the call lasts: of stacks that are copied
/// away (greenlets), too, unless they are changed inside of printf.
#[derive(Clone, Copy)]
pub struct Frame(usize);

impl Frame {
    /// Of a call of which nothing is known.
    const ANY: Self = Self(1);

    /// `own`: a variable of the call's, which must live as long as the pin.
    pub fn of(own: &u8) -> Self {
        Self(core::ptr::from_ref(own).addr())
    }
}

/// The pages that `start..end` lies in. In the first one of all, whose address says that a place is free, nothing is mapped.
fn in_pages(start: usize, end: usize) -> (usize, usize) {
    const PAGE: usize = precache_contract::PAGE as usize;
    (start.max(PAGE) / PAGE * PAGE, end.saturating_add(PAGE - 1) / PAGE * PAGE)
}

/// Pins the pages that `start..end` lies in: if they are few and one buffer's, for other calls, too, once they
/// [have been opened](Pin::has_been_opened).
pub fn pin(start: usize, end: usize, is_one: bool) -> Pin {
    let is_few = is_one & (end - start <= FEW);
    let (start, end) = in_pages(start, end);
    let era = ERA.load(Relaxed);
    if is_few && SHARED.change(start, end) {
        return Pin::Shared(SharedPin { era });
    }
    PINNED.fetch_add(1, SeqCst);
    for place in &PLACES {
        // Until the end is known too, other threads see an empty range, which this thread's turn has not come for.
        if place.start.compare_exchange(0, start, SeqCst, Relaxed).is_ok() {
            place.end.store(end, SeqCst);
            return Pin::Range(RangePin { place, era });
        }
    }
    PINNED.fetch_sub(1, SeqCst);
    Pin::Whole(WholePin { place: anywhere(Frame::ANY.0).0, era })
}

/// The pin that calls share, if it is of all of `start..end`, which then is open.
pub fn share(start: usize, end: usize) -> Option<Pin> {
    let pin = SharedPin { era: ERA.load(Relaxed) };
    SHARED.join(start, end).then_some(Pin::Shared(pin))
}

/// Pins all memory, and tells whether the pin is one that was left behind. Handlers that are in their turn may still close some:
/// see [`crate::registry::await_turns`].
#[inline(always)]
pub fn everything(Frame(frame): Frame) -> (WholePin, bool) {
    let era = ERA.load(Relaxed);
    let own = &WHOLES[frame / FRAME % WHOLES.len()];
    if !ARE_ELSEWHERE.load(Relaxed) && own.compare_exchange(0, frame, SeqCst, Relaxed).is_ok() {
        return (WholePin { place: own, era }, false);
    }
    let (place, was_left) = anywhere(frame);
    (WholePin { place, era }, was_left)
}

/// The place in which this frame has left a pin behind, or a free one.
#[cold]
#[inline(never)] // Most find their own.
fn anywhere(frame: usize) -> (&'static AtomicUsize, bool) {
    if frame != Frame::ANY.0
        && let Some(left) = WHOLES.iter().find(|place| place.load(Relaxed) == frame)
    {
        return (left, true);
    }
    ARE_ELSEWHERE.store(true, Relaxed);
    let own = frame / FRAME;
    for place in (0..WHOLES.len()).filter_map(|next| WHOLES.get(own.wrapping_add(next) % WHOLES.len())) {
        if place.load(Relaxed) == 0 && place.compare_exchange(0, frame, SeqCst, Relaxed).is_ok() {
            return (place, false);
        }
    }
    MORE_WHOLES.fetch_add(1, SeqCst);
    (&MORE_WHOLES, false)
}

impl Pin {
    /// All memory stays open: there was no place left for a range.
    pub fn is_of_everything(&self) -> bool {
        matches!(self, Self::Whole(_))
    }

    /// All of what it pins.
    pub fn has_been_opened(&self) {
        if let Self::Shared(_) = self {
            SHARED.has_been_opened();
        }
    }
}

fn is_everything_pinned() -> bool {
    MORE_WHOLES.load(SeqCst) != 0 || WHOLES.iter().any(|place| place.load(SeqCst) != 0)
}

// None gives back what is no longer its own: when all pins were forgotten in between, its place may be another's.
impl Drop for SharedPin {
    #[inline(never)] // As below.
    fn drop(&mut self) {
        if self.era == ERA.load(Relaxed) {
            SHARED.leave();
        }
    }
}

impl Drop for RangePin {
    #[inline(never)] // One copy is enough for all who pin.
    fn drop(&mut self) {
        if self.era == ERA.load(Relaxed) {
            self.place.end.store(0, SeqCst);
            self.place.start.store(0, SeqCst);
            decrease(&PINNED);
        }
    }
}

impl Drop for WholePin {
    #[inline(always)]
    fn drop(&mut self) {
        if core::ptr::eq(self.place, &MORE_WHOLES) {
            self.give_back_without_place();
        } else if self.era == ERA.load(Relaxed) {
            self.place.store(0, Release);
        }
    }
}

impl WholePin {
    #[cold]
    #[inline(never)]
    fn give_back_without_place(&self) {
        if self.era == ERA.load(Relaxed) {
            // As [`decrease`].
            let _ = self.place.fetch_update(SeqCst, Relaxed, |count| count.checked_sub(1));
        }
    }
}

/// Counts one less, but not below zero, if a signal handler forks just here; the answer is the count before.
pub fn decrease(count: &AtomicU32) -> u32 {
    count.fetch_update(SeqCst, Relaxed, |count| count.checked_sub(1)).unwrap_or(0)
}

/// Calls `each` for the parts of `start..end` that may be closed.
pub fn each_unpinned(start: usize, end: usize, mut each: impl FnMut(usize, usize)) {
    if is_everything_pinned() {
        return;
    }
    let mut from = start;
    while from < end {
        let (pinned, until) = first_pinned(from, end);
        if from < pinned {
            each(from, pinned);
        }
        from = until;
    }
}

/// Where the first pinned part of a range begins, and where it ends; both are `end` where nothing is pinned.
#[inline(never)] // One copy is enough for all who close.
fn first_pinned(from: usize, end: usize) -> (usize, usize) {
    if cfg!(feature = "sabotage-no-pins") {
        return (end, end);
    }
    let places: &[Place] = if PINNED.load(SeqCst) == 0 { &[] } else { &PLACES };
    let shared = SHARED.range();
    let is_met = shared.0 < end && from < shared.1;
    let shared = if is_met && SHARED.retire() { (end, end) } else { shared };
    let ranges = places.iter().map(|place| (place.start.load(SeqCst), place.end.load(SeqCst))).chain([shared]);
    let within = ranges.filter(|&(pinned, until)| pinned < end && from < until && pinned < until);
    within.min().unwrap_or((end, end))
}

/// In a forked child: the calls of the parent's other threads are not its own.
pub fn reset_after_fork() {
    for place in &PLACES {
        place.end.store(0, SeqCst);
        place.start.store(0, SeqCst);
    }
    ERA.fetch_add(1, SeqCst);
    for place in &WHOLES {
        place.store(0, SeqCst);
    }
    MORE_WHOLES.store(0, SeqCst);
    PINNED.store(0, SeqCst);
    SHARED.reset();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    // One test, for the table is one per process.
    #[test]
    fn what_is_pinned_is_left_out() {
        // In pages.
        let unpinned = |start: usize, end: usize| {
            let mut parts = Vec::new();
            each_unpinned(start * 4096, end * 4096, |from, to| parts.push((from / 4096, to / 4096)));
            parts
        };
        let pin = |start: usize, end: usize| super::pin(start * 4096 + 100, end * 4096 - 100, false);
        assert_eq!(unpinned(10, 20), [(10, 20)]);
        let middle = pin(12, 14);
        let overlapping = pin(13, 15);
        let elsewhere = pin(30, 40);
        assert_eq!(unpinned(10, 20), [(10, 12), (15, 20)]);
        // From null on, beside another that begins there.
        let (first, second) = (super::pin(0, 11 * 4096, false), super::pin(1, 18 * 4096, false));
        drop(second);
        assert_eq!(unpinned(10, 20), [(11, 12), (15, 20)]);
        drop(first);
        assert_eq!(unpinned(10, 20), [(10, 12), (15, 20)]);
        assert_eq!(unpinned(13, 14), []);
        let mut whole_pages = true;
        each_unpinned(10 * 4096, 20 * 4096, |from, to| whole_pages &= from % 4096 == 0 && to % 4096 == 0);
        assert!(whole_pages);
        drop(middle);
        assert_eq!(unpinned(10, 20), [(10, 13), (15, 20)]);
        let everything = || super::everything(Frame::ANY).0;
        let mut all: Vec<WholePin> = (0..WHOLES.len() + 2).map(|_| everything()).collect();
        while let Some(one) = all.pop() {
            assert_eq!(unpinned(50, 60), []);
            drop(one);
        }
        // A call that never returns, and the next one in the same place.
        let here = 0;
        let (left, was_there) = super::everything(Frame::of(&here));
        core::mem::forget(left);
        let (elsewhere_on_the_stack, is_another) = super::everything(Frame(Frame::of(&here).0 - 64));
        drop(elsewhere_on_the_stack);
        assert_eq!(unpinned(50, 60), []);
        let (again, is_the_same) = super::everything(Frame::of(&here));
        assert_eq!((was_there, is_another, is_the_same), (false, false, true));
        drop(again);
        // One whose own place was somebody's when it came, and is free when it comes again.
        let there = Frame(Frame::of(&here).0 + WHOLES.len() * FRAME);
        let (somebodys, _) = super::everything(Frame::of(&here));
        core::mem::forget(super::everything(there).0);
        drop(somebodys);
        let (again, is_the_same) = super::everything(there);
        assert!(is_the_same);
        drop(again);
        assert!(!is_everything_pinned());
        drop(overlapping);
        assert_eq!(unpinned(10, 35), [(10, 30)]);
        drop(elsewhere);
        // What others may share, once it is open, and as long as nobody else's is.
        let shared = super::pin(20 * 4096 + 8, 22 * 4096 - 8, true);
        assert!(share(20 * 4096 + 8, 21 * 4096).is_none());
        shared.has_been_opened();
        assert_eq!(unpinned(10, 30), [(10, 20), (22, 30)]);
        assert_eq!(unpinned(22, 30), [(22, 30)]);
        let another = share(20 * 4096, 22 * 4096).unwrap();
        assert!(share(20 * 4096 - 1, 21 * 4096).is_none() && share(21 * 4096, 22 * 4096 + 1).is_none());
        drop(shared);
        let beside = super::pin(24 * 4096, 25 * 4096, true);
        beside.has_been_opened();
        assert!(share(24 * 4096, 25 * 4096).is_none());
        assert_eq!(unpinned(10, 30), [(10, 20), (22, 24), (25, 30)]);
        drop(beside);
        drop(another);
        // Nobody is at work on it: it stays until something of it is to be closed.
        assert_eq!(unpinned(22, 30), [(22, 30)]);
        drop(super::pin(26 * 4096, 26 * 4096 + FEW + 1, true));
        drop(share(20 * 4096, 22 * 4096).unwrap());
        assert_eq!(unpinned(10, 21), [(10, 21)]);
        assert!(share(20 * 4096, 22 * 4096).is_none());
        let instead = super::pin(26 * 4096, 26 * 4096 + FEW, true);
        assert_eq!(unpinned(10, 26 + FEW / 4096), [(10, 26)]);
        instead.has_been_opened();
        drop(instead);
        assert_eq!(unpinned(10, 30), [(10, 30)]);
        // More than there are places for: everything is pinned.
        let many: Vec<Pin> = (0..PINS + WHOLES.len() + 1).map(|n| pin(100 + n, 101 + n)).collect();
        assert_eq!(many.iter().filter(|pin| pin.is_of_everything()).count(), WHOLES.len() + 1);
        assert_eq!(unpinned(10, 20), []);
        reset_after_fork();
        assert_eq!(unpinned(10, 200), [(10, 200)]);
        // Those of the parent that are dropped now are not the child's own, even where they are alike.
        let ranges: Vec<Pin> = (0..PINS).map(|n| pin(100 + n, 101 + n)).collect();
        let wholes: Vec<WholePin> = (0..20).map(|_| everything()).collect();
        drop(many);
        assert!(WHOLES.iter().all(|place| place.load(SeqCst) != 0));
        for one in wholes {
            assert_eq!(unpinned(10, 200), []);
            drop(one);
        }
        assert_eq!(unpinned(10, 200), [(10, 100), (100 + PINS, 200)]);
        drop(ranges);
        assert_eq!(unpinned(10, 200), [(10, 200)]);
        assert_eq!((PINNED.load(SeqCst), MORE_WHOLES.load(SeqCst)), (0, 0));
    }
}
