//! Maps pages ahead of the reader at a trip, so that it takes no fault at each of them.

use crate::curtain::Span;
use crate::registry::{Held, Turn};
use crate::settings::{self, Populate};
use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering::*};
use precache_contract::PAGE;
use precache_contract::segment::Segment;

/// Bytes mapped at one trip: for so long signals wait, and other threads that change mappings.
const LONGEST: u64 = 8 << 20;

/// The kernel does not know the call (Linux 5.14), or a security policy forbids it.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static REFUSED: AtomicBool = AtomicBool::new(false);

fn wish() -> Populate {
    match settings::get() {
        Some(settings) if !REFUSED.load(Relaxed) => settings.populate,
        _ => Populate::Off,
    }
}

/// Whether anything may be mapped ahead.
pub fn is_wanted() -> bool {
    wish() != Populate::Off
}

/// When the trip began, or 0 between two measurements, where that does not count; `None`: nothing is mapped ahead.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
pub fn clock(turn: &mut Turn) -> Option<u64> {
    let is_measuring = turn.trial().is_measuring();
    is_wanted().then(|| if is_measuring { sys::nanoseconds() } else { 0 })
}

/// What to map for the reader that has just tripped at `at`: of what the curtain opened ahead of it, that which the
/// optimizer has told to be in the page cache, for the call waits for what is not.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
pub fn choose(segment: &Segment, held: &Held, turn: &mut Turn, at: u64, begun: Option<u64>) -> Option<Span> {
    let begun = begun?;
    let shared = segment.mappings.get(held.slot())?;
    let trial = turn.trial();
    trial.arrive(at, begun);
    let gain = trial.gain();
    if shared.gain.load(Relaxed) != gain {
        // The optimizer has the cache line, too.
        shared.gain.store(gain, Relaxed);
    }
    let ahead = turn.curtain().ahead();
    let reached = shared.presence.reach(held.offset() + ahead.start, held.offset() + ahead.end) - held.offset();
    let span = Span { start: ahead.start, end: (reached / PAGE * PAGE).min(ahead.start + LONGEST) };
    let pays = match wish() {
        _ if span.is_empty() => false,
        Populate::Off => false,
        Populate::On => true,
        Populate::Auto if reached == ahead.end => turn.trial().depart(reached, reached - ahead.start, begun),
        Populate::Auto => turn.trial().is_worth_it(),
    };
    pays.then_some(span)
}

/// Maps these pages. Not in the mapping's turn: other threads that trip need not wait.
pub fn map(segment: &Segment, held: &Held, span: Span) {
    let (start, length) = (held.start() + span.start as usize, (span.end - span.start) as usize);
    // SAFETY: `held` keeps the range mapped, and it was registered with this extent.
    match unsafe { sys::populate(start, length) } {
        Ok(()) => {
            if let Some(shared) = segment.mappings.get(held.slot()) {
                shared.populated.fetch_add(length as u64, Relaxed);
            }
        }
        Err(sys::Error::EINVAL | sys::Error::ENOSYS | sys::Error::EPERM) => REFUSED.store(true, Relaxed),
        // Another thread's checkpoint lies in between, or the file has become shorter: the reader meets it by itself.
        Err(_) => {}
    }
}
