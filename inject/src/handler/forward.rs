//! A SIGSEGV that is not ours: the program gets what it would have got without us.

use super::disposition;
use super::stand_in::{self, STAND_IN};
use crate::arming::settle_inheritance;
use crate::registry;
use crate::sys::{self, Action, Addressee, SignalSet, bit};
use crate::{handover, owner, protect};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::*;
use precache_contract::segment::Refusal;

/// Decides what is to happen; a function of the program's that is to be called with the same arguments, its mask in
/// force already, or 0.
///
/// # Safety
/// `info` and `context` are what the kernel passed to the handler; `from_kernel`: it was not sent by a program.
pub unsafe fn forward(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, from_kernel: bool) -> usize {
    if let Some(segment) = handover::segment() {
        segment.counters.forwarded.fetch_add(1, Relaxed);
    }
    // SAFETY: the caller's promise: a ucontext_t.
    let interrupted = unsafe { mask_of(context) };
    if disposition::is_last() {
        // SAFETY: the caller's promise.
        return unsafe { forward_at_last(signal, info, interrupted, from_kernel) };
    }
    // In force: all, but for the signal that stands in, which tells what was blocked when the signal came. (What a call
    // like sigsuspend blocks is in force alone, and not in `interrupted`, to which the program returns.)
    let now = sys::mask();
    let blocked = stand_in::blocks(now) && stand_in::blocks(*interrupted);
    let wanted = disposition::get();
    if called_by_the_program(from_kernel, now, *interrupted) {
        if disposition::was_last() {
            // SAFETY: the caller's promise.
            return unsafe { forward_at_last(signal, info, interrupted, from_kernel) };
        }
        // It chains to the handler that a raw system call told it was there before its own: the default action.
        // SAFETY: the caller's promise.
        unsafe { die(signal, from_kernel, info) };
        return 0;
    }
    match wanted.handler {
        _ if blocked && !from_kernel => {
            // SAFETY: the caller's promise.
            unsafe { defer(signal, info, interrupted) };
            0
        }
        libc::SIG_IGN if !from_kernel => 0,
        // The kernel lets no program ignore or block a fault: it dies as by default.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the caller's promise.
            unsafe { die(signal, from_kernel, info) };
            0
        }
        _ if blocked || cfg!(feature = "sabotage-handler-not-called") => {
            // SAFETY: the caller's promise.
            unsafe { die(signal, from_kernel, info) };
            0
        }
        handler => {
            prepare(&wanted, *interrupted);
            handler
        }
    }
}

/// The same where the kernel calls our handler with the mask of the program's.
///
/// # Safety
/// As [`forward`].
unsafe fn forward_at_last(
    signal: c_int,
    info: *mut libc::siginfo_t,
    interrupted: &mut SignalSet,
    from_kernel: bool,
) -> usize {
    disposition::at_last(from_kernel, interrupted).unwrap_or_else(|| {
        // In truth: else it would come again at once.
        sys::change_mask(libc::SIG_BLOCK, bit(libc::SIGSEGV));
        // SAFETY: the caller's promise.
        unsafe { defer(signal, info, interrupted) };
        0
    })
}

