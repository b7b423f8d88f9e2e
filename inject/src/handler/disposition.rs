//! What the program wants done on SIGSEGV. It sees this, and not our handler, whenever it asks.
//!
//! Kept as the action of the signal that stands in for SIGSEGV ([`super::stand_in`]): of this process alone, as the
//! kernel keeps actions, even where a vfork child shares all memory with its parent. It is never in force there, for
//! nothing sends that signal; but a program that is executed inherits whether a signal is ignored. So that SIGSEGV is
//! ignored is kept as a mark.

mod aside;

pub use self::aside::{Ignored, Withdrawn, at_last, is_last, was_last};
use super::open_everything;
use super::stand_in::STAND_IN;
use crate::arming::settle_inheritance;
use crate::fork_gate::Shut;
use crate::glance::GLANCE;
use crate::sys::{self, Action, SignalSet, bit};
use crate::{next, owner, pins};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use precache_contract::segment::Refusal;

/// The first of glibc's two own signals, which its calls put into no set: a set has both, if made by other means, or none.
/// An action that calls no handler and whose mask has one of them is ours: as that of the signal that stands in, it means that
/// the program ignores SIGSEGV; as that of SIGSEGV, that our handler is not in place for a while.
const MARK: SignalSet = bit(32);

const IGNORE: Action = Action { handler: libc::SIG_IGN, flags: 0, restorer: 0, mask: 0 };

/// `SA_RESTORER`: the kernel returns from handlers through a function that libc gives (x86-64).
const SA_RESTORER: u64 = 0x0400_0000;

static INSTALLING: AtomicBool = AtomicBool::new(false);

/// Bits of `GLANCE.handler`. It was put in place.
const INSTALLED: u8 = 1;

/// It is not called any more, or not whenever something faults, and all is open.
const LOST: u8 = 2;

/// The process that installed it: a vfork child, which has actions of its own, sees this and is another.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Why nothing may be armed in this process any more, plus one; 0: it may.
static BARRED: AtomicUsize = AtomicUsize::new(0);

/// libc's restorer, with its flag.
static RESTORER: AtomicUsize = AtomicUsize::new(0);
static RESTORER_FLAG: AtomicU64 = AtomicU64::new(0);

/// The handler that an interposed call set last, before ours is in place.
static SEEN: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// What the program set for SIGSTKFLT itself: it reads it back, and that is all.
static OWN: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Whether our handler is in place, so that the program's disposition is kept here.
pub fn is_virtual() -> bool {
    GLANCE.handler.load(Acquire) & INSTALLED != 0
}

/// What the program wants.
pub fn get() -> Action {
    meant_by(sys::action(STAND_IN).unwrap_or_default())
}

/// Sets what the program wants and returns what it wanted before.
pub fn set(wanted: &Action) -> Action {
    let old = keep_wish(&with_restorer(wanted)).unwrap_or_default();
    accommodate();
    old
}

/// As the kernel does before it calls a handler with `SA_RESETHAND`.
pub fn reset(wanted: &Action) {
    let _ = keep_wish(&Action { handler: libc::SIG_DFL, ..*wanted });
}

/// Has the kernel keep what the program wants; the answer is what it wanted before.
#[inline(never)] // One copy is enough for all who ask.
fn keep_wish(wanted: &Action) -> sys::Result<Action> {
    let mut kept = *wanted;
    if wanted.handler == libc::SIG_IGN {
        kept.mask ^= MARK;
        // A program that is executed finds SIGSTKFLT ignored if the program ignores that, too.
        if OWN[0].load(Relaxed) != libc::SIG_IGN {
            kept.handler = libc::SIG_DFL;
        }
    }
    // SAFETY: nothing sends this signal (signal(7)); the handler is the program's own, for the signal that it stands
    // for.
    unsafe { sys::set_action(STAND_IN, &kept) }.map(meant_by)
}

/// What the program wants if this is kept.
fn meant_by(kept: Action) -> Action {
    if is_marked(&kept) { Action { handler: libc::SIG_IGN, mask: kept.mask ^ MARK, ..kept } } else { kept }
}

fn is_marked(action: &Action) -> bool {
    action.handler <= libc::SIG_IGN && (action.mask & sys::LIBC_INTERNAL).count_ones() == 1
}

/// Sets what the program wants for SIGSTKFLT itself and returns what it wanted before.
pub fn set_own(wanted: Option<&Action>) -> Action {
    let [handler, flags, mask] = &OWN;
    let old = Action {
        handler: handler.load(Relaxed),
        flags: flags.load(Relaxed) as u64,
        mask: mask.load(Relaxed) as SignalSet,
        restorer: RESTORER.load(Relaxed),
    };
    if let Some(wanted) = wanted.map(with_restorer) {
        handler.store(wanted.handler, Relaxed);
        flags.store(wanted.flags as usize, Relaxed);
        mask.store((wanted.mask & !sys::UNBLOCKABLE) as usize, Relaxed);
        // How it is kept that SIGSEGV is ignored depends on it.
        let now = get();
        if now.handler == libc::SIG_IGN
            && let Ok(before) = keep_wish(&now)
            && before != now
        {
            // Another thread has set it in between.
            let _ = keep_wish(&before);
        }
    }
    old
}

