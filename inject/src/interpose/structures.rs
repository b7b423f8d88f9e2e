//! Calls that read or fill something short, which may lie in an armed mapping, and no path.

use crate::by_words;
use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

by_words! {
    /// fstat(2).
    fn fstat(file: c_int, status: *mut c_void) -> c_int;
    /// fstat(2) with large file support.
    fn fstat64(file: c_int, status: *mut c_void) -> c_int;
    /// fstat(2), as programs call it that were linked with glibc before 2.33.
    fn __fxstat(version: c_int, file: c_int, status: *mut c_void) -> c_int;
    /// The same with large file support.
    fn __fxstat64(version: c_int, file: c_int, status: *mut c_void) -> c_int;
    /// getcwd(3).
    fn getcwd(text: *mut c_char, length: usize) -> *mut c_void;
    /// getcwd(3), as programs built with _FORTIFY_SOURCE call it.
    fn __getcwd_chk(text: *mut c_char, length: usize, room: usize) -> *mut c_void;
    /// ioctl(2). What does not come with it is left unread.
    fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    /// fcntl(2). Of its last word the same is true.
    fn fcntl(file: c_int, command: c_int, argument: *mut c_void) -> c_int;
    /// fcntl(2) with large file support.
    fn fcntl64(file: c_int, command: c_int, argument: *mut c_void) -> c_int;
    /// getdents64(2).
    fn getdents64(folder: c_int, entries: *mut c_void, length: usize) -> isize;
    /// fsetxattr(2).
    fn fsetxattr(file: c_int, name: *const c_char, value: *const c_void, length: usize, flags: c_int) -> c_int;
    /// fgetxattr(2).
    fn fgetxattr(file: c_int, name: *const c_char, value: *mut c_void, length: usize) -> isize;
    /// flistxattr(2).
    fn flistxattr(file: c_int, list: *mut c_char, length: usize) -> isize;
    /// fstatfs(2).
    fn fstatfs(file: c_int, status: *mut c_void) -> c_int;
    /// fstatfs(2) with large file support.
    fn fstatfs64(file: c_int, status: *mut c_void) -> c_int;
    /// fstatvfs(3).
    fn fstatvfs(file: c_int, status: *mut c_void) -> c_int;
    /// fstatvfs(3) with large file support.
    fn fstatvfs64(file: c_int, status: *mut c_void) -> c_int;
    /// futimens(3).
    fn futimens(file: c_int, times: *const c_void) -> c_int;
    /// sendfile(2).
    fn sendfile(to: c_int, from: c_int, offset: *mut c_long, count: usize) -> isize;
    /// sendfile(2) with large file support.
    fn sendfile64(to: c_int, from: c_int, offset: *mut c_long, count: usize) -> isize;
    /// memfd_create(2).
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    /// uname(2).
    fn uname(names: *mut c_void) -> c_int;
    /// wait(2).
    fn wait(status: *mut c_int) -> c_int;
    /// wait3(2).
    fn wait3(status: *mut c_int, options: c_int, usage: *mut c_void) -> c_int;
    /// getitimer(2).
    fn getitimer(timer: c_uint, value: *mut c_void) -> c_int;
    /// setitimer(2).
    fn setitimer(timer: c_uint, new: *const c_void, old: *mut c_void) -> c_int;
    /// getgroups(2).
    fn getgroups(count: c_int, groups: *mut c_uint) -> c_int;
    /// setgroups(2).
    fn setgroups(count: usize, groups: *const c_uint) -> c_int;
    /// semop(2).
    fn semop(set: c_int, operations: *mut c_void, count: usize) -> c_int;
    /// semtimedop(2).
    fn semtimedop(set: c_int, operations: *mut c_void, count: usize, timeout: *const c_void) -> c_int;
    /// waitpid(2).
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    /// wait4(2).
    fn wait4(process: c_int, status: *mut c_int, options: c_int, usage: *mut c_void) -> c_int;
    /// waitid(2).
    fn waitid(kind: c_uint, id: c_uint, what: *mut c_void, options: c_int) -> c_int;
    /// sigwaitinfo(2): what it has taken by then would be lost.
    fn sigwaitinfo(signals: *const c_void, what: *mut c_void) -> c_int;
    /// sigtimedwait(2).
    fn sigtimedwait(signals: *const c_void, what: *mut c_void, timeout: *const c_void) -> c_int;
    /// nanosleep(2).
    fn nanosleep(time: *const c_void, rest: *mut c_void) -> c_int;
    /// clock_nanosleep(2). It answers with an error number.
    fn clock_nanosleep(clock: c_int, flags: c_int, time: *const c_void, rest: *mut c_void) -> c_int;
    /// timerfd_settime(2).
    fn timerfd_settime(timer: c_int, flags: c_int, new: *const c_void, old: *mut c_void) -> c_int;
    /// pipe(2).
    fn pipe(ends: *mut c_int) -> c_int;
    /// pipe2(2).
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int;
    /// select(2).
    fn select(count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, timeout: *mut c_void) -> c_int;
    /// epoll_ctl(2).
    fn epoll_ctl(epoll: c_int, operation: c_int, file: c_int, event: *mut c_void) -> c_int;
    /// epoll_wait(2).
    fn epoll_wait(epoll: c_int, events: *mut c_void, count: c_int, timeout: c_int) -> c_int;
    /// socketpair(2).
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
    /// accept(2).
    fn accept(socket: c_int, address: *mut c_void, length: *mut c_uint) -> c_int;
    /// accept4(2).
    fn accept4(socket: c_int, address: *mut c_void, length: *mut c_uint, flags: c_int) -> c_int;
    /// getsockname(2).
    fn getsockname(socket: c_int, address: *mut c_void, length: *mut c_uint) -> c_int;
    /// getpeername(2).
    fn getpeername(socket: c_int, address: *mut c_void, length: *mut c_uint) -> c_int;
    /// poll(2). Of 8,192 files.
    fn poll(files: *mut c_void, count: c_ulong, timeout: c_int) -> c_int;
    /// poll(2), as programs built with _FORTIFY_SOURCE call it.
    fn __poll_chk(files: *mut c_void, count: c_ulong, timeout: c_int, room: usize) -> c_int;
    /// connect(2).
    fn connect(socket: c_int, address: *const c_void, length: c_uint) -> c_int;
    /// bind(2).
    fn bind(socket: c_int, address: *const c_void, length: c_uint) -> c_int;
    /// setsockopt(2).
    fn setsockopt(socket: c_int, level: c_int, name: c_int, value: *const c_void, length: c_uint) -> c_int;
    /// getsockopt(2).
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut c_uint) -> c_int;
    /// getrlimit(2).
    fn getrlimit(resource: c_uint, limit: *mut c_void) -> c_int;
    /// getrlimit(2) with large file support.
    fn getrlimit64(resource: c_uint, limit: *mut c_void) -> c_int;
    /// getrusage(2).
    fn getrusage(whose: c_int, usage: *mut c_void) -> c_int;
    /// sysinfo(2).
    fn sysinfo(told: *mut c_void) -> c_int;
    /// eventfd_read(3).
    fn eventfd_read(file: c_int, value: *mut c_void) -> c_int;
    /// timerfd_gettime(2).
    fn timerfd_gettime(timer: c_int, value: *mut c_void) -> c_int;
    /// sched_getaffinity(2).
    fn sched_getaffinity(thread: c_int, size: usize, processors: *mut c_void) -> c_int;
    /// sched_setaffinity(2).
    fn sched_setaffinity(thread: c_int, size: usize, processors: *const c_void) -> c_int;
    /// pthread_getaffinity_np(3). It answers with an error number, as does the next.
    fn pthread_getaffinity_np(thread: usize, size: usize, processors: *mut c_void) -> c_int;
    /// pthread_setaffinity_np(3).
    fn pthread_setaffinity_np(thread: usize, size: usize, processors: *const c_void) -> c_int;
    /// sched_getparam(2).
    fn sched_getparam(thread: c_int, priority: *mut c_void) -> c_int;
    /// sched_setparam(2).
    fn sched_setparam(thread: c_int, priority: *const c_void) -> c_int;
    /// sched_setscheduler(2).
    fn sched_setscheduler(thread: c_int, policy: c_int, priority: *const c_void) -> c_int;
    /// getresuid(2).
    fn getresuid(real: *mut c_uint, effective: *mut c_uint, saved: *mut c_uint) -> c_int;
    /// getresgid(2).
    fn getresgid(real: *mut c_uint, effective: *mut c_uint, saved: *mut c_uint) -> c_int;
    /// clock_getres(2).
    fn clock_getres(clock: c_int, resolution: *mut c_void) -> c_int;
    /// times(2). Its answer is a number of 64 bits that may end as -1 does: as a pointer's, all of it counts.
    fn times(times: *mut c_void) -> *mut c_void;
    /// timer_settime(2).
    fn timer_settime(timer: usize, flags: c_int, new: *const c_void, old: *mut c_void) -> c_int;
    /// timer_gettime(2).
    fn timer_gettime(timer: usize, value: *mut c_void) -> c_int;
    /// copy_file_range(2).
    fn copy_file_range(from: c_int, at: *mut i64, to: c_int, place: *mut i64, length: usize, flags: c_uint) -> isize;
    /// splice(2).
    fn splice(from: c_int, at: *mut i64, to: c_int, place: *mut i64, length: usize, flags: c_uint) -> isize;
    /// signalfd(2).
    fn signalfd(file: c_int, signals: *const c_void, flags: c_int) -> c_int;
    /// sigpending(2).
    fn sigpending(signals: *mut c_void) -> c_int;
    /// sigwait(3). It answers with an error number.
    fn sigwait(signals: *const c_void, signal: *mut c_int) -> c_int;
    /// shmctl(2).
    fn shmctl(segment: c_int, operation: c_int, told: *mut c_void) -> c_int;
    /// msgctl(2).
    fn msgctl(queue: c_int, operation: c_int, told: *mut c_void) -> c_int;
    /// semctl(2). What does not come with it is left unread.
    fn semctl(set: c_int, number: c_int, operation: c_int, argument: *mut c_void) -> c_int;
    /// mq_getattr(3).
    fn mq_getattr(queue: c_int, told: *mut c_void) -> c_int;
    /// sched_rr_get_interval(2).
    fn sched_rr_get_interval(thread: c_int, interval: *mut c_void) -> c_int;
    /// pthread_setschedparam(3). It answers with an error number, as does the next.
    fn pthread_setschedparam(thread: usize, policy: c_int, priority: *const c_void) -> c_int;
    /// pthread_getname_np(3).
    fn pthread_getname_np(thread: usize, name: *mut c_char, length: usize) -> c_int;
    /// connect(2) under the name that libc's own parts use, as all below.
    fn __connect(socket: c_int, address: *const c_void, length: c_uint) -> c_int;
    /// fcntl(2).
    fn __fcntl(file: c_int, command: c_int, argument: *mut c_void) -> c_int;
    /// pipe(2).
    fn __pipe(ends: *mut c_int) -> c_int;
    /// poll(2).
    fn __poll(files: *mut c_void, count: c_ulong, timeout: c_int) -> c_int;
    /// select(2).
    fn __select(count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, timeout: *mut c_void) -> c_int;
    /// sched_getparam(2).
    fn __sched_getparam(thread: c_int, priority: *mut c_void) -> c_int;
    /// sched_setscheduler(2).
    fn __sched_setscheduler(thread: c_int, policy: c_int, priority: *const c_void) -> c_int;
}
