//! Calls that put a context in force, and its mask with it (setcontext(3), makecontext(3)). A program may have put SIGSEGV into
//! that by itself; what getcontext(3) has put there is in the kernel's form.

use super::is_served;
use crate::handler::stand_in;
use crate::next::Next;
use crate::sys::SignalSet;
use crate::{passed_on, past_libc, peek, sys};
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

passed_on! {
    /// setcontext(3).
    fn setcontext after before_setcontext as SETCONTEXT = c"setcontext";
    /// swapcontext(3).
    fn swapcontext after before_swapcontext as SWAPCONTEXT = c"swapcontext";
}

extern "C" fn before_setcontext(context: usize) -> *mut c_void {
    before(&SETCONTEXT, context)
}

extern "C" fn before_swapcontext(_old: usize, context: usize) -> *mut c_void {
    before(&SWAPCONTEXT, context)
}

#[inline(never)] // One copy is enough for both.
fn before(next: &Next, context: usize) -> *mut c_void {
    if is_served() {
        settle(context);
    }
    next.address().map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Puts what stands in for SIGSEGV in its place, if the context at this address blocks it.
fn settle(context: usize) {
    let place = context.wrapping_add(offset_of!(libc::ucontext_t, uc_sigmask));
    if let Some(mask) = peek::word(place).map(|mask| mask as SignalSet)
        && let Some(settled) = stand_in::instead_of_blocked(mask)
        && (past_libc::is_filtered() || sys::can_access(place, true))
    {
        // SAFETY: the mask is there, and may be written, unless the program has forbidden itself calls: then it is as it says.
        unsafe { (place as *mut SignalSet).write_unaligned(settled) };
    }
}
