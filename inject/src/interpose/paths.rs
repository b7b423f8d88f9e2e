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
}
