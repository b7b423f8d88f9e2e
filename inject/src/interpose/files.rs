//! Calls that open files: an LMDB reader's lock file can be a private one (`lockfile`), and after some devices nothing
//! may be armed (`past_libc`).

use super::buffers::with;
use super::memory::preserving_errno;
use crate::buffers::{Buffers, PATH_MAX};
use crate::doing::Doing;
use crate::lockfile::{self, Fate};
use crate::{interpose, past_libc, peek};
use core::ffi::{CStr, c_char, c_int, c_uint};
use precache_contract::segment::Refusal;

/// Opens by `open`, unless the path is that of a reader's lock file.
///
/// The path is looked at when the kernel has taken it for good: until then it may be anything.
///
/// # Safety
/// `path` must be what the program passes as a path.
unsafe fn open_with(folder: c_int, path: *const c_char, flags: c_int, open: Doing<(), c_int>) -> c_int {
    // Of a word that lies in one page either all is there or nothing.
    let is_there = || peek::word(path.addr() & !(size_of::<usize>() - 1)).is_some();
    // SAFETY: a program that wants private lock files names its files by C strings.
    if let Some(path) = unsafe { (lockfile::are_private() && is_there()).then(|| text(path)).flatten() } {
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
    }
    // A path in an armed mapping: of a longer one the kernel takes nothing.
    let file = with(Buffers::from(path.cast(), PATH_MAX), || open.with(()) as isize) as c_int;
    // SAFETY: the kernel has just read it to its end.
    if let Some(path) = (file >= 0).then(|| unsafe { text(path) }).flatten() {
        preserving_errno(|| {
            lockfile::opened(path, flags, file);
            if past_libc::is_pinning_device(path) {
                past_libc::note(Refusal::PinningDevice);
            }
        });
    }
    file
}

/// # Safety
/// Null or a C string.
unsafe fn text<'a>(path: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// The folder that a path is relative to.
macro_rules! folder {
    () => {
        libc::AT_FDCWD
    };
    ($folder:ident) => {
        $folder
    };
}

/// Calls with a folder, if they take one. The mode is there only when a file may be made; passing on an unused register is
/// harmless.
macro_rules! open {
    ($($(#[$doc:meta])* fn $name:ident($($folder:ident)?);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($folder: c_int,)? path: *const c_char, flags: c_int, mode: c_uint) -> c_int; missing -1; |next| {
                // SAFETY: the program's own call.
                unsafe { open_with(folder!($($folder)?), path, flags, Doing::by(&|()| next($($folder,)? path, flags, mode))) }
            }
        }
    )*};
}

open! {
    /// open(2).
    fn open();
    /// open(2) with large file support.
    fn open64();
    /// open(2) under the name that libc's own parts use.
    fn __open();
    /// The same with large file support.
    fn __open64();
    /// open(2) without a mode, with a check that none is needed (`_FORTIFY_SOURCE`).
    fn __open_2();
    /// The same with large file support.
    fn __open64_2();
    /// openat(2).
    fn openat(folder);
    /// openat(2) with large file support.
    fn openat64(folder);
    /// openat(2) without a mode, with a check that none is needed.
    fn __openat_2(folder);
    /// The same with large file support.
    fn __openat64_2(folder);
}