/// The mask that is in force again when the handler returns.
///
/// # Safety
/// `context` must be a `ucontext_t` that lives as long as the answer is used.
unsafe fn mask_of<'a>(context: *mut c_void) -> &'a mut SignalSet {
    // SAFETY: the caller's promise. Its mask is the kernel's set of 64 signals, from where rt_sigreturn(2) takes it.
    unsafe { &mut *(&raw mut (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<SignalSet>() }
}

/// Whether not the kernel called our handler, which has its own mask in force, but one of the program's.
fn called_by_the_program(from_kernel: bool, now: SignalSet, interrupted: SignalSet) -> bool {
    let all_blocked = now | bit(STAND_IN) | sys::UNBLOCKABLE == SignalSet::MAX;
    // No fault happens inside a call like sigsuspend, whose mask differs from the interrupted one.
    let as_interrupted = !from_kernel || stand_in::blocks(now) == stand_in::blocks(interrupted);
    !(all_blocked && as_interrupted) && disposition::is_ours()
}

/// What the kernel does before it calls a handler.
fn prepare(wanted: &Action, interrupted: SignalSet) {
    if wanted.flags & libc::SA_RESETHAND as u32 as u64 != 0 && !cfg!(feature = "sabotage-handler-flags") {
        disposition::reset(wanted);
    }
    let itself = if wanted.flags & libc::SA_NODEFER as u64 == 0 { bit(libc::SIGSEGV) } else { 0 };
    let asked_for = if cfg!(feature = "sabotage-handler-mask") { 0 } else { wanted.mask };
    sys::set_mask(stand_in::kernel_form(stand_in::program_form(interrupted) | asked_for | itself));
}

/// The default action.
///
/// # Safety
/// As [`forward`].
unsafe fn die(signal: c_int, from_kernel: bool, info: *mut libc::siginfo_t) {
    // Should the program live on after all, no checkpoint must be left without a handler.
    open_everything(Refusal::Dying);
    disposition::uninstall();
    if cfg!(feature = "sabotage-death-in-other-words") {
        // SAFETY: the caller's promise.
        unsafe { (*info).si_code = libc::SI_USER };
    }
    if !from_kernel || cfg!(feature = "sabotage-death-in-other-words") {
        // SAFETY: the caller's promise. The signal is blocked here and kills on the way out.
        let _ = unsafe { sys::raise_again(Addressee::Thread, signal, info.cast()) };
    }
    // A fault happens again, with the default action, at the same instruction: the core shows what it would.
}

/// A signal that was sent while the program blocks it stays pending: from here on it is blocked in truth, so nothing
/// may be armed any more.
///
/// # Safety
/// As [`forward`].
unsafe fn defer(signal: c_int, info: *mut libc::siginfo_t, interrupted: &mut SignalSet) {
    disposition::bar(Refusal::Blocked);
    *interrupted |= bit(libc::SIGSEGV);
    if cfg!(feature = "sabotage-pending-lost") {
        return;
    }
    // SAFETY: the caller's promise.
    let to = if unsafe { (*info).si_code } == libc::SI_TKILL { Addressee::Thread } else { Addressee::Process };
    // SAFETY: the caller's promise. Another thread that does not block it may take what was sent to the process.
    let _ = unsafe { sys::raise_again(to, signal, info.cast()) };
}

/// How many milliseconds a program that dies waits for its other threads, for it must not hang, and a vfork child for those of its
/// parent, which may be dead or stopped.
const PATIENCE: u32 = 500;

/// Lets go of all mappings of this process, and waits for the threads that are at work on one: they hold their turn for
/// microseconds if they have a processor, with all signals blocked, so this is not on top of any of them. What these two
/// wait for in vain is let go of at its next trip.
pub fn open_everything(why: Refusal) {
    // No handler of the program's forks, or waits for this thread, while it holds what it opens.
    let _quiet = sys::Quiet::begin();
    // Turns that a forked child has inherited are over.
    settle_inheritance();
    let is_hasty = why == Refusal::Dying || owner::is_guest();
    let patience = if is_hasty { PATIENCE } else { u32::MAX };
    let mut pauses = sys::Pauses::default();
    registry::each(|held| {
        let mut turn = loop {
            match held.try_turn() {
                Some(turn) => break turn,
                None if pauses.next_within(patience) && !cfg!(feature = "sabotage-held-threads-not-waited-for") => {}
                None => return held.doom(why),
            }
        };
        if let Some(segment) = handover::segment().filter(|_| !turn.curtain().is_lifted()) {
            segment.counters.refuse(why);
        }
        protect::lift(&held, &mut turn);
    });
}
