//! Calls that set or ask for the disposition or the mask of SIGSEGV. Once our handler is in place, the program sets
//! and sees a disposition of its own (`handler::disposition`); all other signals pass through.

use crate::handler::disposition::{self, Disposition, from_libc, to_libc};
use crate::sys::{SignalSet, bit};
use crate::{arming, interpose, settings};
use core::ffi::c_int;

type Handler = libc::sighandler_t;

fn ours(signal: c_int) -> bool {
    signal == libc::SIGSEGV && disposition::is_virtual()
}

/// Sets a handler with the flags that the historic call implies; returns the handler before.
fn set_simple(handler: Handler, flags: c_int) -> Handler {
    arming::settle_inheritance();
    disposition::set(Disposition { handler, flags, mask: 0 }).handler
}

interpose! {
    /// sigaction(2).
    fn sigaction(signal: c_int, action: *const libc::sigaction, old: *mut libc::sigaction) -> c_int; missing -1; |next| {
        if !ours(signal) {
            // SAFETY: the program passes null or a valid action (sigaction(2)).
            let open = unsafe { action.as_ref() }.filter(|_| settings::get().is_some()).map(|action| {
                // Nor may SIGSEGV be blocked while a handler of another signal runs.
                let mut open = *action;
                // SAFETY: the first word of a set is the kernel's set of 64 signals.
                unsafe { *(&raw mut open.sa_mask).cast::<SignalSet>() &= !bit(libc::SIGSEGV) };
                open
            });
            let action = open.as_ref().map_or(action, core::ptr::from_ref);
            // SAFETY: the program's own call, with its action or one like it.
            return unsafe { next(signal, action, old) };
        }
        arming::settle_inheritance();
        // SAFETY: the program passes null or a valid action (sigaction(2)); the new one is read before the old one is
        // written, for they may be the same.
        unsafe {
            let before = match action.as_ref() {
                Some(action) => disposition::set(from_libc(action)),
                None => disposition::get(),
            };
            if !old.is_null() {
                *old = to_libc(before);
            }
        }
        0
    }
}

/// The historic calls that set a handler with flags of their own.
macro_rules! set_with_flags {
    ($($(#[$doc:meta])* fn $name:ident => $flags:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(signal: c_int, handler: Handler) -> Handler; missing libc::SIG_ERR; |next| {
                if ours(signal) {
                    return set_simple(handler, $flags);
                }
                // SAFETY: the program's own call.
                unsafe { next(signal, handler) }
            }
        }
    )*};
}

set_with_flags! {
    /// signal(2), with BSD semantics: the handler stays, calls are restarted.
    fn signal => libc::SA_RESTART;
    /// bsd_signal(3).
    fn bsd_signal => libc::SA_RESTART;
    /// `ssignal`, another name of signal(2).
    fn ssignal => libc::SA_RESTART;
    /// sysv_signal(3): one shot, and not blocked while it runs.
    fn sysv_signal => libc::SA_RESETHAND | libc::SA_NODEFER;
    /// What signal(2) is in programs built for System V semantics.
    fn __sysv_signal => libc::SA_RESETHAND | libc::SA_NODEFER;
}

interpose! {
    /// sigset(3). `SIG_HOLD` would block the signal; it stays open, as everywhere.
    fn sigset(signal: c_int, handler: Handler) -> Handler; missing libc::SIG_ERR; |next| {
        const SIG_HOLD: Handler = 2;
        if ours(signal) {
            return if handler == SIG_HOLD { disposition::get().handler } else { set_simple(handler, 0) };
        }
        // SAFETY: the program's own call.
        unsafe { next(signal, handler) }
    }
}

interpose! {
    /// sigignore(3).
    fn sigignore(signal: c_int) -> c_int; missing -1; |next| {
        if ours(signal) {
            set_simple(libc::SIG_IGN, 0);
            return 0;
        }
        // SAFETY: the program's own call.
        unsafe { next(signal) }
    }
}

interpose! {
    /// sighold(3): SIGSEGV is not blocked while checkpoints are armed, for a fault would then kill.
    fn sighold(signal: c_int) -> c_int; missing -1; |next| {
        if ours(signal) {
            return 0;
        }
        // SAFETY: the program's own call.
        unsafe { next(signal) }
    }
}

/// The set without SIGSEGV, if the call would block it in a process where checkpoints may come to be armed: threads
/// keep for life the mask that they begin with.
fn open_for_us(how: c_int, set: *const libc::sigset_t) -> Option<libc::sigset_t> {
    if settings::get().is_none() || how == libc::SIG_UNBLOCK || set.is_null() {
        return None;
    }
    // SAFETY: not null, so the program passes a valid set; its first word is the kernel's set of 64 signals.
    unsafe {
        let mut without = *set;
        let word = (&raw mut without).cast::<SignalSet>();
        if *word & bit(libc::SIGSEGV) == 0 {
            return None;
        }
        *word &= !bit(libc::SIGSEGV);
        Some(without)
    }
}

/// The calls that set the calling thread's mask: SIGSEGV is not blocked where checkpoints may be armed, for a fault
/// would then kill.
macro_rules! set_mask {
    ($($(#[$doc:meta])* fn $name:ident, missing $missing:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int; missing $missing; |next| {
                let without = open_for_us(how, set);
                let set = without.as_ref().map_or(set, core::ptr::from_ref);
                // SAFETY: the program's own call, with its set or one like it.
                unsafe { next(how, set, old) }
            }
        }
    )*};
}

set_mask! {
    /// sigprocmask(2).
    fn sigprocmask, missing -1;
    /// pthread_sigmask(3).
    fn pthread_sigmask, missing libc::EINVAL;
}
