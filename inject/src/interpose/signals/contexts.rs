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
    // Where the program has forbidden itself calls nothing is closed, nor will be.
    if is_served() && !past_libc::is_filtered() {
        settle(context);
    }
    next.address().map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Puts what stands in for SIGSEGV in its place, if the context at this address blocks it.
fn settle(context: usize) {
    let place = context.wrapping_add(offset_of!(libc::ucontext_t, uc_sigmask));
    if let Some(mask) = peek::word(place).map(|mask| mask as SignalSet)
        && let settled = stand_in::settled(mask)
        && settled != mask
        && place.is_multiple_of(align_of::<SignalSet>())
        && sys::can_access(place, true)
    {
        // SAFETY: the mask is there, aligned, and so in one page, which the kernel could just write to.
        unsafe { *(place as *mut SignalSet) = settled };
    }
}
