//! Calls that wait under a mask of their own.

use super::masks::{mask_without, to_wait_with};
use super::{full_set, is_served, ours};
use crate::buffers::Words;
use crate::handler::stand_in;
use crate::interpose::words;
use crate::next::Next;
use crate::sys::SignalSet;
use crate::{interpose, next_of};
use core::ffi::{c_int, c_long, c_void};
use core::ptr::NonNull;

type Set = *const libc::sigset_t;
type Time = *const libc::timespec;

/// Calls with a mask among their arguments.
macro_rules! wait {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty,)* ; $mask:ident ; $($after:ident: $after_type:ty),*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($before: $before_type,)* $mask: Set $(, $after: $after_type)*) -> c_int {
            next_of!($name);
            let inner = to_wait_with($mask);
            let mask = inner.as_ref().map_or($mask, core::ptr::from_ref);
            wait(&NEXT, &[$($before as usize,)* mask as usize $(, $after as usize)*])
        }
    )*};
}

wait! {
    /// ppoll(2).
    fn ppoll(files: *mut c_void, count: c_long, timeout: Time, ; mask ;);
    /// ppoll(2) in fortified programs.
    fn __ppoll_chk(files: *mut c_void, count: c_long, timeout: Time, ; mask ; length: usize);
    /// pselect(2).
    fn pselect(count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, timeout: Time, ; mask ;);
    /// epoll_pwait(2).
    fn epoll_pwait(epoll: c_int, events: *mut c_void, count: c_int, timeout: c_int, ; mask ;);
    /// epoll_pwait2(2).
    fn epoll_pwait2(epoll: c_int, events: *mut c_void, count: c_int, timeout: Time, ; mask ;);
    /// sigsuspend(2).
    fn sigsuspend(; mask ;);
    /// sigsuspend(2) under the name that libc's own parts use.
    fn __sigsuspend(; mask ;);
}

#[inline(never)] // One copy is enough for all of them.
fn wait(next: &Next, given: &[usize]) -> c_int {
    let mut words = Words::default();
    words.iter_mut().zip(given).for_each(|(word, given)| *word = *given);
    words::make(next, &words, -1) as c_int
}

static SIGSUSPEND: Next = Next::new(c"sigsuspend");

/// Waits for a signal under this mask, given in the kernel's form.
fn suspend(mask: &libc::sigset_t) -> c_int {
    let Some(address) = SIGSUSPEND.address() else { return -1 };
    // SAFETY: sigsuspend(2) has this type.
    unsafe { core::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn(Set) -> c_int>(address)(mask) }
}

/// Waits under a mask of the first 32 signals.
fn suspend_with(mask: c_int) -> c_int {
    suspend(&full_set(stand_in::kernel_form(SignalSet::from(mask as u32))))
}

/// Waits with one signal unblocked.
fn suspend_without(signal: c_int) -> c_int {
    suspend(&mask_without(signal))
}

interpose! {
    /// sigpause(3) of BSD.
    fn sigpause(mask: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        if is_served() { suspend_with(mask) } else { unsafe { next(mask) } }
    }
}

interpose! {
    /// sigpause(3) of System V.
    fn __xpg_sigpause(signal: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        if ours(signal) { suspend_without(signal) } else { unsafe { next(signal) } }
    }
}

interpose! {
    /// Either, as old headers call them.
    fn __sigpause(what: c_int, is_signal: c_int) -> c_int; missing -1; |next| {
        match is_signal != 0 {
            true if ours(what) => suspend_without(what),
            false if is_served() => suspend_with(what),
            // SAFETY: the program's own call.
            _ => unsafe { next(what, is_signal) },
        }
    }
}
