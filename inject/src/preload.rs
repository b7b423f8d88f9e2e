//! What a program that is about to be executed is preloaded with: not with our library, if it would not start with it as it does
//! alone. In a child of vfork, too: nothing but system calls and the stack.

use crate::doing::Doing;
use crate::executable::{self, Target, has_runtime};
use crate::fork_gate::Shut;
use crate::{handover, owner, past_libc, peek, settings, sys};
use core::ffi::{CStr, c_char, c_int};
use precache_contract::uninjected::Uninjected;

pub type List = *const *const c_char;

/// Entries of an environment that is changed, and bytes of LD_PRELOAD; a longer one is left as it is.
const ENTRIES: usize = 2048;
const PRELOAD: usize = 4096;

/// The same of most: stacks may be small, of handlers and of threads.
const FEW_ENTRIES: usize = 256;
const SOME_ENTRIES: usize = 512;
const MANY_ENTRIES: usize = 1024;
const SHORT_PRELOAD: usize = 1024;

/// Bytes of the path of a library that is looked for.
const LIBRARY: usize = 512;

const VARIABLE: &[u8] = b"LD_PRELOAD=";

/// How a program is executed in an environment.
#[derive(Clone, Copy)]
pub struct Execute<'a>(Doing<'a, List, c_int>);

impl<'a> Execute<'a> {
    pub fn by<F: Fn(List) -> c_int>(call: &'a F) -> Self {
        Self(Doing::by(call))
    }

    /// # Safety
    /// `environment` must be what the call takes.
    pub unsafe fn with(self, environment: List) -> c_int {
        self.0.with(environment)
    }
}

/// Calls `execute` with the environment that the program is to get.
///
/// # Safety
/// `environment` must be null or a list of C strings that ends with null, or no address, and `target` what the call of its kind
/// takes; both are open (`interpose::given`), for nobody trips behind the gate.
pub unsafe fn with_environment(target: Target, environment: List, execute: Execute) -> c_int {
    // Where the program has forbidden itself system calls, nothing of ours makes any.
    if past_libc::is_filtered() || cfg!(feature = "sabotage-library-for-everybody") {
        // SAFETY: the caller's promise.
        return unsafe { execute.with(environment) };
    }
    // SAFETY: the caller's promise.
    match unsafe { entry(environment) } {
        // SAFETY: as above.
        Some((at, preload)) if has_runtime(preload) || unsafe { is_broken_by_library(target) } => unsafe {
            let is_short = VARIABLE.len() + preload.len() < SHORT_PRELOAD;
            match length(environment) {
                ..FEW_ENTRIES if is_short => {
                    without_library::<FEW_ENTRIES, SHORT_PRELOAD>(environment, at, preload, execute)
                }
                ..SOME_ENTRIES if is_short => {
                    without_library::<SOME_ENTRIES, SHORT_PRELOAD>(environment, at, preload, execute)
                }
                ..MANY_ENTRIES if is_short => {
                    without_library::<MANY_ENTRIES, SHORT_PRELOAD>(environment, at, preload, execute)
                }
                _ => without_library::<ENTRIES, PRELOAD>(environment, at, preload, execute),
            }
        },
        // SAFETY: the caller's promise.
        _ => unsafe { execute.with(environment) },
    }
}

/// Whether the program would start otherwise with our library than without, as far as can be told. If it takes none, that is told.
///
/// # Safety
/// `target` must be what the call of its kind takes.
#[inline(never)] // Its stack is free again when the program is executed.
unsafe fn is_broken_by_library(target: Target) -> bool {
    // No child of another thread inherits what is opened here. The descriptors of a child of vfork are its own, and the gate is
    // its parent's.
    let _shut = (!owner::is_guest()).then(Shut::begin);
    let reason = |file: c_int| {
        let why =
            executable::reason_against(file).or_else(|| (!is_library_there()).then_some(Uninjected::Unreachable))?;
        handover::report_uninjected(why, file);
        Some(why)
    };
    // SAFETY: the caller's promise.
    match unsafe { executable::with_program(target, reason) } {
        Ok(why) => why.is_some_and(Uninjected::is_broken_by_library),
        // Exec does not find it, either, and what it takes of the stack may be too much.
        Err(sys::Error::ENOENT) => matches!(target, Target::Spawned(_)),
        // What nobody can look at may be broken by it.
        Err(_) => true,
    }
}

