//! Calls that set or ask for a signal's action.

use super::{fail, full_set, is_served, ours, read};
use crate::handler::{disposition, stand_in};
use crate::sys::{Action, SignalSet, bit};
use crate::{arming, interpose, next};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};

type Handler = libc::sighandler_t;

const SIG_HOLD: Handler = 2;

/// Whether siginterrupt(3) asked for calls to be interrupted by SIGSEGV: signal(2) goes by it.
static INTERRUPTS: AtomicBool = AtomicBool::new(false);

fn from_libc(action: &libc::sigaction) -> Action {
    Action {
        handler: action.sa_sigaction,
        flags: u64::from(action.sa_flags as u32),
        restorer: 0,
        // SAFETY: a set inside a valid action.
        mask: unsafe { read(&action.sa_mask) },
    }
}

fn to_libc(action: Action) -> libc::sigaction {
    libc::sigaction {
        sa_sigaction: action.handler,
        sa_mask: full_set(action.mask),
        sa_flags: action.flags as c_int,
        // SAFETY: an optional function pointer is a word; this one came from libc, or is null.
        sa_restorer: unsafe { core::mem::transmute::<usize, Option<extern "C" fn()>>(action.restorer) },
    }
}

/// Sets or asks for the program's action of SIGSEGV (or SIGSTKFLT) once that is virtual; `None` before.
pub(super) fn exchange(signal: c_int, action: Option<&Action>) -> Option<Action> {
    if !ours(signal) || !disposition::is_virtual() {
        return None;
    }
    if signal == stand_in::STAND_IN {
        return Some(disposition::set_own(action));
    }
    arming::settle_inheritance();
    let Some(action) = action else {
        return if cfg!(feature = "sabotage-own-handler-shown") {
            crate::sys::action(signal).ok()
        } else {
            Some(disposition::get())
        };
    };
    Some(disposition::set(action))
}

/// # Safety
/// As sigaction(2).
unsafe fn change(
    next: next::Sigaction,
    signal: c_int,
    action: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: null or a valid action (sigaction(2)); the new one is read before the old one is written, for they may be
    // the same.
    unsafe {
        let wanted = action.as_ref();
        if let Some(before) = exchange(signal, wanted.map(from_libc).as_ref()) {
            if !old.is_null() {
                *old = to_libc(before);
            }
            return 0;
        }
        if !is_served() {
            let result = next(signal, action, old);
            if let (0, Some(wanted)) = (result, wanted) {
                note_early(signal, &from_libc(wanted));
            }
            return result;
        }
        // While a handler of another signal runs, the signal that stands in for SIGSEGV is blocked instead of it.
        let others = signal != libc::SIGSEGV;
        let inner = wanted.map(|action| libc::sigaction {
            sa_mask: if others { full_set(stand_in::kernel_form(read(&action.sa_mask))) } else { action.sa_mask },
            ..*action
        });
        let result = next(signal, inner.as_ref().map_or(action, core::ptr::from_ref), old);
        if result == 0 && others && !old.is_null() {
            super::reveal(&raw mut (*old).sa_mask);
        }
        if let (0, Some(wanted)) = (result, inner) {
            note(signal, wanted.sa_sigaction);
        }
        result
    }
}

/// An action was set where nobody knows yet whether the process is served: the environment is not there before libraries begin
/// (`DT_PREINIT_ARRAY`).
pub(super) fn note_early(signal: c_int, action: &Action) {
    note(signal, action.handler);
    stand_in::note_early(action.mask);
}

/// A handler was set while SIGSEGV is not virtual yet.
pub(super) fn note(signal: c_int, handler: Handler) {
    if signal == libc::SIGSEGV && handler != SIG_HOLD {
        disposition::note(handler);
    }
}

interpose! {
    /// sigaction(2).
    fn sigaction(signal: c_int, action: *const libc::sigaction, old: *mut libc::sigaction) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { change(next, signal, action, old) }
    }
}

interpose! {
    /// sigaction(2) under the name that libc's own parts use.
    fn __sigaction(signal: c_int, action: *const libc::sigaction, old: *mut libc::sigaction) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { change(next, signal, action, old) }
    }
}

/// Sets a handler for one of the historic calls; the answer is the one before, or `SIG_ERR`.
#[inline(never)] // One copy is enough for all who call this.
fn set_simple(signal: c_int, handler: Handler, flags: c_int, mask: SignalSet) -> Handler {
    if handler == libc::SIG_ERR {
        fail(libc::EINVAL);
        return libc::SIG_ERR;
    }
    let action = to_libc(Action { handler, flags: u64::from(flags as u32), restorer: 0, mask });
    let mut old = to_libc(Action::default());
    let Some(next) = next::sigaction() else { return libc::SIG_ERR };
    // SAFETY: two valid actions.
    if unsafe { change(next, signal, &action, &mut old) } == 0 { old.sa_sigaction } else { libc::SIG_ERR }
}

/// As signal(2) sets a handler: it stays, is blocked while it runs, and calls are restarted.
#[inline(never)] // As above.
fn set_bsd(signal: c_int, handler: Handler) -> Handler {
    let interrupts = signal == libc::SIGSEGV && INTERRUPTS.load(Relaxed);
    set_simple(signal, handler, if interrupts { 0 } else { libc::SA_RESTART }, bit(signal))
}

