//! Calls by which the program says how it will read a file.

use super::memory::preserving_errno;
use crate::{advice, interpose};
use core::ffi::{c_int, c_long};
use precache_contract::ring::Advice;

/// posix_fadvise(2): an error number, or 0.
pub fn advise_file(file: c_int, offset: c_long, length: c_long, number: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    if let (0, Some(advice)) = (result, advice::of_file(number)) {
        preserving_errno(|| advice::about_file(advice, file, offset, length));
    }
    result
}

/// readahead(2).
pub fn read_ahead(file: c_int, offset: c_long, count: usize, call: impl FnOnce() -> isize) -> isize {
    let result = call();
    if result == 0 && count > 0 {
        preserving_errno(|| advice::about_file(Advice::WillNeed, file, offset, count as c_long));
    }
    result
}

interpose! {
    /// posix_fadvise(2).
    fn posix_fadvise(file: c_int, offset: c_long, length: c_long, number: c_int) -> c_int; missing libc::ENOSYS; |next| {
        // SAFETY: the program's own call.
        advise_file(file, offset, length, number, || unsafe { next(file, offset, length, number) })
    }
}

interpose! {
    /// posix_fadvise(2) with large file support.
    fn posix_fadvise64(file: c_int, offset: c_long, length: c_long, number: c_int) -> c_int; missing libc::ENOSYS; |next| {
        // SAFETY: the program's own call.
        advise_file(file, offset, length, number, || unsafe { next(file, offset, length, number) })
    }
}

interpose! {
    /// readahead(2).
    fn readahead(file: c_int, offset: c_long, count: usize) -> isize; missing -1; |next| {
        // SAFETY: the program's own call.
        read_ahead(file, offset, count, || unsafe { next(file, offset, count) })
    }
}
