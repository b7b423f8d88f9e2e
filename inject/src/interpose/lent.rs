//! Calls that go on with the program's buffers after they have returned: those mappings are let go of.

use crate::arming::lend;
use crate::buffers::slice;
use crate::interpose::words::pass;
use crate::next::Next;
use crate::{interpose, next_of, registry};
use core::ffi::{c_int, c_void};

/// # Safety
/// `request` must be null or valid, as aio_read(3) demands.
#[inline(never)] // One copy is enough for all calls.
unsafe fn lend_buffer(request: *const libc::aiocb) {
    let place = request.addr();
    // SAFETY: the caller's promise.
    if let Some(request) = unsafe { slice(request, 1) }.first() {
        lend(request.0.aio_buf as usize, request.0.aio_nbytes);
        // Its thread reads it, and says there how it went.
        lend(place, 1);
    }
}

/// Calls with one request. The layout is the same under both names on 64-bit Linux.
macro_rules! request {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(request: *mut libc::aiocb) -> c_int; missing -1; |next| {
                // SAFETY: the program's own request and call.
                unsafe {
                    lend_buffer(request);
                    next(request)
                }
            }
        }
    )*};
}

request! {
    /// aio_read(3).
    fn aio_read;
    /// aio_read(3).
    fn aio_read64;
    /// aio_write(3).
    fn aio_write;
    /// aio_write(3).
    fn aio_write64;
}

/// A call with a list of requests, which are lent one by one.
///
/// # Safety
/// As lio_listio(3) and getaddrinfo_a(3) demand.
#[inline(never)] // One copy is enough for all of them.
unsafe fn with_list(
    next: &'static Next,
    [mode, list, count, event]: [usize; 4],
    lend_one: unsafe fn(*const libc::aiocb),
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let count = if registry::is_empty() { 0 } else { count };
        for request in slice(list as *const *const libc::aiocb, usize::try_from(count as c_int).unwrap_or(0)) {
            lend_one(request.0);
        }
    }
    pass(next, [mode, list, count, event])
}

/// Calls with a list of requests.
macro_rules! requests {
    ($($(#[$doc:meta])* fn $name:ident of $lend:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(mode: c_int, list: usize, count: c_int, event: *mut c_void) -> c_int {
            next_of!($name);
            // SAFETY: the program's own requests.
            unsafe { with_list(&NEXT, [mode as usize, list, count as usize, event.addr()], $lend) }
        }
    )*};
}

requests! {
    /// lio_listio(3).
    fn lio_listio of lend_buffer;
    /// lio_listio(3).
    fn lio_listio64 of lend_buffer;
    /// getaddrinfo_a(3).
    fn getaddrinfo_a of lend_names;
}

/// A request of getaddrinfo_a(3) begins with its name, its service and what is wanted: a thread of libc reads them, with all
/// signals blocked, and says in it what it has found.
///
/// # Safety
/// `request` must be null or such a request.
unsafe fn lend_names(request: *const libc::aiocb) {
    let place = request.addr();
    // SAFETY: the caller's promise.
    if let Some(request) = unsafe { slice(request.cast::<[usize; 3]>(), 1) }.first() {
        let [name, service, wanted] = request.0;
        [place, name, service, wanted].into_iter().for_each(|begin| lend(begin, 1));
    }
}
