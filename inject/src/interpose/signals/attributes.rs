//! Masks of threads that are yet to begin.

use super::{instead_of, reveal};
use crate::handler::stand_in;
use crate::interpose;
use core::ffi::{c_int, c_void};

interpose! {
    /// pthread_attr_setsigmask_np(3).
    fn pthread_attr_setsigmask_np(attributes: *mut c_void, mask: *const libc::sigset_t) -> c_int; missing libc::ENOSYS; |next| {
        // SAFETY: the program's own call, with its set or one like it.
        unsafe {
            let inner = instead_of(mask, stand_in::kernel_form);
            next(attributes, inner.as_ref().map_or(mask, core::ptr::from_ref))
        }
    }
}

interpose! {
    /// pthread_attr_getsigmask_np(3).
    fn pthread_attr_getsigmask_np(attributes: *const c_void, mask: *mut libc::sigset_t) -> c_int; missing libc::ENOSYS; |next| {
        // SAFETY: the program's own call. Unless it succeeds, the set is as the program left it.
        unsafe {
            let result = next(attributes, mask);
            if result == 0 {
                reveal(mask);
            }
            result
        }
    }
}
