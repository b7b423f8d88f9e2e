//! Calls that go on with the program's buffers after they have returned: those mappings are let go of.

use crate::arming::let_go;
use crate::buffers::slice;
use crate::{interpose, registry};
use core::ffi::{c_int, c_void};
use precache_contract::segment::Refusal;

/// # Safety
/// `request` must be null or valid, as aio_read(3) demands.
unsafe fn lend(request: *const libc::aiocb) {
    if registry::is_empty() {
        return;
    }
    // SAFETY: the caller's promise.
    if let Some(request) = unsafe { slice(request, 1) }.first() {
        drop(let_go(request.0.aio_buf as usize, request.0.aio_nbytes, Some(Refusal::Lent)));
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
                    lend(request);
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

/// Calls with a list of requests.
macro_rules! requests {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(mode: c_int, list: *const *mut libc::aiocb, count: c_int, event: *mut c_void) -> c_int; missing -1; |next| {
                // SAFETY: the program's own requests and call.
                unsafe {
                    for request in slice(list, usize::try_from(count).unwrap_or(0)) {
                        lend(request.0);
                    }
                    next(mode, list, count, event)
                }
            }
        }
    )*};
}

requests! {
    /// lio_listio(3).
    fn lio_listio;
    /// lio_listio(3).
    fn lio_listio64;
}