/// Whether the loader will find the library where the program is executed, and if root does that, one of root's: where it lies in
/// memory, the number in its path may be another process's by now.
#[inline(never)] // Its buffer must not weigh on the stacks of others.
fn is_library_there() -> bool {
    let mut path = [0u8; LIBRARY];
    let ours = settings::library();
    let Some(to) = path[..LIBRARY - 1].get_mut(..ours.len()) else { return true };
    to.copy_from_slice(ours);
    // SAFETY: a path that ends in a zero byte.
    let opened = unsafe { sys::open_to_look(libc::AT_FDCWD, path.as_ptr().cast(), 0) };
    match opened {
        Ok(file) => sys::effective_user() != 0 || sys::file_status(file.0).is_ok_and(|status| status.st_uid == 0),
        // Other errors are of this process: it may have no descriptor left.
        Err(why) => ![sys::Error::ENOENT, sys::Error::ENOTDIR, sys::Error::ELOOP, sys::Error::EACCES].contains(&why),
    }
}

/// The entry that preloads our library: its place and its value. `None` also of a list that is not there to its end: execve(2)
/// refuses it.
///
/// # Safety
/// Entries that begin with [`VARIABLE`] must be C strings.
unsafe fn entry<'a>(environment: List) -> Option<(usize, &'a [u8])> {
    settings::get()?;
    if environment.is_null() {
        return None;
    }
    let (mut found, mut entries, mut texts) = (None, peek::Words::default(), peek::Words::default());
    for at in 0.. {
        let text = entries.next(environment.wrapping_add(at).addr())?;
        if text == 0 {
            break;
        }
        if found.is_none() && texts.next(text).is_some_and(|word| VARIABLE.starts_with(&word.to_ne_bytes())) {
            // SAFETY: the caller's promise.
            let value = unsafe { CStr::from_ptr(text as *const c_char) }.to_bytes().strip_prefix(VARIABLE);
            found = value.filter(|value| parts(value).any(|part| part == settings::library())).map(|value| (at, value));
        }
    }
    found
}

/// # Safety
/// A list of C strings that ends with null.
unsafe fn length(environment: List) -> usize {
    // SAFETY: the caller's promise.
    (0..).take_while(|&at| unsafe { !(*environment.add(at)).is_null() }).count()
}

fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| b": ".contains(byte)).filter(|part| !part.is_empty())
}

/// # Safety
/// As [`with_environment`]; the entry `at` is LD_PRELOAD with the value `preload`.
#[inline(never)] // Its buffers must not weigh on the stacks of others.
unsafe fn without_library<const ENTRIES: usize, const PRELOAD: usize>(
    environment: List,
    at: usize,
    preload: &[u8],
    execute: Execute,
) -> c_int {
    let (mut value, mut list) = ([0u8; PRELOAD], [core::ptr::null(); ENTRIES]);
    // SAFETY: the caller's promise.
    let fits = unsafe { fill(&mut value, &mut list, environment, at, preload) };
    // SAFETY: as above; the list is like that which it was made of.
    unsafe { execute.with(if fits { list.as_ptr() } else { environment }) }
}

/// Makes the environment without our library, in buffers of zeros; `false`: they are too small for it.
///
/// # Safety
/// As above.
#[inline(never)] // One copy is enough for buffers of all lengths.
unsafe fn fill(value: &mut [u8], list: &mut [*const c_char], environment: List, at: usize, preload: &[u8]) -> bool {
    // One byte and one entry stay for the end.
    let (Some((_, value)), Some((_, list))) = (value.split_last_mut(), list.split_last_mut()) else { return false };
    let Some(name) = value.get_mut(..VARIABLE.len()) else { return false };
    name.copy_from_slice(VARIABLE);
    let mut length = VARIABLE.len();
    for part in parts(preload).filter(|part| *part != settings::library()) {
        let separator = usize::from(length > VARIABLE.len());
        let Some(to) = value.get_mut(length..length + separator + part.len()) else { return false };
        to[..separator].fill(b':');
        to[separator..].copy_from_slice(part);
        length += to.len();
    }
    let mut places = list.iter_mut();
    for old in 0.. {
        // SAFETY: the caller's promise: up to the end of the list.
        let entry = unsafe { *environment.add(old) };
        if entry.is_null() {
            break;
        }
        if old == at && length == VARIABLE.len() {
            continue;
        }
        let Some(place) = places.next() else { return false };
        *place = if old == at { value.as_ptr().cast() } else { entry };
    }
    true
}
