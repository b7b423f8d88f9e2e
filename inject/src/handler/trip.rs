//! A checkpoint is hit: tell the optimizer, let the reader through, re-arm what it left behind.

use super::{attachment, disposition, populate, repetition};
use crate::curtain::{Clock, Guide, Span, Told, Verdict};
use crate::owner::{self, Standing};
use crate::registry::{self, Held, Turn};
use crate::{handover, past_libc, pins, protect, settings, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::*};
use precache_contract::ring::{News, What};
use precache_contract::segment::{Refusal, Segment, WATCHES};
use precache_contract::{PAGE, STEP};

/// `true`: the fault was ours and the access can be tried again. `frame`: where the kernel put what it tells the handler.
pub fn on_fault(address: usize, is_write: bool, frame: usize) -> bool {
    if disposition::is_last() {
        // Nothing is closed, and no system call may be made to look: what was ours does not come again.
        return repetition::of(address, frame, 0) == 0;
    }
    match owner::standing() {
        Standing::Owner => {}
        Standing::Heir(_adoption) => adopt(),
        Standing::Underage => {
            // Adoption takes microseconds; the access is tried again until then.
            sys::sleep_briefly();
            return true;
        }
    }
    let segment = attachment::served();
    let in_handler = segment.map_or(&UNTOLD, |segment| &segment.counters.in_handler);
    in_handler.fetch_add(1, Relaxed);
    let is_ours = is_ours(segment, address, is_write, frame);
    in_handler.fetch_sub(1, Relaxed);
    is_ours
}

/// Threads in the handler, where there is nobody to look.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static UNTOLD: AtomicU64 = AtomicU64::new(0);

/// The same in a process that has its own state; `segment`: where it is told.
#[inline(always)]
fn is_ours(segment: Option<&Segment>, address: usize, is_write: bool, frame: usize) -> bool {
    let changes = registry::changes();
    if repetition::of(address, frame, changes) == repetition::LIMIT {
        return false;
    }
    let Some(held) = registry::holding(address) else { return was_ours(address, is_write, changes) };
    if is_write && held.protection() & libc::PROT_WRITE == 0 && !cfg!(feature = "sabotage-writes-swallowed") {
        return false;
    }
    let at = (address - held.start()) as u64 / PAGE * PAGE;
    let fate = segment.and_then(|segment| publish(segment, &held, at));
    let Some(mut turn) = held.try_turn() else {
        if let Some(segment) = segment {
            segment.counters.contended.fetch_add(1, Relaxed);
        }
        return open_step(&held, at);
    };
    if cfg!(feature = "sabotage-late-faults-are-the-programs")
        && turn.curtain().is_open(Span { start: at, end: at + PAGE })
    {
        return false;
    }
    if let Some(why) = held.doomed() {
        // This mapping alone: the optimizer may well serve the others.
        return lift(segment, &held, &mut turn, why);
    }
    match fate {
        None => {
            let Some(segment) = segment else { return follow(None, &held, &mut turn, at) };
            let begun = populate::clock(&mut turn);
            let followed = follow(Some(segment), &held, &mut turn, at);
            let ahead = populate::choose(segment, &held, &mut turn, at, begun);
            drop(turn);
            if let Some(span) = ahead {
                populate::map(segment, &held, span);
            }
            followed
        }
        Some(why) => {
            let lifted = lift(segment, &held, &mut turn, why);
            drop(turn);
            if matches!(why, Refusal::OptimizerGone | Refusal::OptimizerStalled) {
                give_up(why);
            }
            lifted
        }
    }
}

/// Before the kernel accesses `start..end` for the program: it raises no SIGSEGV, it fails. So what the range holds of
/// checkpoints is hit here; the answer is whether it held any. Not for signal context.
pub fn hit_for_call(start: usize, end: usize) -> bool {
    let mut opened = false;
    let segment = attachment::served();
    registry::each_overlapping(start, end, |held| {
        let first = start.saturating_sub(held.start()) as u64 / PAGE * PAGE;
        let last = (end - held.start()).min(held.length()) as u64;
        let span = Span { start: first, end: last.next_multiple_of(PAGE) };
        let mut was_closed = false;
        loop {
            let closed = held.wait_turn().curtain().first_closed(span);
            let Some(at) = closed else { break };
            was_closed = true;
            // Not in a turn: it may take a while to find another optimizer.
            let refused = segment.is_some_and(|segment| publish(segment, &held, at).is_some());
            if refused || !follow(segment, &held, &mut held.wait_turn(), at) {
                break;
            }
        }
        let mut turn = held.wait_turn();
        // Sentinels, and pages that stay closed because the optimizer is gone.
        if !turn.curtain().is_open(span) {
            was_closed = true;
            let _ = open_all(&held, span);
        }
        if was_closed {
            opened = true;
            if let Some(segment) = segment {
                segment.counters.lifted_for_calls.fetch_add(1, Relaxed);
            }
        }
    });
    opened
}

fn whole(held: &Held) -> Span {
    Span { start: 0, end: held.length() as u64 }
}

