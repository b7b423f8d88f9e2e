//! Calls by which the program limits what it may do from now on.

use crate::{interpose, past_libc};
use core::ffi::{c_int, c_ulong};

interpose! {
    /// prctl(2), for PR_SET_SECCOMP. Operations take up to four arguments; passing on unused registers is harmless.
    fn prctl(operation: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        let call = || unsafe { next(operation, a, b, c, d) };
        if operation == libc::PR_SET_SECCOMP { past_libc::filtered(&|| call() as isize) as c_int } else { call() }
    }
}
