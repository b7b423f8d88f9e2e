//! Calls that open files: an LMDB reader's lock file can be a private one (`lockfile`).

use crate::interpose;
use crate::lockfile::{self, Lock};
use core::ffi::{CStr, c_char, c_int, c_uint};

/// Opens by `open`, unless the path is that of a reader's lock file.
///
/// # Safety
/// `path` must be null or a C string.
unsafe fn open_with(path: *const c_char, flags: c_int, open: impl Fn() -> c_int) -> c_int {
    if path.is_null() {
        return open();
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    let lock = lockfile::classify(path, flags);
    if lock == Lock::Private
        && let Ok(file) = lockfile::private(flags)
    {
        super::memory::preserving_errno(|| lockfile::report(&lock, path));
        return file;
    }
    let file = open();
    if file >= 0 {
        super::memory::preserving_errno(|| {
            lockfile::opened(path, flags, file);
            lockfile::report(&lock, path);
        });
    }
    file
}

interpose! {
    /// open(2). The mode is there only when a file may be made; passing on an unused register is harmless.
    fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(path, flags, || next(path, flags, mode)) }
    }
}

interpose! {
    /// open(2) with large file support.
    fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(path, flags, || next(path, flags, mode)) }
    }
}

interpose! {
    /// openat(2). Paths are told apart as they are given, so data and lock file must be named in the same way, as LMDB
    /// does.
    fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(path, flags, || next(folder, path, flags, mode)) }
    }
}

interpose! {
    /// openat(2) with large file support.
    fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(path, flags, || next(folder, path, flags, mode)) }
    }
}
