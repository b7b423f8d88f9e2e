//! Calls that open files: an LMDB reader's lock file can be a private one (`lockfile`).

use super::memory::preserving_errno;
use crate::interpose;
use crate::lockfile::{self, Fate};
use core::ffi::{CStr, c_char, c_int, c_uint};

/// Opens by `open`, unless the path is that of a reader's lock file.
///
/// # Safety
/// `path` must be null or a C string.
unsafe fn open_with(folder: c_int, path: *const c_char, flags: c_int, open: impl Fn() -> c_int) -> c_int {
    if path.is_null() {
        return open();
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    match lockfile::decide(folder, path, flags) {
        Fate::Private => {
            if let Ok(file) = lockfile::make_private(path, flags) {
                return file;
            }
        }
        Fate::Refused => {
            // SAFETY: the calling thread's own errno (errno(3)).
            unsafe { *libc::__errno_location() = libc::EACCES };
            return -1;
        }
        Fate::Open => {}
    }
    let file = open();
    if file >= 0 {
        preserving_errno(|| lockfile::opened(path, flags, file));
    }
    file
}

interpose! {
    /// open(2). The mode is there only when a file may be made; passing on an unused register is harmless.
    fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(libc::AT_FDCWD, path, flags, || next(path, flags, mode)) }
    }
}

interpose! {
    /// open(2) with large file support.
    fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(libc::AT_FDCWD, path, flags, || next(path, flags, mode)) }
    }
}

interpose! {
    /// openat(2).
    fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(folder, path, flags, || next(folder, path, flags, mode)) }
    }
}

interpose! {
    /// openat(2) with large file support.
    fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        unsafe { open_with(folder, path, flags, || next(folder, path, flags, mode)) }
    }
}
