//! Whether another thread can do something while this one is in a call.

use core::ffi::{c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
}

/// libc's own word for it: not 0 while the process has one thread (glibc 2.32, sys/single_threaded.h). Null: it has none, or
/// has not been asked yet.
static SINGLE_THREADED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Looks for the word. From the constructor: dlsym takes the loader's lock.
pub fn look_up() {
    // SAFETY: a null handle is RTLD_DEFAULT, and the name a C string (dlsym(3)).
    let word = unsafe { dlsym(null_mut(), c"__libc_single_threaded".as_ptr()) };
    SINGLE_THREADED.store(word.cast(), Relaxed);
}

/// Whether it is certain that this process has no other thread. Threads made past libc are not known of.
#[inline(always)]
pub fn is_alone() -> bool {
    let word = SINGLE_THREADED.load(Relaxed);
    // SAFETY: a byte of libc's, which stays mapped; it is cleared before another thread begins.
    !word.is_null() && unsafe { word.read_volatile() } != 0
}
