//! Calls by which the program limits what it may do from now on.

use super::words::pass;
use crate::arming::bound_data;
use crate::doing::Doing;
use crate::{interpose, next_of, past_libc};
use core::ffi::{c_int, c_uint, c_ulong, c_void};

/// `PR_SET_SYSCALL_USER_DISPATCH`, Linux 5.11, and the mode that ends it.
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_OFF: c_ulong = 0;

/// Whether this operation of prctl(2) forbids system calls: by a filter, or by having each call but those of one place raise
/// SIGSYS (as Wine does).
pub fn forbids_calls(operation: c_int, mode: c_ulong) -> bool {
    match operation {
        libc::PR_SET_SECCOMP => true,
        PR_SET_SYSCALL_USER_DISPATCH => mode != PR_SYS_DISPATCH_OFF,
        _ => false,
    }
}

interpose! {
    /// prctl(2). Operations take up to four arguments; passing on unused registers is harmless.
    fn prctl(operation: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        let call = || unsafe { next(operation, a, b, c, d) };
        if forbids_calls(operation, a) {
            return past_libc::filtered(Doing::by(&|()| call() as isize)) as c_int;
        }
        // A name may lie in an armed mapping.
        pass(&NEXT, [operation as usize, a as usize, b as usize, c as usize, d as usize])
    }
}

/// Before a call that may bound a resource.
pub fn before_limit(resource: c_uint, new: *const c_void) {
    if resource == libc::RLIMIT_DATA && !new.is_null() {
        bound_data();
    }
}

macro_rules! limiting {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty)?; $($after:ident: $after_type:ty)?);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            $($before: $before_type,)? resource: c_uint, new: *const c_void $(, $after: $after_type)?
        ) -> c_int {
            next_of!($name);
            before_limit(resource, new);
            pass(&NEXT, [$($before as usize,)? resource as usize, new as usize $(, $after as usize)?])
        }
    )*};
}

limiting! {
    /// setrlimit(2).
    fn setrlimit(;);
    /// setrlimit(2) with large file support.
    fn setrlimit64(;);
    /// prlimit(2).
    fn prlimit(process: c_int; old: *mut c_void);
    /// prlimit(2) with large file support.
    fn prlimit64(process: c_int; old: *mut c_void);
}
