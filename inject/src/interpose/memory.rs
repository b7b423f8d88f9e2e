//! Calls that make, change or pin mappings.

use crate::arming::{Mapped, consider, let_go};
use crate::interpose;
use core::ffi::{c_int, c_long, c_void};
use precache_contract::segment::Refusal;

/// `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE` (Linux 5.14) stop with EFAULT at a protected page.
const POPULATE: [c_int; 2] = [22, 23];

fn failed() -> *mut c_void {
    libc::MAP_FAILED
}

/// Runs `change` without any armed mapping in the range; `why` is told of mappings that live on without us.
fn without_arming<T>(address: *const c_void, length: usize, why: Option<Refusal>, change: impl FnOnce() -> T) -> T {
    let departure = let_go(address as usize, length, why);
    let result = change();
    drop(departure);
    result
}

/// What both `mmap`s do: the program's call, then ours.
unsafe fn map(
    next: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, c_long) -> *mut c_void,
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: c_long,
) -> *mut c_void {
    // SAFETY: the program's own call.
    let call = || unsafe { next(address, length, protection, flags, file, offset) };
    let result = if flags & libc::MAP_FIXED != 0 { without_arming(address, length, None, call) } else { call() };
    if result != libc::MAP_FAILED {
        let mapped = Mapped { address: result as usize, length, protection, flags, file, offset: offset as u64 };
        preserving_errno(|| consider(&mapped));
    }
    result
}

/// errno as the program's call left it (a successful call may leave it as it was before).
pub fn preserving_errno(work: impl FnOnce()) {
    // SAFETY: the calling thread's own errno (errno(3)).
    unsafe {
        let errno = *libc::__errno_location();
        work();
        *libc::__errno_location() = errno;
    }
}

interpose! {
    /// mmap(2).
    fn mmap(address: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, offset: c_long)
        -> *mut c_void; missing failed(); |next| {
        // SAFETY: the program's own call.
        unsafe { map(next, address, length, protection, flags, file, offset) }
    }
}

interpose! {
    /// mmap(2) under the name that programs built with large file support use.
    fn mmap64(address: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, offset: c_long)
        -> *mut c_void; missing failed(); |next| {
        // SAFETY: the program's own call.
        unsafe { map(next, address, length, protection, flags, file, offset) }
    }
}

interpose! {
    /// munmap(2).
    fn munmap(address: *mut c_void, length: usize) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        without_arming(address, length, None, || unsafe { next(address, length) })
    }
}

interpose! {
    /// mremap(2). The fifth argument is there only with `MREMAP_FIXED`; passing on an unused register is harmless.
    fn mremap(address: *mut c_void, length: usize, new_length: usize, flags: c_int, place: *mut c_void)
        -> *mut c_void; missing failed(); |next| {
        let fixed = if flags & libc::MREMAP_FIXED != 0 { let_go(place as usize, new_length, None) } else { None };
        // SAFETY: the program's own call.
        let result = without_arming(address, length, Some(Refusal::Changed), || unsafe { next(address, length, new_length, flags, place) });
        drop(fixed);
        result
    }
}

interpose! {
    /// mprotect(2): from here on the program manages this mapping's protection itself.
    fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        without_arming(address, length, Some(Refusal::Changed), || unsafe { next(address, length, protection) })
    }
}

interpose! {
    /// pkey_mprotect(2).
    fn pkey_mprotect(address: *mut c_void, length: usize, protection: c_int, key: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        without_arming(address, length, Some(Refusal::Changed), || unsafe { next(address, length, protection, key) })
    }
}

interpose! {
    /// madvise(2): populating fails at protected pages.
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int; missing -1; |next| {
        let populates = POPULATE.contains(&advice);
        let departure = if populates { let_go(address as usize, length, Some(Refusal::Changed)) } else { None };
        // SAFETY: the program's own call.
        let result = unsafe { next(address, length, advice) };
        drop(departure);
        result
    }
}

interpose! {
    /// mlock(2): locking fails at protected pages.
    fn mlock(address: *const c_void, length: usize) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        without_arming(address, length, Some(Refusal::Changed), || unsafe { next(address, length) })
    }
}

interpose! {
    /// mlock2(2).
    fn mlock2(address: *const c_void, length: usize, flags: core::ffi::c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        without_arming(address, length, Some(Refusal::Changed), || unsafe { next(address, length, flags) })
    }
}

interpose! {
    /// mlockall(2).
    fn mlockall(flags: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        without_arming(core::ptr::null(), usize::MAX, Some(Refusal::Changed), || unsafe { next(flags) })
    }
}
