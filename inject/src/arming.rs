//! How a new mapping is armed, and how one is let go of: what the interposed calls ask for.

use crate::buffers::{Buffers, STRING_MAX};
use crate::curtain::Action;
use crate::doing::Doing;
use crate::fork_gate::Shut;
use crate::handler::{self, disposition};
use crate::mapped::{Candidate, Mapped};
use crate::owner::{self, Standing};
use crate::pins::{self, Frame, Pin, WholePin};
use crate::registry::{self, Description, Leaving};
use crate::settings;
use crate::{advice, handover, parts, past_libc, protect, sys};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};
use precache_contract::PAGE;
use precache_contract::ring::Advice;
use precache_contract::segment::{Method, Refusal};

/// Arms the mapping if it is one of a large data file; the optimizer is asked for all of it if `is_populated`. The answer is
/// whether it is armed. Leaves errno alone.
#[inline(always)]
pub fn consider(mapped: &Mapped, is_populated: bool) -> bool {
    mapped.is_data() && consider_data(mapped, is_populated)
}

#[inline(never)] // What it needs of the stack must not weigh on those who map other things.
fn consider_data(mapped: &Mapped, is_populated: bool) -> bool {
    if past_libc::is_filtered() {
        handover::segment().into_iter().for_each(|segment| segment.counters.refuse(Refusal::Filtered));
        return false;
    }
    let Some(Candidate { part, file, settings, .. }) = mapped.candidate() else { return false };
    settle_inheritance();
    let ready = make_known().and_then(|()| make_ready(mapped, file));
    // No child inherits the connection, and that of a handler that forks has the place in the table free.
    let shut = Shut::begin();
    // A handler of the program's may have forked meanwhile, and this be the child.
    settle_inheritance();
    let Ok(connection) = handover::connect(&shut) else {
        // Where nobody listens, the supervisor reports the optimizer's death.
        handover::refuse(Refusal::NotEnrolled, mapped.file, &shut);
        return false;
    };
    match ready.and_then(|()| arm(mapped, part, file, settings, &connection, is_populated)) {
        Ok(()) => true,
        // What the report then lacks is a line about a file that was not accelerated either.
        Err(why) => {
            let _ = connection.refuse(why, mapped.file);
            false
        }
    }
}

/// Makes the process known to the optimizer, or sees that it still is.
fn make_known() -> Result<(), Refusal> {
    let shut = Shut::begin();
    let known = if handover::segment().is_some() {
        // Another optimizer may have come since: it is told of all mappings, not of this one alone.
        handler::attachment::check_unforked(&shut);
        handover::may_enrol()
    } else {
        handover::connect(&shut).map(drop)
    };
    known.map_err(|_| Refusal::NotEnrolled)
}

/// The file of which it was seen last that it is no program: some map their data anew for each batch, and on slow storage a look
/// takes as long as the batch. 0: none.
static NO_ELF: AtomicU64 = AtomicU64::new(0);

/// Puts our handler in place, where nothing that can be told before speaks against arming.
fn make_ready(mapped: &Mapped, file: (u64, u64)) -> Result<(), Refusal> {
    if mapped.was_in_use {
        return Err(Refusal::InUse);
    }
    if mapped.is_shared() && mapped.is_writable() {
        return Err(Refusal::SharedWritable);
    }
    if mapped.is_writable() && (is_data_bounded() || sys::limit(libc::RLIMIT_DATA) != Ok(libc::RLIM_INFINITY)) {
        return Err(Refusal::ProtectFailed);
    }
    if sys::open_flags(mapped.file).is_ok_and(|flags| flags & libc::O_DIRECT != 0) {
        return Err(Refusal::Direct);
    }
    // Before anything of the file is read.
    if registry::is_full() {
        return Err(Refusal::TableFull);
    }
    let key = advice::key_of(file);
    if NO_ELF.load(Relaxed) != key {
        let mut magic = [0u8; 4];
        if sys::read_at(mapped.file, &mut magic, 0) == Ok(4) && &magic == b"\x7fELF" {
            return Err(Refusal::Elf);
        }
        NO_ELF.store(key, Relaxed);
    }
    if let Some(why) = past_libc::reason() {
        return Err(why);
    }
    // Without it, nor is anybody there any more for what was armed before.
    disposition::install().inspect_err(|&why| give_up(why))?;
    handler::stand_in::settle_mask();
    Ok(())
}

