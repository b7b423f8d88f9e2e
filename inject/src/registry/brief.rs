//! What is armed, in brief: addresses alone, close together. Two comparisons with it tell for most buffers of most calls,
//! and it tells the handler in which slot of the table to look.
//!
//! What it says of a mapping that stays armed is true; of one that comes or goes it may say either, and who is about to
//! act looks at the table then.

use core::sync::atomic::{AtomicUsize, Ordering::*};
use precache_contract::segment::MAPPINGS;

/// First byte and end of the mapping in each slot of the table. Empty: none.
static SPANS: [[AtomicUsize; 2]; MAPPINGS] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAPPINGS];

/// Slots from this one on have never been used.
static TOP: AtomicUsize = AtomicUsize::new(0);

/// All mappings ever armed lie between these.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

pub fn enter(slot: usize, start: usize, end: usize) {
    LOWEST.fetch_min(start, SeqCst);
    HIGHEST.fetch_max(end, SeqCst);
    TOP.fetch_max(slot + 1, SeqCst);
    if let Some(span) = SPANS.get(slot) {
        span[0].store(start, SeqCst);
        span[1].store(end, SeqCst);
    }
}

pub fn leave(slot: usize) {
    if let Some(span) = SPANS.get(slot) {
        span[1].store(0, SeqCst);
    }
}

fn spans() -> impl Iterator<Item = (usize, usize)> {
    let used = SPANS.get(..TOP.load(Acquire)).unwrap_or(&SPANS);
    used.iter().map(|[start, end]| (start.load(Relaxed), end.load(Relaxed)))
}

/// Whether an armed mapping overlaps the range.
#[inline(always)]
pub fn overlaps(start: usize, end: usize) -> bool {
    could_overlap(start, end) && overlaps_one(start, end)
}

#[inline(never)] // One copy is enough for all who ask.
fn overlaps_one(start: usize, end: usize) -> bool {
    spans().any(|(armed, until)| armed < end && start < until)
}

/// Whether anything that was ever armed could overlap the range.
#[inline(always)]
pub fn could_overlap(start: usize, end: usize) -> bool {
    start < HIGHEST.load(Relaxed) && LOWEST.load(Relaxed) < end
}

/// Whether anything armed could lie at or above the address.
pub fn could_lie_above(address: usize) -> bool {
    !super::is_empty() && address < HIGHEST.load(Relaxed)
}

/// Slots whose mapping could hold the address.
pub fn slots_at(address: usize) -> impl Iterator<Item = usize> {
    spans().enumerate().filter(move |&(_, (start, end))| (start..end).contains(&address)).map(|(slot, _)| slot)
}