/// An interposed call has set this handler for SIGSEGV, which is not virtual yet.
pub fn note(handler: usize) {
    SEEN.store(handler, Release);
}

/// In a forked child: no other thread is installing anything.
pub fn reset_after_fork() {
    INSTALLING.store(false, Release);
    GLANCE.suspended.store(0, SeqCst);
    IGNORING.store(0, SeqCst);
    PROCESS.store(owner::process(), Relaxed);
    end_ignoring();
}

/// Puts our handler in place again where another thread of the parent was starting a program.
fn end_ignoring() {
    if sys::action(libc::SIGSEGV).is_ok_and(|now| is_marked(&now)) {
        put_in_place(&get());
    }
}

/// While this exists nothing is armed, for a checkpoint would kill: the kernel would not call our handler, or not for this
/// thread.
pub struct Suspended {
    /// The process that counts it, or [`NOBODY`].
    process: i32,
}

/// The number of no process: a vfork child, which is alone with its actions and its mask, counts nothing.
const NOBODY: i32 = -1;

impl Suspended {
    #[inline(never)] // One copy is enough for both who ask.
    pub fn begin() -> Self {
        // No handler of the program's forks before this is counted and all is open.
        let _quiet = sys::Quiet::begin();
        // One that runs later may meet what a forked child has inherited.
        settle_inheritance();
        let process = sys::process();
        if !is_virtual() || PROCESS.load(Relaxed) != process {
            return Self { process: NOBODY };
        }
        GLANCE.suspended.fetch_add(1, SeqCst);
        open_everything(Refusal::Executing);
        Self { process }
    }

    /// Whether this process counts it: not the child of a handler that forked meanwhile, which counts anew when it adopts.
    fn is_ours(&self) -> bool {
        settle_inheritance();
        self.process == PROCESS.load(Relaxed)
    }
}

impl Drop for Suspended {
    #[inline(never)] // As above.
    fn drop(&mut self) {
        // No handler forks between the look and the count.
        let _quiet = sys::Quiet::begin();
        if self.is_ours() {
            pins::decrease(&GLANCE.suspended);
        }
    }
}

/// Why nothing may be armed in this process at present, or any more.
pub fn refusal() -> Option<Refusal> {
    let barred = BARRED.load(SeqCst).checked_sub(1).and_then(|why| Refusal::ALL.get(why)).copied();
    barred.or_else(|| (GLANCE.suspended.load(SeqCst) != 0).then_some(Refusal::Executing))
}

/// How many threads start a program that is to find SIGSEGV ignored.
static IGNORING: AtomicU32 = AtomicU32::new(0);

/// The right to install: with all signals blocked, so that no handler waits for the thread that it interrupted, and no fork,
/// whose child would take our handler for another's.
struct Installing(#[expect(dead_code, reason = "held for its end")] Shut);

impl Installing {
    #[inline(never)] // One copy is enough for all who install.
    fn begin() -> Self {
        let (shut, mut pauses) = (Shut::begin(), sys::Pauses::default());
        while INSTALLING.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            pauses.next();
        }
        Self(shut)
    }
}

impl Drop for Installing {
    fn drop(&mut self) {
        INSTALLING.store(false, Release);
    }
}

/// Puts our handler in place, in front of the program's, or looks whether it still is. The error says why nothing may
/// be armed.
pub fn install() -> Result<(), Refusal> {
    if let Some(why) = refusal() {
        return Err(why);
    }
    let _installing = Installing::begin();
    if is_virtual() {
        // A vfork child that was the first to look at what this process inherited has put it in place for itself alone.
        if refusal().is_none() {
            end_ignoring();
        }
        return keep();
    }
    let before = sys::action(libc::SIGSEGV).map_err(|_| Refusal::HandlerLost)?;
    // A runtime that installs its handler by a raw system call (Go) makes other raw calls too, and installs it again.
    let unseen = ![libc::SIG_DFL, libc::SIG_IGN, SEEN.load(Acquire)].contains(&before.handler);
    if unseen && !cfg!(feature = "sabotage-raw-handler-taken-over") || !learn_restorer() {
        return Err(Refusal::HandlerLost);
    }
    if !take_over(&before) {
        return Err(Refusal::HandlerLost);
    }
    PROCESS.store(sys::process(), Relaxed);
    GLANCE.handler.fetch_or(INSTALLED, Release);
    Ok(())
}

/// Keeps what is in force as what the program wants, and puts our handler in front of it.
fn take_over(before: &Action) -> bool {
    keep_wish(before).is_ok() && put_in_place(before)
}

