//! The constructor: looks up the functions that ours stand in front of, notes whose memory this is, reads the settings, puts
//! the inherited mask in order, and tells the optimizer that the library was loaded. No handler is installed, no descriptor
//! kept, no thread started before a data file is mapped.

use crate::handler::stand_in;
use crate::{fork_gate, handover, next, owner, settings};
use core::ffi::{CStr, c_char};

unsafe extern "C" {
    /// environ(7).
    static environ: *const *const c_char;
}

#[ctor::ctor(unsafe)]
fn start() {
    next::look_up_all();
    let wish = wish();
    if wish.is_some() {
        owner::establish();
    }
    // SAFETY: constructors run one after the other, and this one runs once.
    unsafe { settings::read(wish) };
    if settings::get().is_some() {
        // A mask comes along over exec; threads that begin later inherit this one.
        stand_in::begin();
        fork_gate::begin();
    }
    if wish.is_some() {
        handover::report_loaded();
    }
}

/// Whether this process is to be served, as far as can be told before our constructor: those of the program's own libraries come
/// first, and threads that they start keep the mask that they begin with.
pub fn is_wanted() -> bool {
    wish().is_some()
}

/// What is wanted of this process, unless it is to be left alone.
fn wish() -> Option<&'static CStr> {
    let is_off = variable(b"PRECACHE=").is_some_and(|value| value.to_bytes() == b"off");
    variable(b"PRECACHE_READER=").filter(|_| !is_off)
}

/// Calls nothing: getenv(3) may be a function of the program's, which calls what asks here.
fn variable(name: &[u8]) -> Option<&'static CStr> {
    // SAFETY: null before libc has begun, or a list of C strings that ends with null, of which nobody changes one while
    // libraries begin.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            if CStr::from_ptr(*entry).to_bytes().starts_with(name) {
                return Some(CStr::from_ptr((*entry).add(name.len())));
            }
            entry = entry.add(1);
        }
    }
    None
}

/// The library has no code that panics on purpose; should one be left, the process ends as by abort(3), at once.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort never returns and may be called anywhere.
    unsafe { libc::abort() }
}
