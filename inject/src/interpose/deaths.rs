//! Calls by which the program ends itself with a core, which is to hold what it had mapped.

use crate::{handler, interpose, owner, registry};
use core::ffi::{c_char, c_int, c_uint};
use core::sync::atomic::{AtomicBool, Ordering::*};
use precache_contract::segment::Refusal;

/// What opens everything may come to an end by abort(3) itself (a panic).
static IS_OPENING: AtomicBool = AtomicBool::new(false);

#[inline(never)] // One copy is enough for all of them.
fn open_all() {
    // A vfork child dies alone, in its parent's memory.
    if cfg!(feature = "sabotage-aborts-unnoticed") {
        return;
    }
    if !registry::is_empty() && !owner::is_guest() && !IS_OPENING.swap(true, AcqRel) {
        handler::open_everything(Refusal::Dying);
        IS_OPENING.store(false, Release);
    }
}

interpose! {
    /// abort(3). It does not return.
    fn abort() -> c_int; missing -1; |next| {
        open_all();
        // SAFETY: the program's own call.
        unsafe { next() }
    }
}

interpose! {
    /// What assert(3) calls. It does not return.
    fn __assert_fail(assertion: *const c_char, file: *const c_char, line: c_uint, function: *const c_char) -> c_int; missing -1; |next| {
        open_all();
        // SAFETY: the program's own call.
        unsafe { next(assertion, file, line, function) }
    }
}

interpose! {
    /// What assert_perror(3) calls. It does not return.
    fn __assert_perror_fail(error: c_int, file: *const c_char, line: c_uint, function: *const c_char) -> c_int; missing -1; |next| {
        open_all();
        // SAFETY: the program's own call.
        unsafe { next(error, file, line, function) }
    }
}
