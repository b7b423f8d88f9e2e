//! Calls that look a file up by a path, which may lie in an armed mapping. Those that open it by a descriptor: `files`.

use super::buffers::with_buffer;
use super::files::LONGEST;
use crate::interpose;
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;

/// Any of these calls: words in registers, as many as there are; what one does not take is left unread.
type Call = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> isize;

/// Makes `call`, of whose words `path` is one, and which answers `failed` if it fails: -1 in the lower half of a word, or null.
#[inline(never)] // One copy is enough for all calls: they take longer than their copies would save.
fn look_up(path: *const c_char, call: Call, words: &[usize; 5], failed: isize) -> isize {
    let &[a, b, c, d, e] = words;
    let has_failed = move |result: isize| if failed == 0 { result == 0 } else { result as c_int == -1 };
    let call = move || {
        // SAFETY: the program's own call.
        let result = unsafe { call(a, b, c, d, e) };
        if has_failed(result) { -1 } else { result }
    };
    match with_buffer(path.cast(), LONGEST, call) {
        -1 => failed,
        result => result,
    }
}

/// Calls with one path: first, or behind a folder.
macro_rules! one_path {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty,)* ; path ;$(, $after:ident: $after_type:ty)*) -> $result:ty, missing $missing:expr;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($before: $before_type,)* path: *const c_char $(, $after: $after_type)*) -> $result; missing $missing; |next| {
                let mut words = [0; 5];
                let given = [$($before as usize,)* path as usize $(, $after as usize)*];
                words[..given.len()].copy_from_slice(&given);
                // SAFETY: integers and pointers are words in registers, to whoever reads them and in the result (System V
                // ABI for x86-64, 3.2.3; AAPCS64, 6.4 and 6.5).
                let call = unsafe { core::mem::transmute::<unsafe extern "C" fn($($before_type,)* *const c_char $(, $after_type)*) -> $result, Call>(next) };
                let failed: $result = $missing;
                look_up(path, call, &words, failed as isize) as $result
            }
        }
    )*};
}

