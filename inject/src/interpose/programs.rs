//! Calls that execute programs: these inherit the mask and the ignored signals that the caller has set, and not what is
//! in force in its place.

use crate::handler::disposition::Ignored;
use crate::handler::stand_in;
use crate::sys::{self, SignalSet};
use crate::{interpose, settings};
use core::ffi::{c_char, c_int, c_void};

type List = *const *const c_char;

/// While this exists, what the program set is in force.
struct Inherited {
    mask: Option<SignalSet>,
    _ignored: Option<Ignored>,
}

impl Inherited {
    fn begin() -> Option<Self> {
        settings::get()?;
        let now = sys::mask();
        let mask = stand_in::blocks(now).then(|| sys::set_mask(stand_in::program_form(now)));
        Some(Self { mask, _ignored: Ignored::begin() })
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        if let Some(mask) = self.mask {
            sys::set_mask(mask);
        }
    }
}

macro_rules! execute {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*), missing $missing:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($argument: $type),*) -> c_int; missing $missing; |next| {
                let inherited = Inherited::begin();
                // SAFETY: the program's own call.
                let result = unsafe { next($($argument),*) };
                super::memory::preserving_errno(|| drop(inherited));
                result
            }
        }
    )*};
}

execute! {
    /// execve(2).
    fn execve(path: *const c_char, arguments: List, environment: List), missing -1;
    /// execv(3).
    fn execv(path: *const c_char, arguments: List), missing -1;
    /// execvp(3).
    fn execvp(file: *const c_char, arguments: List), missing -1;
    /// execvpe(3).
    fn execvpe(file: *const c_char, arguments: List, environment: List), missing -1;
    /// fexecve(3).
    fn fexecve(file: c_int, arguments: List, environment: List), missing -1;
    /// execveat(2).
    fn execveat(folder: c_int, path: *const c_char, arguments: List, environment: List, flags: c_int), missing -1;
    /// posix_spawn(3).
    fn posix_spawn(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: List, environment: List), missing libc::ENOSYS;
    /// posix_spawnp(3).
    fn posix_spawnp(process: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: List, environment: List), missing libc::ENOSYS;
}
