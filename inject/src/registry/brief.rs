//! What is armed, in brief: addresses alone, close together. Two comparisons with it tell for most buffers of most calls,
//! and it tells the handler in which slot of the table to look.
//!
//! What it says of a mapping that stays armed is true; of one that comes or goes it may say either, and who is about to
//! act looks at the table then. Where not all of a mapping is armed, the end of what comes before counts as armed here: a path
//! that begins there may end in armed memory.

use crate::glance::GLANCE;
use core::sync::atomic::{AtomicUsize, Ordering::*};
use precache_contract::segment::MAPPINGS;

/// Those that are looked at together share a cache line.
#[repr(align(64))]
struct Spans([[AtomicUsize; 2]; MAPPINGS]);

/// First byte and end of the mapping in each slot of the table. Empty: none.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static SPANS: Spans = Spans([const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAPPINGS]);

/// Slots that are looked at together.
const FEW: usize = 4;

pub fn enter(slot: usize, start: usize, end: usize) {
    GLANCE.lowest.fetch_min(start, SeqCst);
    GLANCE.highest.fetch_max(end, SeqCst);
    GLANCE.top.fetch_max(slot + 1, SeqCst);
    if let Some(span) = SPANS.0.get(slot) {
        span[0].store(start, SeqCst);
        span[1].store(end, SeqCst);
    }
}

pub fn leave(slot: usize) {
    if let Some(span) = SPANS.0.get(slot) {
        span[1].store(0, SeqCst);
    }
}

fn used() -> &'static [[AtomicUsize; 2]] {
    SPANS.0.get(..GLANCE.top.load(Acquire)).unwrap_or(&SPANS.0)
}

/// Whether an armed mapping overlaps the range.
#[inline(always)]
pub fn overlaps(start: usize, end: usize) -> bool {
    could_overlap(start, end) && does_overlap(start, end)
}

/// The same as [`overlaps`], of a range that [could](could_overlap).
#[inline(never)] // One copy is enough for all who ask.
fn does_overlap(start: usize, end: usize) -> bool {
    does_overlap_inline(start, end)
}

/// The same, where the call would take as long as the look itself.
#[inline(always)]
pub fn does_overlap_inline(start: usize, end: usize) -> bool {
    is_among_few(start, end) || !are_few() && slots_in(start, end).next().is_some()
}

/// Whether [`is_among_few`] knows all that is armed.
#[inline(always)]
pub fn are_few() -> bool {
    GLANCE.top.load(Acquire) <= FEW
}

/// Whether one of the first mappings, of which few programs have more, overlaps the range; of one that begins above user space
/// it may say so, too. Without a branch: with those of [`could_overlap`] before it, a message on the heap took 12 ns longer than
/// one elsewhere. Written out, for the library is built to be small, and a loop takes half as long again.
#[inline(always)]
pub fn is_among_few(start: usize, end: usize) -> bool {
    is_among_few_uncapped(start, end.min(GLANCE.highest.load(Relaxed)))
}

/// As [`is_among_few`], where the end is an address of user space or the start is none.
#[inline(always)]
fn is_among_few_uncapped(start: usize, end: usize) -> bool {
    // A mapping's addresses are those of user space, too, and so is a start that overlaps: then a difference is below zero, as
    // its highest bit tells, where the first one is less.
    let both_less = |[armed, until]: &[AtomicUsize; 2]| {
        armed.load(Relaxed).wrapping_sub(end) & start.wrapping_sub(until.load(Relaxed))
    };
    const { assert!(FEW == 4) };
    let [one, two, three, four, ..] = &SPANS.0;
    let any = both_less(one) | both_less(two) | both_less(three) | both_less(four);
    any > isize::MAX as usize
}

/// Whether anything that was ever armed could overlap the range.
#[inline(always)]
pub fn could_overlap(start: usize, end: usize) -> bool {
    start < GLANCE.highest.load(Relaxed) && GLANCE.lowest.load(Relaxed) < end
}

