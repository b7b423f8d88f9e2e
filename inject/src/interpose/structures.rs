//! Calls that read or fill something short, which may lie in an armed mapping, and no path.

use crate::by_words;
use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use core::ptr::null_mut;

by_words! {
    /// system(3).
    fn system(command: *const c_char) -> c_int, missing -1;
    /// fstat(2).
    fn fstat(file: c_int, status: *mut c_void) -> c_int, missing -1;
    /// fstat(2) with large file support.
    fn fstat64(file: c_int, status: *mut c_void) -> c_int, missing -1;
    /// fstat(2), as programs call it that were linked with glibc before 2.33.
    fn __fxstat(version: c_int, file: c_int, status: *mut c_void) -> c_int, missing -1;
    /// The same with large file support.
    fn __fxstat64(version: c_int, file: c_int, status: *mut c_void) -> c_int, missing -1;
    /// getcwd(3).
    fn getcwd(text: *mut c_char, length: usize) -> *mut c_void, missing null_mut();
    /// ioctl(2). What does not come with it is left unread.
    fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int, missing -1;
    /// getdents64(2).
    fn getdents64(folder: c_int, entries: *mut c_void, length: usize) -> isize, missing -1;
    /// fsetxattr(2).
    fn fsetxattr(file: c_int, name: *const c_char, value: *const c_void, length: usize, flags: c_int) -> c_int, missing -1;
    /// fgetxattr(2).
    fn fgetxattr(file: c_int, name: *const c_char, value: *mut c_void, length: usize) -> isize, missing -1;
    /// flistxattr(2).
    fn flistxattr(file: c_int, list: *mut c_char, length: usize) -> isize, missing -1;
    /// poll(2). Of 8,192 files.
    fn poll(files: *mut c_void, count: c_ulong, timeout: c_int) -> c_int, missing -1;
    /// connect(2).
    fn connect(socket: c_int, address: *const c_void, length: c_uint) -> c_int, missing -1;
    /// bind(2).
    fn bind(socket: c_int, address: *const c_void, length: c_uint) -> c_int, missing -1;
    /// setsockopt(2).
    fn setsockopt(socket: c_int, level: c_int, name: c_int, value: *const c_void, length: c_uint) -> c_int, missing -1;
    /// getsockopt(2).
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut c_uint) -> c_int, missing -1;
}
