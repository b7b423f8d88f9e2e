//! Calls that execute programs: these inherit the mask and the ignored signals that the caller has set, and not what is
//! in force in its place. What would not start with our library does not inherit it. And the fork that no handler is called for.

use super::given::Given;
use super::signals::is_served;
use crate::executable::Target;
use crate::handler::disposition::{Ignored, Suspended};
use crate::handler::stand_in;
use crate::preload::{self, Execute, List};
use crate::sys::{self, SignalSet};
use crate::{fork_gate, interpose};
use core::ffi::{c_char, c_int, c_short, c_void};
use core::mem::MaybeUninit;
use core::ptr::null;
use libc::posix_spawnattr_t;

/// While this exists, what the program set is in force.
struct Inherited {
    mask: Option<(SignalSet, Suspended)>,
    _ignored: Option<Ignored>,
}

impl Inherited {
    fn begin() -> Option<Self> {
        if !is_served() || cfg!(feature = "sabotage-ours-is-inherited") {
            return None;
        }
        let mask = stand_in::blocking().map(|now| {
            let suspended = Suspended::begin();
            (sys::set_mask(stand_in::program_form(now)), suspended)
        });
        Some(Self { mask, _ignored: Ignored::begin() })
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        if let Some((mask, _suspended)) = self.mask.take() {
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
/// `target`, `arguments` and `environment` must be what execve(2) or its like take.
pub unsafe fn execute_target(target: Target, arguments: List, environment: List, call: Execute) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let _given = Given::hold([target.name(), null()], [arguments, environment]);
        let within = |environment| execute(|| call.with(environment));
        preload::with_environment(target, environment, Execute::by(&within))
    }
}

/// The same for calls that take the mask for the program as an attribute: it is never in force here, where a handler of
/// the program's may trip meanwhile.
fn spawn(attributes: *const posix_spawnattr_t, call: impl FnOnce(*const posix_spawnattr_t) -> c_int) -> c_int {
    if !is_served() || cfg!(feature = "sabotage-ours-is-inherited") {
        return call(attributes);
    }
    let ignored = Ignored::begin();
    // SAFETY: the program's own attributes.
    let own = stand_in::blocking().and_then(|now| unsafe { with_mask(attributes, stand_in::program_form(now)) });
    let result = call(own.as_ref().map_or(attributes, core::ptr::from_ref));
    super::memory::preserving_errno(|| drop(ignored));
    result
}

/// The attributes with this mask; `None`: they have one, which the program has set.
///
/// # Safety
/// They must be what posix_spawn(3) takes.
unsafe fn with_mask(attributes: *const posix_spawnattr_t, mask: SignalSet) -> Option<posix_spawnattr_t> {
    const SET_MASK: c_short = libc::POSIX_SPAWN_SETSIGMASK as c_short;
    let (mut own, mut flags) = (MaybeUninit::uninit(), 0);
    // SAFETY: the caller's promise; in glibc, attributes are plain values that can be copied, and all of them are set by
    // `init`. A set of signals is larger than the kernel's, which it begins with; the rest of it is unused.
    unsafe {
        match attributes.as_ref() {
            Some(theirs) => drop(own.write(*theirs)),
            None => drop(libc::posix_spawnattr_init(own.as_mut_ptr())),
        }
        let mut own = own.assume_init();
        libc::posix_spawnattr_getflags(&own, &mut flags);
        if flags & SET_MASK != 0 {
            return None;
        }
        let mut set: libc::sigset_t = core::mem::zeroed();
        (&raw mut set).cast::<SignalSet>().write(mask);
        libc::posix_spawnattr_setsigmask(&mut own, &set);
        libc::posix_spawnattr_setflags(&mut own, flags | SET_MASK);
        Some(own)
    }
}

unsafe extern "C" {
    static environ: List;
}

/// Calls that are given an environment: `$target` names the program.
macro_rules! with_environment {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty),* ; $arguments:ident, $environment:ident $(, $after:ident: $after_type:ty)*) of $target:expr, missing $missing:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($before: $before_type,)* $arguments: List, $environment: List $(, $after: $after_type)*) -> c_int; missing $missing; |next| {
                // SAFETY: the program's own call, with its environment or one like it.
                let call = |$environment: List| unsafe { next($($before,)* $arguments, $environment $(, $after)*) };
                // SAFETY: the program's own target, arguments and environment.
                unsafe { execute_target($target, $arguments, $environment, Execute::by(&call)) }
            }
        }
    )*};
}

with_environment! {
    /// execve(2).
    fn execve(path: *const c_char; arguments, environment) of Target::At(libc::AT_FDCWD, path), missing -1;
    /// execvpe(3).
    fn execvpe(file: *const c_char; arguments, environment) of Target::Named(file), missing -1;
    /// fexecve(3).
    fn fexecve(file: c_int; arguments, environment) of Target::File(file), missing -1;
    /// execveat(2).
    fn execveat(folder: c_int, path: *const c_char; arguments, environment, flags: c_int)
        of Target::at(folder, path, flags), missing -1;
}

/// Calls that are given attributes and an environment.
macro_rules! with_attributes {
    ($($(#[$doc:meta])* fn $name:ident($path:ident) of $target:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(process: *mut c_int, $path: *const c_char, actions: *const c_void, attributes: *const posix_spawnattr_t,
                arguments: List, environment: List) -> c_int; missing libc::ENOSYS; |next| {
                let call = |environment: List| {
                    // SAFETY: the program's own call, with its attributes and environment or some like them.
                    spawn(attributes, |attributes| unsafe {
                        next(process, $path, actions, attributes, arguments, environment)
                    })
                };
                // SAFETY: the program's own target, arguments and environment.
                unsafe {
                    let _given = Given::hold([$path, null()], [arguments, environment]);
                    preload::with_environment($target, environment, Execute::by(&call))
                }
            }
        }
    )*};
}

with_attributes! {
    /// posix_spawn(3).
    fn posix_spawn(path) of Target::Spawned(path);
    /// posix_spawnp(3).
    fn posix_spawnp(file) of Target::Named(file);
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
                // SAFETY: the program's own target, arguments and environment.
                unsafe { execute_target($target, arguments, ours, Execute::by(&call)) }
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
    /// popen(3), which executes its shell before it returns.
    fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void; missing core::ptr::null_mut(); |next| {
        // SAFETY: the program's own strings.
        let _given = unsafe { Given::hold([command, mode], [null(); 2]) };
        // SAFETY: the program's own call.
        execute(|| unsafe { next(command, mode) })
    }
}

interpose! {
    /// system(3), which waits for its shell. Nothing is armed until then, if that is to find SIGSEGV blocked or ignored.
    fn system(command: *const c_char) -> c_int; missing -1; |next| {
        // SAFETY: the program's own string.
        let _given = unsafe { Given::hold([command, null()], [null(); 2]) };
        // SAFETY: the program's own call.
        execute(|| unsafe { next(command) })
    }
}

interpose! {
    /// _Fork(3), which calls no handlers (pthread_atfork(3)).
    #[allow(non_snake_case, reason = "libc's name")]
    fn _Fork() -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        let child = unsafe { next() };
        if child == 0 {
            fork_gate::note_child();
        }
        child
    }
}