/// Whether the address could lie in anything that was ever armed; if nothing was, the last byte of all.
#[inline(always)]
pub fn could_lie_in(address: usize) -> bool {
    let lowest = GLANCE.lowest.load(Relaxed);
    address.wrapping_sub(lowest) < GLANCE.highest.load(Relaxed).wrapping_sub(lowest)
}

/// Whether anything that was ever armed could overlap what begins at this address and has no more than so many bytes; if nothing was,
/// anything may be told.
#[inline(always)]
pub fn could_begin_near(address: usize, most: usize) -> bool {
    let lowest = GLANCE.lowest.load(Relaxed).wrapping_sub(most);
    address.wrapping_sub(lowest) < GLANCE.highest.load(Relaxed).wrapping_sub(lowest)
}

/// Whether one of these addresses could lie in anything that was ever armed; if nothing was, in the last byte of all. Written out, as
/// [`is_among_few`].
#[inline(always)]
pub fn could_any_lie_in([one, two, three, four, five]: [usize; 5]) -> bool {
    let lowest = GLANCE.lowest.load(Relaxed);
    let length = GLANCE.highest.load(Relaxed).wrapping_sub(lowest);
    let lies = |address: usize| address.wrapping_sub(lowest) < length;
    lies(one) | lies(two) | lies(three) | lies(four) | lies(five)
}

/// Whether none of these addresses lies in anything armed, where that can be told at once: of few mappings, and of no more than two
/// addresses that could. Written out, as [`is_among_few`].
#[inline(always)]
pub fn lie_between_few([one, two, three, four, five]: [usize; 5]) -> bool {
    let lowest = GLANCE.lowest.load(Relaxed);
    let length = GLANCE.highest.load(Relaxed).wrapping_sub(lowest);
    let look = |(first, last, count): (usize, usize, usize), address: usize| {
        if address.wrapping_sub(lowest) < length {
            (first.min(address), last.max(address), count + 1)
        } else {
            (first, last, count)
        }
    };
    let (first, last, count) = look(look(look(look(look((usize::MAX, 0, 0), one), two), three), four), five);
    count <= 2 && are_few() && !is_in_few(first) && (first == last || !is_in_few(last))
}

/// Whether the address lies in one of the first mappings; of one above user space it may say so, too.
#[inline(always)]
pub fn is_in_few(address: usize) -> bool {
    is_among_few_uncapped(address, address.wrapping_add(1))
}

/// Slots whose mapping could hold the address.
pub fn slots_at(address: usize) -> impl Iterator<Item = usize> {
    slots_in(address, address.saturating_add(1))
}

/// The same of a range.
pub fn slots_in(start: usize, end: usize) -> impl Iterator<Item = usize> {
    let overlaps = move |[armed, until]: &[AtomicUsize; 2]| armed.load(Relaxed) < end && start < until.load(Relaxed);
    used().iter().enumerate().filter(move |(_, span)| overlaps(span)).map(|(slot, _)| slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_lie_between_does() {
        let armed = [0x10000..0x20000, 0x40000..0x50000];
        for (slot, span) in armed.iter().enumerate() {
            enter(slot, span.start, span.end);
        }
        const PLACES: [usize; 7] = [0, 0xffff, 0x1ffff, 0x20000, 0x3ffff, 0x40000, usize::MAX];
        // Miri is slow: a part of them, spread over all.
        for number in (0..PLACES.len().pow(5)).step_by(if cfg!(miri) { 101 } else { 1 }) {
            let addresses = core::array::from_fn(|word| PLACES[number / PLACES.len().pow(word as u32) % PLACES.len()]);
            let count = |is_there: &dyn Fn(&usize) -> bool| addresses.iter().filter(|at| is_there(at)).count();
            let (near, within) =
                (count(&|at| (0x10000..0x50000).contains(at)), count(&|at| armed.iter().any(|span| span.contains(at))));
            assert_eq!(lie_between_few(addresses), near <= 2 && within == 0, "{addresses:x?}");
            assert_eq!(could_any_lie_in(addresses), near > 0, "{addresses:x?}");
        }
        (0..armed.len()).for_each(leave);
    }
}
