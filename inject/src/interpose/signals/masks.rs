//! Calls that set or ask for the calling thread's mask.

use super::{changed, full_set, instead_of, is_served, ours, reveal};
use crate::handler::stand_in;
use crate::interpose::words::pass;
use crate::next::Next;
use crate::sys::{SignalSet, bit};
use crate::{interpose, peek};
use core::ffi::c_int;

/// Blocks or unblocks one signal; the answer is the mask before. What concerns the signal that stands in for SIGSEGV
/// changes nothing.
pub fn change(how: c_int, signal: c_int) -> SignalSet {
    stand_in::change_mask(how, bit(signal))
}

/// # Safety
/// As for sigprocmask(2).
#[inline(never)] // One copy is enough for both.
unsafe fn set_mask(next: &'static Next, how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the program's own sets.
    unsafe {
        let inner = instead_of(set, |program| stand_in::change_form(how, program));
        // What the kernel fills may lie in an armed mapping.
        let result = pass(next, [how as usize, inner.as_ref().map_or(set, core::ptr::from_ref) as usize, old as usize]);
        if result == 0 {
            reveal(old);
        }
        result
    }
}

macro_rules! set_mask {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
            crate::next_of!($name);
            // SAFETY: the program's own call.
            unsafe { set_mask(&NEXT, how, set, old) }
        }
    )*};
}

set_mask! {
    /// sigprocmask(2).
    fn sigprocmask;
    /// pthread_sigmask(3). It answers with an error number.
    fn pthread_sigmask;
}

macro_rules! one_signal {
    ($($(#[$doc:meta])* fn $name:ident => $how:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(signal: c_int) -> c_int; missing -1; |next| {
                if ours(signal) {
                    change($how, signal);
                    return 0;
                }
                // SAFETY: the program's own call.
                unsafe { next(signal) }
            }
        }
    )*};
}

one_signal! {
    /// sighold(3).
    fn sighold => libc::SIG_BLOCK;
    /// sigrelse(3).
    fn sigrelse => libc::SIG_UNBLOCK;
}

/// The historic calls that take a mask of the first 32 signals.
macro_rules! short_mask {
    ($($(#[$doc:meta])* fn $name:ident => $how:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(mask: c_int) -> c_int; missing -1; |next| {
                if is_served() {
                    return stand_in::change_mask($how, SignalSet::from(mask as u32)) as c_int;
                }
                // SAFETY: the program's own call.
                unsafe { next(mask) }
            }
        }
    )*};
}

short_mask! {
    /// sigblock(3).
    fn sigblock => libc::SIG_BLOCK;
    /// sigsetmask(3).
    fn sigsetmask => libc::SIG_SETMASK;
}

interpose! {
    /// siggetmask(3).
    fn siggetmask() -> c_int; missing -1; |next| {
        if is_served() {
            return stand_in::change_mask(libc::SIG_BLOCK, 0) as c_int;
        }
        // SAFETY: the program's own call.
        unsafe { next() }
    }
}

/// The set that a call waits with in place of the program's. Of what is no set nothing is known: the kernel refuses it.
pub fn to_wait_with(set: *const libc::sigset_t) -> Option<libc::sigset_t> {
    if set.is_null() || !is_served() {
        return None;
    }
    changed(peek::word(set.addr())? as SignalSet, stand_in::kernel_form)
}

/// The calling thread's mask without one signal, in the kernel's form.
pub fn mask_without(signal: c_int) -> libc::sigset_t {
    let now = stand_in::change_mask(libc::SIG_BLOCK, 0);
    full_set(stand_in::kernel_form(now & !bit(signal)))
}
