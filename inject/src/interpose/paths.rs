//! Calls that look a file up by a path, which may lie in an armed mapping, as may what they fill. Those that open it by a
//! descriptor: `files`.

use crate::by_words;
use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

by_words! {
    /// fopen(3).
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void;
    /// fopen(3) with large file support.
    fn fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void;
    /// stat(2).
    fn stat(path: *const c_char, status: *mut c_void) -> c_int;
    /// stat(2) with large file support.
    fn stat64(path: *const c_char, status: *mut c_void) -> c_int;
    /// lstat(2).
    fn lstat(path: *const c_char, status: *mut c_void) -> c_int;
    /// lstat(2) with large file support.
    fn lstat64(path: *const c_char, status: *mut c_void) -> c_int;
    /// fstatat(2).
    fn fstatat(folder: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int;
    /// fstatat(2) with large file support.
    fn fstatat64(folder: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int;
    /// statx(2).
    fn statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, status: *mut c_void) -> c_int;
    /// stat(2), as programs call it that were linked with glibc before 2.33.
    fn __xstat(version: c_int, path: *const c_char, status: *mut c_void) -> c_int;
    /// The same with large file support.
    fn __xstat64(version: c_int, path: *const c_char, status: *mut c_void) -> c_int;
    /// lstat(2) of such programs.
    fn __lxstat(version: c_int, path: *const c_char, status: *mut c_void) -> c_int;
    /// The same with large file support.
    fn __lxstat64(version: c_int, path: *const c_char, status: *mut c_void) -> c_int;
    /// fstatat(2) of such programs.
    fn __fxstatat(version: c_int, folder: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int;
    /// The same with large file support.
    fn __fxstatat64(version: c_int, folder: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int;
    /// statfs(2).
    fn statfs(path: *const c_char, status: *mut c_void) -> c_int;
    /// statfs(2) under the name that libc's own parts use.
    fn __statfs(path: *const c_char, status: *mut c_void) -> c_int;
    /// statfs(2) with large file support.
    fn statfs64(path: *const c_char, status: *mut c_void) -> c_int;
    /// statvfs(3).
    fn statvfs(path: *const c_char, status: *mut c_void) -> c_int;
    /// statvfs(3) with large file support.
    fn statvfs64(path: *const c_char, status: *mut c_void) -> c_int;
    /// access(2).
    fn access(path: *const c_char, mode: c_int) -> c_int;
    /// faccessat(3).
    fn faccessat(folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int;
    /// opendir(3).
    fn opendir(path: *const c_char) -> *mut c_void;
    /// chdir(2).
    fn chdir(path: *const c_char) -> c_int;
    /// readlink(2).
    fn readlink(path: *const c_char, text: *mut c_char, length: usize) -> isize;
    /// readlinkat(2).
    fn readlinkat(folder: c_int, path: *const c_char, text: *mut c_char, length: usize) -> isize;
    /// realpath(3).
    fn realpath(path: *const c_char, text: *mut c_char) -> *mut c_void;
    /// realpath(3), as programs built with _FORTIFY_SOURCE call it.
    fn __realpath_chk(path: *const c_char, text: *mut c_char, room: usize) -> *mut c_void;
    /// creat(2).
    fn creat(path: *const c_char, mode: c_uint) -> c_int;
    /// creat(2) with large file support.
    fn creat64(path: *const c_char, mode: c_uint) -> c_int;
    /// mkdir(2).
    fn mkdir(path: *const c_char, mode: c_uint) -> c_int;
    /// mkdirat(2).
    fn mkdirat(folder: c_int, path: *const c_char, mode: c_uint) -> c_int;
    /// unlink(2).
    fn unlink(path: *const c_char) -> c_int;
    /// unlinkat(2).
    fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int;
    /// rmdir(2).
    fn rmdir(path: *const c_char) -> c_int;
    /// truncate(2).
    fn truncate(path: *const c_char, length: i64) -> c_int;
    /// truncate(2) with large file support.
    fn truncate64(path: *const c_char, length: i64) -> c_int;
    /// chmod(2).
    fn chmod(path: *const c_char, mode: c_uint) -> c_int;
    /// remove(3).
    fn remove(path: *const c_char) -> c_int;
    /// fchmodat(2).
    fn fchmodat(folder: c_int, path: *const c_char, mode: c_uint, flags: c_int) -> c_int;
    /// chown(2).
    fn chown(path: *const c_char, owner: c_uint, group: c_uint) -> c_int;
    /// lchown(2).
    fn lchown(path: *const c_char, owner: c_uint, group: c_uint) -> c_int;
    /// fchownat(2).
    fn fchownat(folder: c_int, path: *const c_char, owner: c_uint, group: c_uint, flags: c_int) -> c_int;
    /// utime(2).
    fn utime(path: *const c_char, times: *const c_void) -> c_int;
    /// utimes(2).
    fn utimes(path: *const c_char, times: *const c_void) -> c_int;
    /// utimensat(2).
    fn utimensat(folder: c_int, path: *const c_char, times: *const c_void, flags: c_int) -> c_int;
    /// euidaccess(3).
    fn euidaccess(path: *const c_char, mode: c_int) -> c_int;
    /// The same under another name.
    fn eaccess(path: *const c_char, mode: c_int) -> c_int;
    /// readlink(2), as programs built with _FORTIFY_SOURCE call it.
    fn __readlink_chk(path: *const c_char, text: *mut c_char, length: usize, room: usize) -> isize;
    /// readlinkat(2), as they call it.
    fn __readlinkat_chk(folder: c_int, path: *const c_char, text: *mut c_char, length: usize, room: usize) -> isize;
    /// freopen(3).
    fn freopen(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void;
    /// freopen(3) with large file support.
    fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void;
    /// rename(2).
    fn rename(from: *const c_char, to: *const c_char) -> c_int;
    /// renameat(2).
    fn renameat(folder: c_int, from: *const c_char, other: c_int, to: *const c_char) -> c_int;
    /// renameat2(2).
    fn renameat2(folder: c_int, from: *const c_char, other: c_int, to: *const c_char, flags: c_uint) -> c_int;
    /// link(2).
    fn link(path: *const c_char, name: *const c_char) -> c_int;
    /// linkat(2).
    fn linkat(folder: c_int, path: *const c_char, other: c_int, name: *const c_char, flags: c_int) -> c_int;
    /// symlink(2).
    fn symlink(path: *const c_char, name: *const c_char) -> c_int;
    /// symlinkat(2).
    fn symlinkat(path: *const c_char, folder: c_int, name: *const c_char) -> c_int;
    /// chroot(2).
    fn chroot(path: *const c_char) -> c_int;
    /// inotify_add_watch(2).
    fn inotify_add_watch(watcher: c_int, path: *const c_char, mask: c_uint) -> c_int;
    /// mknod(2).
    fn mknod(path: *const c_char, mode: c_uint, device: c_ulong) -> c_int;
    /// mkfifo(3).
    fn mkfifo(path: *const c_char, mode: c_uint) -> c_int;
    /// mkfifoat(3).
    fn mkfifoat(folder: c_int, path: *const c_char, mode: c_uint) -> c_int;
    /// removexattr(2).
    fn removexattr(path: *const c_char, name: *const c_char) -> c_int;
    /// removexattr(2).
    fn lremovexattr(path: *const c_char, name: *const c_char) -> c_int;
    /// setxattr(2).
    fn setxattr(path: *const c_char, name: *const c_char, value: *const c_void, length: usize, flags: c_int) -> c_int;
    /// setxattr(2).
    fn lsetxattr(path: *const c_char, name: *const c_char, value: *const c_void, length: usize, flags: c_int) -> c_int;
    /// getxattr(2).
    fn getxattr(path: *const c_char, name: *const c_char, value: *mut c_void, length: usize) -> isize;
    /// getxattr(2).
    fn lgetxattr(path: *const c_char, name: *const c_char, value: *mut c_void, length: usize) -> isize;
    /// listxattr(2).
    fn listxattr(path: *const c_char, list: *mut c_char, length: usize) -> isize;
    /// listxattr(2).
    fn llistxattr(path: *const c_char, list: *mut c_char, length: usize) -> isize;
    /// fremovexattr(2).
    fn fremovexattr(file: c_int, name: *const c_char) -> c_int;
    /// mknodat(2).
    fn mknodat(folder: c_int, path: *const c_char, mode: c_uint, device: c_ulong) -> c_int;
    /// mknod(2), as programs call it that were linked with glibc before 2.33.
    fn __xmknod(version: c_int, path: *const c_char, mode: c_uint, device: *mut c_void) -> c_int;
    /// mknodat(2) of such programs.
    fn __xmknodat(version: c_int, folder: c_int, path: *const c_char, mode: c_uint, device: *mut c_void) -> c_int;
    /// lchmod(3).
    fn lchmod(path: *const c_char, mode: c_uint) -> c_int;
    /// lutimes(3).
    fn lutimes(path: *const c_char, times: *const c_void) -> c_int;
    /// futimesat(2).
    fn futimesat(folder: c_int, path: *const c_char, times: *const c_void) -> c_int;
    /// pathconf(3).
    fn pathconf(path: *const c_char, name: c_int) -> isize;
    /// ftok(3).
    fn ftok(path: *const c_char, project: c_int) -> c_int;
    /// scandir(3).
    fn scandir(path: *const c_char, entries: *mut c_void, choose: *const c_void, compare: *const c_void) -> c_int;
    /// scandir(3) with large file support.
    fn scandir64(path: *const c_char, entries: *mut c_void, choose: *const c_void, compare: *const c_void) -> c_int;
    /// scandirat(3).
    fn scandirat(folder: c_int, path: *const c_char, entries: *mut c_void, choose: *const c_void, compare: *const c_void) -> c_int;
    /// scandirat(3) with large file support.
    fn scandirat64(folder: c_int, path: *const c_char, entries: *mut c_void, choose: *const c_void, compare: *const c_void) -> c_int;
    /// catopen(3).
    fn catopen(name: *const c_char, flag: c_int) -> isize;
}
