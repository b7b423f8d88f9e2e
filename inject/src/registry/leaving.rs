//! How a mapping leaves the table: before the call that unmaps it, and only when nobody is at work in it any more.

use super::{Entry, Held, IN_USE, TABLE, brief, note_change};
use crate::sys;
use core::sync::atomic::{AtomicUsize, Ordering::*};
use precache_contract::segment::MAPPINGS;

/// Ranges that left the table lately. A fault that was on its way when its mapping left is let through again.
static LEFT: [[AtomicUsize; 2]; MAPPINGS] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAPPINGS];
static LEFT_NEXT: AtomicUsize = AtomicUsize::new(0);

/// A mapping on its way out: no handler touches it any more. The slot is free again when this drops.
pub struct Leaving {
    slot: usize,
    entry: &'static Entry,
}

impl Leaving {
    pub fn slot(&self) -> usize {
        self.slot
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.entry.generation.fetch_add(1, Relaxed);
        self.entry.lifecycle.free();
    }
}

/// Takes the held mapping out of the table and waits for the handlers at work in it. `None`: somebody else is at it.
/// Not for signal context.
pub fn leave(held: Held) -> Option<Leaving> {
    let (slot, entry) = (held.slot, held.entry);
    if let Some(left) = LEFT.get(LEFT_NEXT.fetch_add(1, Relaxed) % LEFT.len()) {
        left[0].store(entry.start.load(Relaxed), Relaxed);
        left[1].store(entry.end.load(Relaxed), Release);
    }
    if !entry.lifecycle.mark_leaving() {
        return None;
    }
    note_change();
    IN_USE.fetch_sub(1, SeqCst);
    brief::leave(slot);
    drop(held);
    let mut pauses = sys::Pauses::default();
    while entry.lifecycle.is_held() && !cfg!(feature = "sabotage-unmap-does-not-wait") {
        pauses.next();
    }
    Some(Leaving { slot, entry })
}

/// Whether `address` belonged to a mapping that left the table lately.
pub fn left_lately(address: usize) -> bool {
    LEFT.iter().any(|[start, end]| (start.load(Relaxed)..end.load(Acquire)).contains(&address))
}

fn is_leaving(entry: &Entry, start: usize, end: usize) -> bool {
    entry.lifecycle.is_leaving() && entry.overlaps(start, end)
}

/// Whether an armed mapping overlaps the range, or one that another thread is taking out of the table.
pub fn overlaps_or_leaving(start: usize, end: usize) -> bool {
    brief::could_overlap(start, end)
        && TABLE.iter().any(|entry| entry.is_armed_in(start, end) || is_leaving(entry, start, end))
}

/// Waits until no handler is at work in mappings of the range that other threads are taking out of the table. Not for
/// signal context.
pub fn await_leaving(start: usize, end: usize) {
    let mut pauses = sys::Pauses::default();
    for entry in &TABLE {
        while is_leaving(entry, start, end) && entry.lifecycle.is_held() {
            pauses.next();
        }
    }
}
