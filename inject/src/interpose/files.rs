//! Calls that open files: an LMDB reader's lock file can be a private one (`lockfile`), and after some devices nothing
//! may be armed (`past_libc`).

use super::buffers::with;
use super::memory::preserving_errno;
use crate::buffers::{Buffers, PATH_MAX, is_nothing_closed};
use crate::in_use::are_calls_watched;
use crate::lockfile::{self, Fate};
use crate::next::Next;
use crate::{next_of, past_libc, peek, registry};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem;
use core::ptr::NonNull;
use precache_contract::segment::Refusal;

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint) -> c_int;

// Where files are mapped these two nearly always make the call at once, and leave it by a jump (`interpose::buffers`).

/// # Safety
/// As open(2) demands, of which `next` is one.
#[inline(never)] // One copy is enough for all of them; so below.
unsafe fn open_here(path: *const c_char, flags: c_int, mode: c_uint, next: &Next) -> c_int {
    if let Some(next) = next_of_plain(path.addr(), next) {
        // SAFETY: the caller's promise.
        let next = unsafe { mem::transmute::<NonNull<c_void>, Open>(next) };
        // SAFETY: the program's own call.
        return unsafe { next(path, flags, mode) };
    }
    // SAFETY: the caller's promise.
    unsafe { open_looked_at(None, path, flags, mode, next) }
}

/// # Safety
/// As openat(2) demands, of which `next` is one.
#[inline(never)]
unsafe fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint, next: &Next) -> c_int {
    if let Some(next) = next_of_plain(path.addr(), next) {
        // SAFETY: the caller's promise.
        let next = unsafe { mem::transmute::<NonNull<c_void>, OpenAt>(next) };
        // SAFETY: the program's own call.
        return unsafe { next(folder, path, flags, mode) };
    }
    // SAFETY: the caller's promise.
    unsafe { open_looked_at(Some(folder), path, flags, mode, next) }
}

/// The next function, if nobody need look at the path, nor see what the call returns: it is not armed, and no device's.
#[inline(always)]
fn next_of_plain(path: usize, next: &Next) -> Option<NonNull<c_void>> {
    let next = next.known();
    let place = path % size_of::<usize>();
    // The first byte tells of the path (`Buffers::from`); that of its word lies in the same page.
    let is_elsewhere = !registry::could_lie_in(path) || registry::are_few() && !registry::is_in_few(path);
    // Not `&&`: in the midst of a look for a path the processor forgets how such branches go, and guesses that they are not taken.
    let is_usual = next.is_some() & !are_calls_watched() & !lockfile::are_private() & !is_nothing_closed();
    // SAFETY: only asked where that holds, so our handler is in place. Of a word that lies in one page either all is there or
    // nothing.
    let is_no_device =
        || unsafe { peek::word_inline(path - place) }.is_some_and(|word| past_libc::begins_otherwise(word, place));
    if is_elsewhere && is_usual && is_no_device() { next } else { None }
}

/// The path is looked at when the kernel has taken it for good: until then it may be anything.
///
/// # Safety
/// As openat(2) demands, of which `next` is one; without a folder, open(2).
#[cold]
#[inline(never)] // One copy is enough for all who open.
unsafe fn open_looked_at(folder: Option<c_int>, path: *const c_char, flags: c_int, mode: c_uint, next: &Next) -> c_int {
    let Some(next) = next.address() else { return -1 };
    let open = || match folder {
        // SAFETY: the program's own call.
        Some(folder) => unsafe { mem::transmute::<NonNull<c_void>, OpenAt>(next)(folder, path, flags, mode) },
        // SAFETY: the same.
        None => unsafe { mem::transmute::<NonNull<c_void>, Open>(next)(path, flags, mode) },
    };
    // Of a word that lies in one page either all is there or nothing.
    let is_there = || peek::word(path.addr() & !(size_of::<usize>() - 1)).is_some();
    // SAFETY: a program that wants private lock files names its files by C strings.
    if let Some(path) = unsafe { (lockfile::are_private() && is_there()).then(|| text(path)).flatten() } {
        match lockfile::decide(folder.unwrap_or(libc::AT_FDCWD), path, flags) {
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
    let file = with(Buffers::from(path.cast(), PATH_MAX), || open() as isize) as c_int;
    // SAFETY: the kernel has just read it to its end.
    if file >= 0 && (lockfile::are_private() || unsafe { past_libc::begins_as_device(path) }) {
        // SAFETY: as before.
        unsafe { look_at_opened(path, flags, file) };
    }
    file
}

/// # Safety
/// As [`text`].
#[inline(never)]
unsafe fn look_at_opened(path: *const c_char, flags: c_int, file: c_int) {
    // SAFETY: the caller's promise.
    let Some(path) = (unsafe { text(path) }) else { return };
    preserving_errno(|| {
        lockfile::opened(path, flags, file);
        if past_libc::is_pinning_device(path) {
            past_libc::note(Refusal::PinningDevice);
        }
    });
}

/// # Safety
/// Null or a C string.
unsafe fn text<'a>(path: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// Calls with a folder, if they take one, by one of these. The mode is there only when a file may be made; passing on an unused
/// register is harmless.
macro_rules! open {
    ($($(#[$doc:meta])* fn $name:ident($($folder:ident)?) by $open:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($folder: c_int,)? path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            next_of!($name);
            // SAFETY: the program's own call.
            unsafe { $open($($folder,)? path, flags, mode, &NEXT) }
        }
    )*};
}

open! {
    /// open(2).
    fn open() by open_here;
    /// open(2) with large file support.
    fn open64() by open_here;
    /// open(2) under the name that libc's own parts use.
    fn __open() by open_here;
    /// The same with large file support.
    fn __open64() by open_here;
    /// open(2) without a mode, with a check that none is needed (`_FORTIFY_SOURCE`).
    fn __open_2() by open_here;
    /// The same with large file support.
    fn __open64_2() by open_here;
    /// openat(2).
    fn openat(folder) by open_at;
    /// openat(2) with large file support.
    fn openat64(folder) by open_at;
    /// openat(2) without a mode, with a check that none is needed.
    fn __openat_2(folder) by open_at;
    /// The same with large file support.
    fn __openat64_2(folder) by open_at;
}
