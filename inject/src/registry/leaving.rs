//! How a mapping leaves the table: before the call that unmaps it, and only when nobody is at work in it any more.

use super::lifecycle::Departures;
use super::{Entry, Held, TABLE, brief, note_change};
use crate::glance::GLANCE;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use precache_contract::segment::MAPPINGS;

/// A mapping has left the table. A fault that was on its way then is let through again, however much later its handler runs.
static HAVE_LEFT: AtomicBool = AtomicBool::new(false);

static DEPARTURES: Departures = Departures::new(AtomicU64::new(0));

/// Mappings on their way out, a bit for each slot: no handler begins to work in them any more. The slots are free again when this
/// drops, which is not to be before [`await_leaving`].
#[derive(Default)]
pub struct Leaving(u64);

impl Leaving {
    /// Takes the held mapping out of the table, unless somebody else is at it.
    pub fn add(&mut self, held: Held) {
        HAVE_LEFT.store(true, SeqCst);
        if held.entry.lifecycle.mark_leaving() {
            note_change();
            GLANCE.in_use.fetch_sub(1, SeqCst);
            self.0 |= 1 << held.slot;
            DEPARTURES.begin(self.0);
            brief::leave(held.slot);
        }
    }

    pub fn slots(&self) -> impl Iterator<Item = usize> {
        let slots = self.0;
        (0..MAPPINGS).filter(move |slot| slots >> slot & 1 == 1)
    }

    /// In a forked child: the places are free already, and may be other mappings'.
    pub fn forget(&mut self) {
        self.0 = 0;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        DEPARTURES.end(self.0);
        for entry in self.slots().filter_map(|slot| TABLE.get(slot)) {
            entry.generation.fetch_add(1, Relaxed);
            entry.lifecycle.free();
        }
    }
}

/// Whether a mapping has left the table, ever.
pub fn have_left() -> bool {
    HAVE_LEFT.load(SeqCst)
}

fn is_leaving(entry: &Entry, start: usize, end: usize) -> bool {
    entry.lifecycle.is_leaving() && entry.overlaps(start, end)
}

/// Whether an armed mapping overlaps the range, or one that another thread is taking out of the table.
#[inline(never)] // One copy is enough for all who ask.
pub fn overlaps_or_leaving(start: usize, end: usize) -> bool {
    brief::overlaps(start, end) || DEPARTURES.are_any() && TABLE.iter().any(|entry| is_leaving(entry, start, end))
}

pub fn reset_after_fork() {
    DEPARTURES.reset_after_fork();
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
