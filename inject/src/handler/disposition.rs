//! What the program wants done on SIGSEGV. It sees this, and not our handler, whenever it asks.
//!
//! Kept as the action of the signal that stands in for SIGSEGV ([`super::stand_in`]): of this process alone, as the
//! kernel keeps actions, even where a vfork child shares all memory with its parent.

use super::open_everything;
use super::stand_in::{self, STAND_IN};
use crate::fork_gate::Shut;
use crate::sys::{self, Action, SignalSet, bit};
use crate::{next, owner};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use precache_contract::segment::Refusal;

/// `SA_RESTORER`: the kernel returns from handlers through a function that libc gives (x86-64).
const SA_RESTORER: u64 = 0x0400_0000;

static INSTALLING: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);

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
    INSTALLED.load(Acquire)
}

/// What the program wants.
pub fn get() -> Action {
    sys::action(STAND_IN).unwrap_or_default()
}

/// How often the program has set it.
static SETTINGS: AtomicU32 = AtomicU32::new(0);

/// Sets what the program wants and returns what it wanted before.
pub fn set(wanted: &Action) -> Action {
    // SAFETY: nothing sends this signal (signal(7)); the handler is the program's own, for the signal that it stands
    // for.
    let old = unsafe { sys::set_action(STAND_IN, &with_restorer(wanted)) }.unwrap_or_default();
    SETTINGS.fetch_add(1, SeqCst);
    accommodate();
    old
}

/// As the kernel does before it calls a handler with `SA_RESETHAND`.
pub fn reset(wanted: &Action) {
    // SAFETY: as in `set`.
    let _ = unsafe { sys::set_action(STAND_IN, &Action { handler: libc::SIG_DFL, ..*wanted }) };
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
    SUSPENDED.store(0, SeqCst);
    PROCESS.store(owner::process(), Relaxed);
}

/// How many threads are in the middle of what no checkpoint may meet.
static SUSPENDED: AtomicU32 = AtomicU32::new(0);

/// While this exists nothing is armed, for a checkpoint would kill: the kernel would not call our handler, or not for this
/// thread.
pub struct Suspended {
    is_ours: bool,
}

impl Suspended {
    pub fn begin() -> Self {
        // A vfork child, or a forked one without threads, is alone with its actions and its mask.
        let is_ours = is_virtual() && PROCESS.load(Relaxed) == sys::process();
        if is_ours {
            SUSPENDED.fetch_add(1, SeqCst);
            open_everything(Refusal::Executing);
        }
        Self { is_ours }
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if self.is_ours {
            SUSPENDED.fetch_sub(1, SeqCst);
        }
    }
}

/// Why nothing may be armed in this process at present, or any more.
pub fn refusal() -> Option<Refusal> {
    let barred = BARRED.load(SeqCst).checked_sub(1).and_then(|why| Refusal::ALL.get(why)).copied();
    barred.or_else(|| (SUSPENDED.load(SeqCst) != 0).then_some(Refusal::Executing))
}

/// The program's own actions, in force while this exists. Nothing may be armed.
struct InForce {
    kept: Action,
    /// [`SETTINGS`] at the time.
    settings: u32,
}

impl InForce {
    fn begin(wanted: &Action) -> Option<Self> {
        let settings = SETTINGS.load(SeqCst);
        // SAFETY: what the program set for these signals.
        unsafe {
            sys::set_action(libc::SIGSEGV, wanted).ok()?;
            let kept = sys::set_action(STAND_IN, &set_own(None)).unwrap_or(*wanted);
            Some(Self { kept, settings })
        }
    }
}

impl Drop for InForce {
    fn drop(&mut self) {
        // What another thread has set meanwhile is what the program wants now.
        if SETTINGS.load(SeqCst) == self.settings || cfg!(feature = "sabotage-settings-undone") {
            // SAFETY: what was in force before.
            let _ = unsafe { sys::set_action(STAND_IN, &self.kept) };
        }
        put_in_place(&get());
    }
}

/// While this exists, SIGSEGV and SIGSTKFLT are ignored in truth if the program ignores them: a program that is executed
/// inherits that.
pub struct Ignored {
    _in_force: InForce,
    _suspended: Suspended,
}