one_path! {
    /// fopen(3).
    fn fopen(; path ;, mode: *const c_char) -> *mut c_void, missing null_mut();
    /// fopen(3) with large file support.
    fn fopen64(; path ;, mode: *const c_char) -> *mut c_void, missing null_mut();
    /// stat(2).
    fn stat(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// stat(2) with large file support.
    fn stat64(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// lstat(2).
    fn lstat(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// lstat(2) with large file support.
    fn lstat64(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// fstatat(2).
    fn fstatat(folder: c_int, ; path ;, status: *mut c_void, flags: c_int) -> c_int, missing -1;
    /// fstatat(2) with large file support.
    fn fstatat64(folder: c_int, ; path ;, status: *mut c_void, flags: c_int) -> c_int, missing -1;
    /// statx(2).
    fn statx(folder: c_int, ; path ;, flags: c_int, mask: c_uint, status: *mut c_void) -> c_int, missing -1;
    /// stat(2), as programs call it that were linked with glibc before 2.33.
    fn __xstat(version: c_int, ; path ;, status: *mut c_void) -> c_int, missing -1;
    /// The same with large file support.
    fn __xstat64(version: c_int, ; path ;, status: *mut c_void) -> c_int, missing -1;
    /// lstat(2) of such programs.
    fn __lxstat(version: c_int, ; path ;, status: *mut c_void) -> c_int, missing -1;
    /// The same with large file support.
    fn __lxstat64(version: c_int, ; path ;, status: *mut c_void) -> c_int, missing -1;
    /// fstatat(2) of such programs.
    fn __fxstatat(version: c_int, folder: c_int, ; path ;, status: *mut c_void, flags: c_int) -> c_int, missing -1;
    /// The same with large file support.
    fn __fxstatat64(version: c_int, folder: c_int, ; path ;, status: *mut c_void, flags: c_int) -> c_int, missing -1;
    /// statfs(2).
    fn statfs(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// statfs(2) with large file support.
    fn statfs64(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// statvfs(3).
    fn statvfs(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// statvfs(3) with large file support.
    fn statvfs64(; path ;, status: *mut c_void) -> c_int, missing -1;
    /// access(2).
    fn access(; path ;, mode: c_int) -> c_int, missing -1;
    /// faccessat(3).
    fn faccessat(folder: c_int, ; path ;, mode: c_int, flags: c_int) -> c_int, missing -1;
    /// opendir(3).
    fn opendir(; path ;) -> *mut c_void, missing null_mut();
    /// chdir(2).
    fn chdir(; path ;) -> c_int, missing -1;
    /// readlink(2).
    fn readlink(; path ;, text: *mut c_char, length: usize) -> isize, missing -1;
    /// readlinkat(2).
    fn readlinkat(folder: c_int, ; path ;, text: *mut c_char, length: usize) -> isize, missing -1;
    /// realpath(3).
    fn realpath(; path ;, text: *mut c_char) -> *mut c_void, missing null_mut();
    /// creat(2).
    fn creat(; path ;, mode: c_uint) -> c_int, missing -1;
    /// creat(2) with large file support.
    fn creat64(; path ;, mode: c_uint) -> c_int, missing -1;
    /// mkdir(2).
    fn mkdir(; path ;, mode: c_uint) -> c_int, missing -1;
    /// mkdirat(2).
    fn mkdirat(folder: c_int, ; path ;, mode: c_uint) -> c_int, missing -1;
    /// unlink(2).
    fn unlink(; path ;) -> c_int, missing -1;
    /// unlinkat(2).
    fn unlinkat(folder: c_int, ; path ;, flags: c_int) -> c_int, missing -1;
    /// rmdir(2).
    fn rmdir(; path ;) -> c_int, missing -1;
    /// truncate(2).
    fn truncate(; path ;, length: i64) -> c_int, missing -1;
    /// truncate(2) with large file support.
    fn truncate64(; path ;, length: i64) -> c_int, missing -1;
    /// chmod(2).
    fn chmod(; path ;, mode: c_uint) -> c_int, missing -1;
    /// remove(3).
    fn remove(; path ;) -> c_int, missing -1;
    /// fchmodat(2).
    fn fchmodat(folder: c_int, ; path ;, mode: c_uint, flags: c_int) -> c_int, missing -1;
    /// chown(2).
    fn chown(; path ;, owner: c_uint, group: c_uint) -> c_int, missing -1;
    /// lchown(2).
    fn lchown(; path ;, owner: c_uint, group: c_uint) -> c_int, missing -1;
    /// fchownat(2).
    fn fchownat(folder: c_int, ; path ;, owner: c_uint, group: c_uint, flags: c_int) -> c_int, missing -1;
    /// utime(2).
    fn utime(; path ;, times: *const c_void) -> c_int, missing -1;
    /// utimes(2).
    fn utimes(; path ;, times: *const c_void) -> c_int, missing -1;
    /// utimensat(2).
    fn utimensat(folder: c_int, ; path ;, times: *const c_void, flags: c_int) -> c_int, missing -1;
    /// euidaccess(3).
    fn euidaccess(; path ;, mode: c_int) -> c_int, missing -1;
    /// readlink(2), as programs built with _FORTIFY_SOURCE call it.
    fn __readlink_chk(; path ;, text: *mut c_char, length: usize, room: usize) -> isize, missing -1;
    /// readlinkat(2), as they call it.
    fn __readlinkat_chk(folder: c_int, ; path ;, text: *mut c_char, length: usize, room: usize) -> isize, missing -1;
}

/// Makes `call`, which is given two paths.
fn with_paths(one: *const c_char, other: *const c_char, call: impl Fn() -> c_int + Copy) -> c_int {
    with_buffer(one.cast(), LONGEST, || with_buffer(other.cast(), LONGEST, || call() as isize)) as c_int
}

interpose! {
    /// rename(2).
    fn rename(from: *const c_char, to: *const c_char) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        with_paths(from, to, || unsafe { next(from, to) })
    }
}

interpose! {
    /// renameat(2).
    fn renameat(folder: c_int, from: *const c_char, other: c_int, to: *const c_char) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        with_paths(from, to, || unsafe { next(folder, from, other, to) })
    }
}

interpose! {
    /// link(2).
    fn link(path: *const c_char, name: *const c_char) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        with_paths(path, name, || unsafe { next(path, name) })
    }
}

interpose! {
    /// symlink(2).
    fn symlink(path: *const c_char, name: *const c_char) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        with_paths(path, name, || unsafe { next(path, name) })
    }
}
