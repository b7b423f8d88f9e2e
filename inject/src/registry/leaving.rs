//! How a mapping leaves the table: before the call that unmaps it, and only when nobody is at work in it any more.

use super::{Entry, Held, IN_USE, TABLE, brief, note_change};
use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// A mapping has left the table. A fault that was on its way then is let through again, however much later its handler runs.
static HAVE_LEFT: AtomicBool = AtomicBool::new(false);

/// A mapping on its way out: no handler begins to work in it any more. The slot is free again when this drops, which is not to be
/// before [`await_leaving`].
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

/// Takes the held mapping out of the table. `None`: somebody else is at it.
pub fn leave(held: Held) -> Option<Leaving> {
    let (slot, entry) = (held.slot, held.entry);
    HAVE_LEFT.store(true, SeqCst);
    if !entry.lifecycle.mark_leaving() {
        return None;
    }
    note_change();
    IN_USE.fetch_sub(1, SeqCst);
    brief::leave(slot);
    Some(Leaving { slot, entry })
}

/// Whether a mapping has left the table, ever.
pub fn have_left() -> bool {
    HAVE_LEFT.load(SeqCst)
}

fn is_leaving(entry: &Entry, start: usize, end: usize) -> bool {
    entry.lifecycle.is_leaving() && entry.overlaps(start, end)
}

/// Whether an armed mapping overlaps the range, or one that another thread is taking out of the table.
pub fn overlaps_or_leaving(start: usize, end: usize) -> bool {
    brief::could_overlap(start, end)
        && TABLE.iter().any(|entry| entry.is_armed_in(start, end) || is_leaving(entry, start, end))
}

/// Waits until no handler is at work in mappings of the range that this thread or another is taking out of the table. Not for
/// signal context.
pub fn await_leaving(start: usize, end: usize) {
    let mut pauses = sys::Pauses::default();
    for entry in &TABLE {
        while is_leaving(entry, start, end)
            && entry.lifecycle.is_held()
            && !cfg!(feature = "sabotage-unmap-does-not-wait")
        {
            pauses.next();
        }
    }
}