/// As System V set one: one shot, and not blocked while it runs.
#[inline(never)] // As above.
fn set_sysv(signal: c_int, handler: Handler) -> Handler {
    set_simple(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER, 0)
}

/// The historic calls that set a handler with flags of their own.
macro_rules! set_handler {
    ($($(#[$doc:meta])* fn $name:ident => $set:ident;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(signal: c_int, handler: Handler) -> Handler; missing libc::SIG_ERR; |next| {
                if ours(signal) {
                    return $set(signal, handler);
                }
                // SAFETY: the program's own call.
                let old = unsafe { next(signal, handler) };
                if old != libc::SIG_ERR {
                    note(signal, handler);
                }
                old
            }
        }
    )*};
}

set_handler! {
    /// signal(2).
    fn signal => set_bsd;
    /// bsd_signal(3).
    fn bsd_signal => set_bsd;
    /// `ssignal`, another name of signal(2).
    fn ssignal => set_bsd;
    /// sysv_signal(3).
    fn sysv_signal => set_sysv;
    /// What signal(2) is in programs built for System V semantics.
    fn __sysv_signal => set_sysv;
    /// sigset(3).
    fn sigset => set_or_hold;
}

/// As sigset(3): blocks the signal, or sets a handler and unblocks it. The answer tells which it was before.
fn set_or_hold(signal: c_int, handler: Handler) -> Handler {
    let hold = handler == SIG_HOLD;
    let old = match hold {
        true => current(signal).map_or(libc::SIG_ERR, |action| action.handler),
        false => set_simple(signal, handler, 0, 0),
    };
    if old == libc::SIG_ERR {
        return old;
    }
    let before = super::masks::change(if hold { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK }, signal);
    if before & bit(signal) != 0 { SIG_HOLD } else { old }
}

interpose! {
    /// sigignore(3).
    fn sigignore(signal: c_int) -> c_int; missing -1; |next| {
        if ours(signal) {
            return if set_simple(signal, libc::SIG_IGN, 0, 0) == libc::SIG_ERR { -1 } else { 0 };
        }
        // SAFETY: the program's own call.
        unsafe { next(signal) }
    }
}

interpose! {
    /// siginterrupt(3).
    fn siginterrupt(signal: c_int, interrupt: c_int) -> c_int; missing -1; |next| {
        if signal != libc::SIGSEGV || !ours(signal) {
            // SAFETY: the program's own call.
            return unsafe { next(signal, interrupt) };
        }
        INTERRUPTS.store(interrupt != 0, Relaxed);
        let mut action = to_libc(Action::default());
        let Some(sigaction) = next::sigaction() else { return -1 };
        // SAFETY: null asks only; then the same action is set with other flags.
        unsafe {
            change(sigaction, signal, core::ptr::null(), &mut action);
            action.sa_flags = action.sa_flags & !libc::SA_RESTART | if interrupt == 0 { libc::SA_RESTART } else { 0 };
            change(sigaction, signal, &action, core::ptr::null_mut())
        }
    }
}

/// `struct sigvec` of 4.2BSD.
#[repr(C)]
pub struct Sigvec {
    handler: Handler,
    mask: c_int,
    flags: c_int,
}

/// Flags of `struct sigvec`, and of `struct sigaction`: on the alternate stack, interrupting calls, one shot.
const VEC_FLAGS: [(c_int, c_int); 3] = [(1, libc::SA_ONSTACK), (2, 0), (4, libc::SA_RESETHAND)];
const SV_INTERRUPT: c_int = 2;

interpose! {
    /// `sigvec` of 4.2BSD, which glibc keeps for old programs.
    fn sigvec(signal: c_int, vector: *const Sigvec, old: *mut Sigvec) -> c_int; missing -1; |next| {
        if !is_served() {
            // SAFETY: the program's own call.
            return unsafe { next(signal, vector, old) };
        }
        // SAFETY: null or valid vectors, as the call demands.
        let (wanted, old) = unsafe { (vector.as_ref(), old.as_mut()) };
        let Some(before) = current(signal) else { return -1 };
        if let Some(wanted) = wanted {
            let restart = if wanted.flags & SV_INTERRUPT == 0 { libc::SA_RESTART } else { 0 };
            let flags = VEC_FLAGS.iter().filter(|(vec, _)| wanted.flags & vec != 0).fold(restart, |all, (_, flag)| all | flag);
            if set_simple(signal, wanted.handler, flags, u64::from(wanted.mask as u32)) == libc::SIG_ERR {
                return -1;
            }
        }
        if let Some(old) = old {
            let interrupt = if before.flags & libc::SA_RESTART as u64 == 0 { SV_INTERRUPT } else { 0 };
            let flags = VEC_FLAGS.iter().filter(|(_, flag)| before.flags & u64::from(*flag as u32) != 0);
            *old = Sigvec {
                handler: before.handler,
                mask: before.mask as c_int,
                flags: flags.fold(interrupt, |all, (vec, _)| all | vec),
            };
        }
        0
    }
}

fn current(signal: c_int) -> Option<Action> {
    let mut now = to_libc(Action::default());
    let next = next::sigaction()?;
    // SAFETY: null asks only (sigaction(2)).
    (unsafe { change(next, signal, core::ptr::null(), &mut now) } == 0).then(|| from_libc(&now))
}