impl Ignored {
    /// `None`: the program does not ignore SIGSEGV.
    pub fn begin() -> Option<Self> {
        let wanted = is_virtual().then(get).filter(|wanted| wanted.handler == libc::SIG_IGN && is_ours())?;
        let _suspended = Suspended::begin();
        Some(Self { _in_force: InForce::begin(&wanted)?, _suspended })
    }
}

/// While this exists, or for good if it is forgotten, SIGSEGV is the program's alone, as without us.
pub struct Withdrawn {
    mask: SignalSet,
    _in_force: InForce,
}

impl Withdrawn {
    /// Nothing is armed any more. `None`: our handler is not in place, or it stays: another thread may have a fault of ours
    /// on its way to it.
    pub fn begin() -> Option<Self> {
        // One link for each thread, beside the usual two of a folder (proc(5)).
        let is_alone = || sys::status_at(libc::AT_FDCWD, c"/proc/self/task").is_ok_and(|status| status.st_nlink == 3);
        let is_to_go = is_virtual() && PROCESS.load(Relaxed) == sys::process() && is_ours() && is_alone();
        let _in_force = InForce::begin(&is_to_go.then(get)?)?;
        INSTALLED.store(false, Release);
        stand_in::stand_back(true);
        let mask = sys::mask();
        sys::set_mask(stand_in::program_form(mask));
        Some(Self { mask, _in_force })
    }
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        stand_in::stand_back(false);
        sys::set_mask(self.mask);
        INSTALLED.store(true, Release);
    }
}

/// The right to install: with all signals blocked, so that no handler waits for the thread that it interrupted, and no fork,
/// whose child would take our handler for another's.
struct Installing(#[expect(dead_code, reason = "held for its end")] Shut);

impl Installing {
    fn begin() -> Self {
        let shut = Shut::begin();
        while INSTALLING.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            sys::yield_now();
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
        return keep();
    }
    let before = sys::action(libc::SIGSEGV).map_err(|_| Refusal::HandlerLost)?;
    // A runtime that installs its handler by a raw system call (Go) makes other raw calls too, and installs it again.
    let unseen = ![libc::SIG_DFL, libc::SIG_IGN, SEEN.load(Acquire)].contains(&before.handler);
    if unseen && !cfg!(feature = "sabotage-raw-handler-taken-over") || !learn_restorer() {
        return Err(Refusal::HandlerLost);
    }
    // SAFETY: as in `set`; the action was in force for the signal that it stands for.
    unsafe { sys::set_action(STAND_IN, &before) }.map_err(|_| Refusal::HandlerLost)?;
    if !put_in_place(&before) {
        return Err(Refusal::HandlerLost);
    }
    PROCESS.store(sys::process(), Relaxed);
    INSTALLED.store(true, Release);
    Ok(())
}

/// Whether the kernel would call us: a handler can be installed past every library (Go, Mono).
pub fn is_ours() -> bool {
    sys::action(libc::SIGSEGV).is_ok_and(|action| action.handler == ours())
}

/// Looks whether our handler is still in place, and lets go of everything if it is not.
pub fn keep() -> Result<(), Refusal> {
    match refusal() {
        _ if is_ours() || cfg!(feature = "sabotage-raw-handler-unnoticed") => Ok(()),
        // Another thread has put the program's own in force meanwhile.
        Some(why) => Err(why),
        None => Err(refusal().unwrap_or_else(|| bar(Refusal::HandlerLost))),
    }
}

/// Opens everything, and lets nothing be armed in this process from here on.
pub fn bar(why: Refusal) -> Refusal {
    BARRED.store(why as usize + 1, SeqCst);
    open_everything(why);
    why
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

fn put_in_place(program: &Action) -> bool {
    // SAFETY: a handler for SA_SIGINFO, and libc's restorer.
    unsafe { sys::set_action(libc::SIGSEGV, &in_front_of(program)) }.is_ok()
}

/// Runs our handler on the stack that the program's one expects, if it is still in place.
fn accommodate() {
    let Ok(now) = sys::action(libc::SIGSEGV) else { return };
    if now.handler != ours() {
        let _ = keep();
        return;
    }
    let wanted = get();
    if in_front_of(&wanted).flags != now.flags {
        put_in_place(&wanted);
    }
}
