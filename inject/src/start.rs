//! The constructor: looks up the functions that ours stand in front of, notes whose memory this is, reads the settings, puts
//! the inherited mask in order, and tells the optimizer that the library was loaded. No handler is installed, no descriptor
//! kept, no thread started before a data file is mapped.

use crate::handler::stand_in;
use crate::{fork_gate, handover, next, owner, settings};
use core::ffi::{CStr, c_char};

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
}

#[ctor::ctor(unsafe)]
fn start() {
    next::look_up_all();
    let Some(value) = wish() else {
        settings::conclude();
        return;
    };
    owner::establish();
    read(value);
    if settings::conclude() {
        fork_gate::begin();
    }
    handover::report_loaded();
}

/// Reads the settings before our constructor runs: those of the program's own libraries come first, and threads that they start
/// keep the mask that they begin with. Whether they are known now.
#[cold]
#[inline(never)] // One copy is enough for all who ask.
pub fn read_early() -> bool {
    wish().is_some_and(read)
}

/// What is wanted of this process, unless it is to be left alone.
fn wish() -> Option<&'static CStr> {
    let is_off = variable(c"PRECACHE").is_some_and(|value| value.to_bytes() == b"off");
    variable(c"PRECACHE_READER").filter(|_| !is_off)
}

fn read(value: &CStr) -> bool {
    let is_first = settings::read(value);
    if is_first {
        // A mask comes along over exec; threads that begin later inherit this one.
        stand_in::begin();
    }
    is_first
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: a C string; the answer is null or a C string that lives until the environment changes, which nobody does
    // during construction.
    unsafe {
        let value = getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// The library has no code that panics on purpose; should one be left, the process ends as by abort(3), at once.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort never returns and may be called anywhere.
    unsafe { libc::abort() }
}