/// Tells the optimizer; the answer is why the mapping must be let go of, if it must.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
fn publish(segment: &Segment, held: &Held, at: u64) -> Option<Refusal> {
    let offset = held.offset() + at;
    let shared = segment.mappings.get(held.slot())?;
    segment.counters.trips.fetch_add(1, Relaxed);
    shared.trips.fetch_add(1, Relaxed);
    if shared.veto.load(Relaxed) == held.generation() {
        return Some(Refusal::Vetoed);
    }
    if attachment::is_due() {
        // The trip is the new optimizer's first news, or nobody's.
        return attachment::check();
    }
    let trip = News { slot: held.slot() as u16, generation: held.generation(), offset, what: What::Trip };
    if !segment.news.push(trip) {
        segment.counters.lost.fetch_add(1, Relaxed);
        return match attachment::check() {
            None if attachment::is_lost() => None,
            None => Some(Refusal::OptimizerStalled),
            gone => gone,
        };
    }
    let triggering = !shared.is_quiet(offset);
    if (triggering || segment.news.is_filling()) && segment.sleeper.take_wake() {
        // Nobody woken: it is about to sleep and will look once more, or it is gone.
        if !sys::futex_wake(&segment.sleeper.0) {
            return attachment::check();
        }
        segment.counters.wakes.fetch_add(1, Relaxed);
    }
    #[cfg(feature = "sabotage")]
    crate::sabotage::after_news(segment);
    None
}

/// Moves the curtain. Without a segment nobody hears of it for the time being.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
fn follow(segment: Option<&Segment>, held: &Held, turn: &mut Turn, at: u64) -> bool {
    let mut many;
    let mut told = Told { by_grid: settings::nobody_fetches(), maps_ahead: populate::is_wanted(), ..Told::default() };
    if let Some(shared) = segment.and_then(|segment| segment.mappings.get(held.slot())) {
        protect::let_pages_go(held, &shared.letting_go);
        let watched = shared.watched();
        many = [Guide::default(); WATCHES];
        many.iter_mut().zip(watched).for_each(|(guide, watch)| *guide = Guide::of(watch, held.offset()));
        let guides = many.get(..watched.len()).unwrap_or_default();
        told = Told { guides, distance: shared.distance.load(Relaxed), ..told };
    }
    let mut failed = false;
    let mut apply = |action| failed |= protect::perform(held, action).is_err();
    let verdict = turn.curtain().trip(at, &told, &Clock::new(&sys::milliseconds), &mut apply);
    if failed && !cfg!(feature = "sabotage-mappings-run-out") {
        return lift(segment, held, turn, Refusal::ProtectFailed);
    }
    #[cfg(feature = "sabotage")]
    crate::sabotage::after_trip(held, at);
    if matches!(verdict, Verdict::Random | Verdict::GivenUp)
        && let Some(segment) = segment
    {
        segment.counters.disorders.fetch_add(1, Relaxed);
        if verdict == Verdict::GivenUp {
            segment.counters.refuse(Refusal::Random);
        }
    }
    true
}

/// Lets go of the mapping, and counts why.
#[cold]
fn lift(segment: Option<&Segment>, held: &Held, turn: &mut Turn, why: Refusal) -> bool {
    if let Some(segment) = segment
        && !turn.curtain().is_lifted()
    {
        segment.counters.refuse(why);
    }
    protect::lift(held, turn)
}

/// Lets a thread through while another moves the curtain.
#[cold]
fn open_step(held: &Held, at: u64) -> bool {
    let start = at / STEP * STEP;
    open_all(held, Span { start, end: (start + STEP).min(held.length() as u64) })
}

/// Opens all of the span: with no kernel mappings left, the whole mapping, which needs none.
fn open_all(held: &Held, span: Span) -> bool {
    protect::open(held, span).is_ok() || protect::open(held, whole(held)).is_ok()
}

/// Lets go of all mappings of this process; those at which another thread is at work follow at its next trip.
#[cold]
pub fn give_up(why: Refusal) {
    registry::each(|held| match held.try_turn() {
        Some(mut turn) => {
            lift(handover::segment(), &held, &mut turn, why);
        }
        None => held.doom(why),
    });
}

/// A forked child's first look at its inheritance: the curtains are drawn anew, and the optimizer hears of it, or is told
/// later.
#[cold]
pub fn adopt() {
    disposition::reset_after_fork();
    pins::reset_after_fork();
    past_libc::reset_after_fork();
    attachment::reset_after_fork();
    handover::reset_after_fork();
    let mut refused = false;
    registry::reset_after_fork(|held| {
        let Some(mut turn) = held.try_turn() else { return };
        if turn.curtain().is_lifted() {
            return;
        }
        registry::note_change();
        // SAFETY: `held` keeps the range mapped, and it was registered with this extent.
        let closed = unsafe { sys::mprotect(held.start(), held.length(), libc::PROT_NONE as c_int) };
        if closed.is_err() {
            refused = true;
            protect::lift(held, &mut turn);
        }
    });
    // Nobody is given up so early.
    let _ = attachment::check();
    if handover::segment().is_none() {
        handover::count_unserved();
    }
    if refused {
        handover::count(Refusal::ProtectFailed);
    }
}

/// A fault whose mapping was unregistered by another thread while the signal was on its way: the access is tried
/// again, if the kernel could make it now, or if the table has changed since `changes`.
#[cold]
fn was_ours(address: usize, is_write: bool, changes: u32) -> bool {
    // Under a filter a word is not written to find out: a fault of the program's own (a collector's barrier) is likelier.
    let can_access = || !(is_write && past_libc::is_filtered()) && sys::can_access(address, is_write);
    registry::have_left() && (can_access() || registry::changes() != changes)
}
