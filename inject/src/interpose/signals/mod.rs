//! Calls about signals: the program sets, and sees, a SIGSEGV of its own (`handler::stand_in`); all else passes through.

pub mod actions;
pub mod attributes;
#[cfg(target_arch = "x86_64")]
pub mod contexts;
pub mod masks;
#[cfg(target_arch = "x86_64")]
pub mod numbers;
pub mod stacks;
#[cfg(target_arch = "x86_64")]
pub mod timers;
pub mod waits;

use crate::handler::stand_in;
use crate::settings;
use crate::sys::SignalSet;
use core::ffi::c_int;

/// Whether the program sees a SIGSEGV of its own: before our constructor, too.
#[inline(never)] // One copy is enough for all who ask.
pub fn is_served() -> bool {
    match settings::is_left_alone() {
        Some(is_left_alone) => !is_left_alone,
        None => is_wanted(),
    }
}

#[cfg(feature = "preload")]
use crate::start::is_wanted;

#[cfg(not(feature = "preload"))]
fn is_wanted() -> bool {
    false
}

/// Whether a call about this signal is answered here.
fn ours(signal: c_int) -> bool {
    stand_in::concerns(signal) && is_served()
}

/// The kernel's part of libc's larger `sigset_t`: its first word.
///
/// # Safety
/// `set` must point to a `sigset_t`.
unsafe fn read(set: *const libc::sigset_t) -> SignalSet {
    // SAFETY: sigset_t is 128 bytes of plain data, at least as long and as aligned as the word read.
    unsafe { set.cast::<SignalSet>().read() }
}

/// # Safety
/// As [`read`], writable.
unsafe fn write(set: *mut libc::sigset_t, word: SignalSet) {
    // SAFETY: as in `read`.
    unsafe { set.cast::<SignalSet>().write(word) };
}

/// A set with this first word, and no more.
#[inline(never)] // One copy is enough for all who make one.
fn full_set(word: SignalSet) -> libc::sigset_t {
    // SAFETY: plain data, for which zero is a value.
    let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: a set of our own.
    unsafe { write(&mut set, word) };
    set
}

/// The set to pass on in place of one that the program gives, if another one is to be.
///
/// # Safety
/// `set` must be null or point to a `sigset_t`.
unsafe fn instead_of(set: *const libc::sigset_t, form: impl Fn(SignalSet) -> SignalSet) -> Option<libc::sigset_t> {
    if set.is_null() || !is_served() {
        return None;
    }
    // SAFETY: the caller's promise.
    changed(unsafe { read(set) }, form)
}

fn changed(program: SignalSet, form: impl Fn(SignalSet) -> SignalSet) -> Option<libc::sigset_t> {
    let wanted = form(program);
    (wanted != program).then(|| full_set(wanted))
}

/// Turns a set that the kernel, or libc, has filled in into what the program put there.
///
/// # Safety
/// `set` must be null or point to a `sigset_t`.
unsafe fn reveal(set: *mut libc::sigset_t) {
    if !set.is_null() && is_served() {
        // SAFETY: the caller's promise.
        unsafe { write(set, stand_in::program_form(read(set))) };
    }
}

fn fail(errno: c_int) {
    // SAFETY: the calling thread's own errno (errno(3)).
    unsafe { *libc::__errno_location() = errno };
}