/// With signals blocked.
fn arm(
    mapped: &Mapped,
    (start, end): (u64, u64),
    file: (u64, u64),
    settings: &settings::Settings,
    connection: &handover::Connection,
    is_populated: bool,
) -> Result<(), Refusal> {
    let length = (end - start) as usize;
    if mapped.is_writable() {
        parts::expect();
    }
    let what = Description {
        start: mapped.address + start as usize,
        length,
        lead: STRING_MAX.min(start as usize),
        offset: mapped.offset + start,
        file,
        protection: mapped.protection,
        distance: settings.distance,
        // Private mappings get no guards: they would lose what was written to them.
        method: protect::wanted(settings.protect, length, mapped.is_shared() && !mapped.is_writable()),
    };
    let claim = registry::claim().ok_or(Refusal::TableFull)?;
    if cfg!(feature = "sabotage-guard-before-registration") {
        // For as long as a handler takes to look the place up.
        for _ in 0..64 {
            // SAFETY: the mapping that the program has just made.
            let _ = unsafe {
                sys::guard_install(what.start, PAGE as usize)
                    .and_then(|()| sys::guard_remove(what.start, PAGE as usize))
            };
        }
    }
    // From here on a thread that knows the place already (MAP_FIXED) may trip.
    let Some(held) = claim.register(&what) else {
        drop(let_go(what.start, length, Some(Refusal::Changed)));
        return Err(Refusal::Changed);
    };
    if cfg!(feature = "sabotage-armed-after-letting-go") {
        // For as long as another thread takes to map something in its place.
        (0..1000).for_each(|_| sys::yield_now());
    }
    let mut turn = held.wait_turn();
    // What another thread has found meanwhile it has told before it looked what there was to let go of; from here on it
    // waits for this turn, or dies. And if it has let go of this mapping already, nobody would open it again.
    let curtain = turn.curtain();
    let was_let_go = curtain.is_lifted() && !cfg!(feature = "sabotage-armed-after-letting-go");
    let mut armed = why_not().and(if was_let_go { Err(Refusal::Changed) } else { Ok(()) });
    if mapped.is_writable() && is_data_bounded() {
        armed = Err(Refusal::ProtectFailed);
    }
    if armed.is_ok() {
        if what.method == Method::Guard && !protect::guards_work(&held) {
            turn.do_without_guards();
        }
        handover::describe(connection.segment, &held);
        let curtain = turn.curtain();
        curtain.begin_again();
        let whole = curtain.whole();
        armed = match connection.announce(held.slot(), held.generation(), mapped.file) {
            Ok(()) => protect::perform(&held, Action::Close(whole)).map_err(|_| Refusal::ProtectFailed),
            Err(_) => Err(Refusal::NotEnrolled),
        };
        armed = armed.and_then(|()| why_not());
    }
    if armed.is_ok() {
        advice::recall(&held);
        if is_populated {
            advice::tell(&held, Advice::WillNeed, advice::part_of(&held));
        }
    } else {
        protect::lift(&held, &mut turn);
        drop(turn);
        handover::retract(held.slot());
        let mut leaving = Leaving::default();
        leaving.add(held);
        registry::await_leaving(what.start, what.start + length);
        drop(leaving);
    }
    armed
}

/// The program may have set a bound on its data (RLIMIT_DATA, getrlimit(2)). What is closed of a private mapping that may be written
/// to does not count as data (`is_data_mapping` in mm/internal.h), and might find no room when it is opened.
static IS_DATA_BOUNDED: AtomicBool = AtomicBool::new(false);

/// Asked by who has registered a mapping and not closed anything of it yet.
fn is_data_bounded() -> bool {
    // Pairs with the one below: who does not see the mapping is seen here.
    fence(SeqCst);
    IS_DATA_BOUNDED.load(Relaxed)
}

/// Before the program sets one: lets go of all mappings, and from here on no such one is armed.
pub fn bound_data() {
    IS_DATA_BOUNDED.store(true, Relaxed);
    fence(SeqCst);
    drop(let_go(0, usize::MAX, Some(Refusal::ProtectFailed)));
}

/// Whether another thread has found meanwhile that nothing may be armed.
#[inline(never)]
fn why_not() -> Result<(), Refusal> {
    disposition::refusal().or_else(past_libc::seen).map_or(Ok(()), Err)
}

/// A forked child takes over what it inherited before it changes any of it. Where system calls may be forbidden there is nothing.
pub fn settle_inheritance() {
    if past_libc::is_filtered() && !registry::overlaps_or_leaving(0, usize::MAX) {
        return;
    }
    let mut pauses = sys::Pauses::default();
    while !owner::is_settled() {
        // No handler of the program's may trip on the way: it would wait for this thread.
        let _quiet = sys::Quiet::begin();
        match owner::standing() {
            Standing::Owner => return,
            Standing::Heir(_adoption) => return handler::adopt(),
            Standing::Underage => pauses.next(),
        }
    }
}

/// Armed memory that a system call is about to access: open, and kept open as long as this exists.
pub struct ForCall {
    _pin: Pin,
    /// Something of it was closed.
    pub opened: bool,
}

/// Before a system call that accesses these buffers: checkpoints in them are hit now. `None`: nothing of ours is there.
#[inline(always)]
pub fn prepare_for_call(buffers: &Buffers) -> Option<ForCall> {
    prepare(buffers, true)
}

