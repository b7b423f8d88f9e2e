//! A fault that is not ours: the program gets what it would have got without us.

use super::disposition::{self, Disposition};
use super::trip::give_up;
use crate::handover;
use crate::sys::{self, SignalSet, bit};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::*;
use precache_contract::segment::Refusal;

/// Calls the program's handler, or brings about the default action.
///
/// # Safety
/// `info` and `context` are what the kernel passed to the handler.
pub unsafe fn forward(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if let Some(segment) = handover::segment() {
        segment.counters.forwarded.fetch_add(1, Relaxed);
    }
    // SAFETY: the caller's promise.
    let from_kernel = unsafe { (*info).si_code } > 0;
    let wanted = disposition::get();
    match wanted.handler {
        // The kernel does not let a program ignore a fault: it dies as by default.
        libc::SIG_IGN if !from_kernel => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // Should the program live on after all, no checkpoint must be left without a handler.
            give_up(Refusal::Dying);
            disposition::uninstall();
            if !from_kernel {
                // SAFETY: the caller's promise. The signal is blocked here and kills on the way out.
                let _ = unsafe { sys::raise_again(signal, info.cast()) };
            }
            // A fault happens again, with the default action, at the same instruction: the core shows what it would.
        }
        // SAFETY: the caller's promise.
        _ => unsafe { call(wanted, signal, info, context) },
    }
}

/// # Safety
/// As [`forward`]; `wanted` holds a function.
unsafe fn call(wanted: Disposition, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if wanted.flags & libc::SA_RESETHAND != 0 {
        disposition::set(Disposition { handler: libc::SIG_DFL, ..wanted });
    }
    // SAFETY: the kernel passes a ucontext_t, and its mask is the kernel's set of 64 signals (rt_sigreturn takes it
    // from there when the handler returns).
    let interrupted =
        unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<SignalSet>().read() };
    // SIGSEGV stays open: the program's handler may read mapped data too, and a fault while it is blocked kills.
    sys::set_mask((interrupted | wanted.mask) & !bit(libc::SIGSEGV));
    // SAFETY: the program installed this address as a handler. Without SA_SIGINFO it ignores two of the arguments, as
    // it does when the kernel calls it.
    unsafe {
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = core::mem::transmute(wanted.handler);
        handler(signal, info, context);
    }
}
