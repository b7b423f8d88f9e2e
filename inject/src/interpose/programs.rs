//! Calls that execute programs: these inherit the mask and the ignored signals that the caller has set, and not what is
//! in force in its place. A sanitizer build does not inherit our library.

use crate::handler::disposition::Ignored;
use crate::handler::stand_in;
use crate::sanitizer::{self, List, Target};
use crate::sys::{self, SignalSet};
use crate::{interpose, settings};
use core::ffi::{c_char, c_int, c_void};

/// While this exists, what the program set is in force.
struct Inherited {
    mask: Option<SignalSet>,
    _ignored: Option<Ignored>,
}

impl Inherited {
    fn begin() -> Option<Self> {
        settings::get().filter(|_| !cfg!(feature = "sabotage-ours-is-inherited"))?;
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

/// Makes the call with what the program is to inherit.
fn execute<T>(call: impl FnOnce() -> T) -> T {
    let inherited = Inherited::begin();
    let result = call();
    super::memory::preserving_errno(|| drop(inherited));
    result
}

/// Executes a program by `call`, with what it is to inherit.
///
/// # Safety
/// `target` and `environment` must be what execve(2) or its like take.
pub unsafe fn execute_target(target: Target, environment: List, call: &dyn Fn(List) -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { sanitizer::with_environment(target, environment, &|environment| execute(|| call(environment))) }
}

unsafe extern "C" {
    static environ: List;
}

/// Calls that are given an environment: `$target` names the program.
macro_rules! with_environment {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty),* ; $environment:ident $(, $after:ident: $after_type:ty)*) of $target:expr, missing $missing:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($before: $before_type,)* $environment: List $(, $after: $after_type)*) -> c_int; missing $missing; |next| {
                // SAFETY: the program's own call, with its environment or one like it.
                let call = |$environment: List| unsafe { next($($before,)* $environment $(, $after)*) };
                // SAFETY: the program's own target and environment.
                unsafe { execute_target($target, $environment, &call) }
            }
        }
    )*};
}

with_environment! {
    /// execve(2).
    fn execve(path: *const c_char, arguments: List; environment) of Target::At(libc::AT_FDCWD, path), missing -1;
    /// execvpe(3).
    fn execvpe(file: *const c_char, arguments: List; environment) of Target::Named(file), missing -1;
    /// fexecve(3).
    fn fexecve(file: c_int, arguments: List; environment) of Target::File(file), missing -1;
    /// execveat(2).
    fn execveat(folder: c_int, path: *const c_char, arguments: List; environment, flags: c_int)
        of Target::at(folder, path, flags), missing -1;
    /// posix_spawn(3).
    fn posix_spawn(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: List; environment) of Target::At(libc::AT_FDCWD, path), missing libc::ENOSYS;
    /// posix_spawnp(3).
    fn posix_spawnp(process: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: List; environment) of Target::Named(file), missing libc::ENOSYS;
}

/// Calls that pass on the caller's environment: `$with` is the one that takes another.
macro_rules! with_our_environment {
    ($($(#[$doc:meta])* fn $name:ident($path:ident) by $with:ident of $target:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($path: *const c_char, arguments: List) -> c_int; missing -1; |next| {
                // SAFETY: the loader's pointer to the environment (environ(7)).
                let ours = unsafe { environ };
                // SAFETY: the program's own call, with its environment or one like it.
                let call = |environment: List| unsafe {
                    if environment == ours { next($path, arguments) } else { $with($path, arguments, environment) }
                };
                // SAFETY: the program's own target and environment.
                unsafe { execute_target($target, ours, &call) }
            }
        }
    )*};
}

with_our_environment! {
    /// execv(3).
    fn execv(path) by execve of Target::At(libc::AT_FDCWD, path);
    /// execvp(3).
    fn execvp(file) by execvpe of Target::Named(file);
}

interpose! {
    /// popen(3), which executes its shell before it returns. (system(3) waits for its end: what it starts cannot be given
    /// what the caller must not have meanwhile.)
    fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void; missing core::ptr::null_mut(); |next| {
        // SAFETY: the program's own call.
        execute(|| unsafe { next(command, mode) })
    }
}