/// The same for a call that has met a closed page: whatever is said to be open is looked at.
#[inline(always)]
pub fn prepare_again(buffers: &Buffers) -> Option<ForCall> {
    prepare(buffers, false)
}

#[cold]
#[inline(never)] // One copy is enough for all who call this.
fn prepare(buffers: &Buffers, may_share: bool) -> Option<ForCall> {
    let extent = Cell::new((usize::MAX, 0, 0));
    buffers.each_armed(Doing::by(&|(start, end)| {
        let (low, high, parts) = extent.get();
        extent.set((low.min(start), high.max(end), parts + 1));
    }));
    let (low, high, parts) = extent.get();
    if low >= high || cfg!(feature = "sabotage-buffers-stay-closed") {
        return None;
    }
    if may_share
        && owner::is_settled()
        && let Some(pin) = pins::share(low, high)
    {
        return Some(ForCall { _pin: pin, opened: false });
    }
    let is_one = parts == 1;
    let opened = Cell::new(false);
    let open = |start, end| opened.set(opened.get() | handler::hit_for_call(start, end));
    // A handler may fork wherever signals are not blocked: its child goes on here, too.
    let pin = {
        let _quiet = sys::Quiet::begin();
        settle_inheritance();
        let pin = pins::pin(low, high, is_one);
        if is_one {
            open(low, high);
            pin.has_been_opened();
        }
        pin
    };
    if pin.is_of_everything() {
        count_all_pinned();
    }
    if !is_one {
        // One by one: a list is not looked at while all signals are blocked, for it need not be there.
        buffers.each_armed(Doing::by(&|(start, end)| {
            let _quiet = sys::Quiet::begin();
            settle_inheritance();
            open(start, end);
        }));
    }
    Some(ForCall { _pin: pin, opened: opened.get() })
}

/// Before a call of libc that touches its buffers itself and then hands them to the kernel: what is hit from here on
/// stays open. `None`: nothing is armed.
pub fn keep_all_open(frame: Frame) -> Option<WholePin> {
    if registry::is_empty() {
        return None;
    }
    // Each call of printf comes here: one less on the way.
    if !owner::is_settled() {
        settle_inheritance();
    }
    let (pin, was_left) = pins::everything(frame);
    if was_left {
        count_all_pinned();
    }
    registry::await_turns();
    Some(pin)
}

#[cold]
#[inline(never)] // One copy is enough for both.
fn count_all_pinned() {
    if let Some(segment) = handover::segment() {
        segment.counters.all_pinned.fetch_add(1, Relaxed);
    }
}

/// Lets go of all mappings.
pub fn give_up(why: Refusal) {
    settle_inheritance();
    let _quiet = sys::Quiet::begin();
    handler::give_up(why);
}

/// Mappings on their way out of the table, from before the call that changes them until after it.
pub struct Departure {
    leaving: Leaving,
    process: i32,
}

impl Drop for Departure {
    fn drop(&mut self) {
        if self.process != owner::process() {
            // The child of a handler that forked during the call.
            return self.leaving.forget();
        }
        self.leaving.slots().for_each(handover::retract);
    }
}

/// Before a call that unmaps, moves or re-protects the range: what is registered in it is opened and forgotten, as a
/// whole, and no handler is at work in it any more when this returns. `why` is counted, or that the program changed it, if
/// the mapping or a part of it lives on without us. Keep the answer until the call is done.
pub fn let_go(address: usize, length: usize, why: Option<Refusal>) -> Option<Departure> {
    if !registry::overlaps_or_leaving(address, address.saturating_add(length)) {
        return None;
    }
    settle_inheritance();
    let _quiet = sys::Quiet::begin();
    if disposition::is_virtual() && !owner::is_guest() {
        // A handler that was installed past us meets no more checkpoints.
        let _ = disposition::keep();
    }
    let mut departure = Departure { leaving: Leaving::default(), process: owner::process() };
    let end = address.saturating_add(length).checked_next_multiple_of(PAGE as usize).unwrap_or(usize::MAX);
    registry::each_overlapping(address, address.saturating_add(length), |held| {
        let is_part = held.start() < address || end < held.start() + held.length();
        if let (Some(segment), Some(why)) = (handover::segment(), why.or(is_part.then_some(Refusal::Changed))) {
            segment.counters.refuse(why);
        }
        protect::lift(&held, &mut held.wait_turn());
        departure.leaving.add(held);
    });
    // Another thread may have been first at one of them, and handlers be at work in it all the same.
    registry::await_leaving(address, address.saturating_add(length));
    Some(departure)
}

/// The same for what the program lends to what goes on with it.
#[inline(always)]
pub fn lend(address: usize, length: usize) {
    if registry::overlaps_or_leaving(address, address.saturating_add(length)) {
        lend_armed(address, length);
    }
}

#[cold]
#[inline(never)] // One copy is enough for all who lend.
fn lend_armed(address: usize, length: usize) {
    drop(let_go(address, length, Some(Refusal::Lent)));
}
