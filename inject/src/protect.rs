//! The door to the two ways of protecting pages: `mprotect` for the curtain, guard regions for checkpoints in it.

use crate::curtain::{Action, Span};
use crate::pins;
use crate::registry::{self, Held, Turn};
use crate::settings::Protect;
use crate::sys;
use core::sync::atomic::Ordering::*;
use precache_contract::PAGE;
use precache_contract::segment::{LettingGo, Method};

/// Does to the held mapping what the curtain says.
///
/// A guard that cannot be placed (the program locked the page: EINVAL) is one checkpoint less, and no error; so is one
/// that a system call of the program is at work on.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
pub fn perform(held: &Held, action: Action) -> sys::Result<()> {
    if matches!(action, Action::Close(_) | Action::Guard(_)) {
        registry::note_change();
    }
    match action {
        Action::Open(span) => open(held, span),
        Action::Close(span) => close(held, span),
        Action::Guard(at) => {
            guard(held, at);
            Ok(())
        }
        // SAFETY: `held` keeps the range mapped, and it was registered with this extent.
        Action::Lift(at) => unsafe { sys::guard_remove(held.start() + at as usize, PAGE as usize) },
    }
}

/// Protects a part of the held mapping, but for what is pinned.
#[cold]
fn close(held: &Held, span: Span) -> sys::Result<()> {
    let (start, end) = (held.start() + span.start as usize, held.start() + span.end as usize);
    let mut result = Ok(());
    pins::each_unpinned(start, end, |from, to| {
        if result.is_ok() {
            // SAFETY: as above.
            result = unsafe { sys::mprotect(from, to - from, libc::PROT_NONE) };
        }
    });
    result
}

/// Guards the page at `at`, unless it is pinned.
#[cold]
fn guard(held: &Held, at: u64) {
    let start = held.start() + at as usize;
    pins::each_unpinned(start, start + PAGE as usize, |from, to| {
        held.note_guard(at);
        // SAFETY: as above; `arming` chooses guards for shared mappings alone.
        let _ = unsafe { sys::guard_install(from, to - from) };
    });
}

/// Gives a part of the held mapping the program's own protection.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
pub fn open(held: &Held, span: Span) -> sys::Result<()> {
    let (start, length) = (held.start() + span.start as usize, (span.end - span.start) as usize);
    // SAFETY: `held` keeps the range mapped, and it was registered with this extent.
    unsafe {
        sys::mprotect(start, length, held.protection())?;
        if held.has_guards(span) {
            sys::guard_remove(start, length)?;
        }
    }
    Ok(())
}

/// Unmaps the pages that the optimizer wants to drop: the next access maps them again, and finds the same bytes. What a
/// program may have written to private pages would be lost: of these nothing is let go of, and the request stays unmet.
pub fn let_pages_go(held: &Held, wanted: &LettingGo) {
    let asked = wanted.asked.load(Acquire);
    if asked == wanted.met.load(Relaxed) || held.protection() & libc::PROT_WRITE != 0 {
        return;
    }
    let inside = |offset: u64| offset.saturating_sub(held.offset()).min(held.length() as u64);
    let start = inside(wanted.start.load(Relaxed)).next_multiple_of(PAGE) as usize;
    let end = (inside(wanted.end.load(Relaxed)) / PAGE * PAGE) as usize;
    if start < end {
        // SAFETY: `held` keeps the range mapped; its pages are clean ones of a file, which can be mapped anew
        // (madvise(2), MADV_DONTNEED). Refused for locked pages: then they stay.
        let _ = unsafe { sys::unmap_pages(held.start() + start, end - start) };
    }
    wanted.met.store(asked, Release);
}

/// Opens the mapping for good; `false` when the kernel refuses even that. One area of one protection needs no more
/// kernel mappings than before, so it works when none are left.
pub fn lift(held: &Held, turn: &mut Turn) -> bool {
    let mut opened = true;
    turn.curtain().lift(&mut |action| opened = perform(held, action).is_ok());
    if opened {
        // Any that is found from here on is the program's own.
        held.forget_guards();
    }
    opened
}

/// Longest mapping that gets guards unless they are asked for. A mapping that ever had one is copied by fork page
/// table entry by entry, whatever has been read of it: 17 ms for 1 GiB instead of 0.05 (`docs/mechanism.md`).
const GUARDED: usize = 128 << 20;

/// The method for a new mapping of so many bytes: guards where they are safe and forks stay cheap, if they work.
pub fn wanted(protect: Protect, length: usize, guards_are_safe: bool) -> Method {
    let wants = match protect {
        Protect::Guard => true,
        Protect::Mprotect => false,
        Protect::Auto => length <= GUARDED,
    };
    if wants && (guards_are_safe || cfg!(feature = "sabotage-private-guards")) {
        Method::Guard
    } else {
        Method::Mprotect
    }
}

/// Whether a guard can be placed in the held mapping, which is registered for guards. Whoever meets it meanwhile trips; calls do not,
/// and may have pinned what lay there before.
pub fn guards_work(held: &Held) -> bool {
    let mut page = held.start();
    pins::each_unpinned(page, page + held.length(), |from, _| page = from);
    held.note_guard((page - held.start()) as u64);
    // SAFETY: `held` keeps the range mapped, and only mappings where guards are safe are registered for them.
    let (tried, removed) = unsafe {
        let tried = sys::guard_install(page, PAGE as usize);
        (tried, tried.and_then(|()| sys::guard_remove(page, PAGE as usize)))
    };
    // One that was placed and cannot be removed is kept in mind.
    if tried.is_err() || removed.is_ok() {
        held.forget_guards();
    }
    removed.is_ok()
}