/// Whether the kernel would call us: a handler can be installed past every library (Go).
pub fn is_ours() -> bool {
    sys::action(libc::SIGSEGV).is_ok_and(|action| action.handler == ours())
}

/// Whether an action of SIGSEGV is our handler's, or takes its place for a while.
fn is_known(action: &Action) -> bool {
    action.handler == ours() || is_marked(action)
}

/// Looks whether our handler is still in place, and lets go of everything if it is not.
pub fn keep() -> Result<(), Refusal> {
    match refusal() {
        _ if is_last() || is_ours() || cfg!(feature = "sabotage-raw-handler-unnoticed") => Ok(()),
        // Another thread has put the program's own in force meanwhile.
        Some(why) => Err(why),
        None => Err(refusal().unwrap_or_else(|| bar(Refusal::HandlerLost))),
    }
}

/// Opens everything, and lets nothing be armed in this process from here on.
pub fn bar(why: Refusal) -> Refusal {
    BARRED.store(why as usize + 1, SeqCst);
    open_everything(why);
    GLANCE.handler.fetch_or(LOST, Release);
    why
}

/// Whether a fault calls our handler, as far as this process has been told. Where it does not, nothing is closed. Who ignores SIGSEGV
/// for a while ([`IGNORING`]) is counted in `GLANCE.suspended` all the while; a vfork child, whose actions are its own, in neither.
#[inline(always)]
pub fn is_in_place() -> bool {
    (GLANCE.handler.load(Acquire) == INSTALLED) & (GLANCE.suspended.load(Acquire) == 0)
}

/// The default action of SIGSEGV, in force. Everything must be open before.
pub fn uninstall() {
    // SAFETY: the default action calls nothing.
    let _ = unsafe { sys::set_action(libc::SIGSEGV, &Action::default()) };
}

/// Learns libc's restorer, from what it adds to an action of the signal that stands in; what the program had set for
/// that is kept for it.
fn learn_restorer() -> bool {
    let (Some(sigaction), Ok(own)) = (next::sigaction(), sys::action(STAND_IN)) else { return false };
    // SAFETY: sigaction is plain data, for which zero is a value.
    let default: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: a valid action (sigaction(2)): the default one.
    if unsafe { sigaction(STAND_IN, &default, core::ptr::null_mut()) } != 0 {
        return false;
    }
    let Ok(as_libc_sets) = sys::action(STAND_IN) else { return false };
    RESTORER.store(as_libc_sets.restorer, Relaxed);
    RESTORER_FLAG.store(as_libc_sets.flags & SA_RESTORER, Relaxed);
    set_own(Some(&own));
    true
}

fn with_restorer(action: &Action) -> Action {
    let flags = action.flags | RESTORER_FLAG.load(Relaxed);
    Action { flags, restorer: RESTORER.load(Relaxed), ..*action }
}

fn ours() -> usize {
    super::on_sigsegv as *const () as usize
}

/// Our action in front of the program's.
fn in_front_of(program: &Action) -> Action {
    // SA_SIGINFO: the address is all that we go by.
    // SA_ONSTACK: as the program has it for its own handler, so that this runs on the stack that it expects; without
    // a handler of its own, on the alternate stack if there is one (Go demands it; small stacks need it).
    // SA_RESTART: as the program has it; without a handler of its own, calls go on as when a signal is ignored.
    let on_stack = if cfg!(feature = "sabotage-handler-stack") { 0 } else { libc::SA_ONSTACK };
    let passed_on = (on_stack | libc::SA_RESTART) as u64;
    let flags = match program.handler {
        libc::SIG_DFL | libc::SIG_IGN => passed_on,
        _ => program.flags & passed_on,
    };
    with_restorer(&Action {
        handler: ours(),
        flags: libc::SA_SIGINFO as u64 | flags,
        restorer: 0,
        // All: no handler of the program's runs on top of ours, where it could unmap what we hold. All but the one that
        // stands in: its bit is what the program had blocked when the signal came.
        mask: SignalSet::MAX & !bit(STAND_IN),
    })
}

#[inline(never)] // As above.
fn put_in_place(program: &Action) -> bool {
    // SAFETY: a handler for SA_SIGINFO, and libc's restorer.
    unsafe { sys::set_action(libc::SIGSEGV, &in_front_of(program)) }.is_ok()
}

/// Runs our handler on the stack that the program's one expects, if it is still in place; puts it back for a handler of the
/// program's. Of several threads that come here the last one to put it in place looks again.
fn accommodate() {
    while let Ok(now) = sys::action(libc::SIGSEGV) {
        if is_last() {
            aside::renew_last();
            if is_last() {
                return;
            }
            // Another thread was refused its filter meanwhile.
            continue;
        }
        let wanted = get();
        let is_right = if !is_known(&now) {
            let _ = keep();
            true
        } else if is_marked(&now) {
            wanted.handler == libc::SIG_IGN
        } else {
            in_front_of(&wanted).flags == now.flags
        };
        if is_right || !put_in_place(&wanted) {
            return;
        }
    }
}
