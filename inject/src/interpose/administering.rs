//! Calls by which a machine is administered, and others that few programs make: what they are given may lie in an armed mapping.

use super::buffers::with_buffer;
use crate::{by_words, interpose};
use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use precache_contract::PAGE;

by_words! {
    /// mount(2).
    fn mount(source: *const c_char, place: *const c_char, kind: *const c_char, flags: c_ulong, data: *const c_void) -> c_int;
    /// umount(2).
    fn umount(place: *const c_char) -> c_int;
    /// umount2(2).
    fn umount2(place: *const c_char, flags: c_int) -> c_int;
    /// pivot_root(2).
    fn pivot_root(new: *const c_char, old: *const c_char) -> c_int;
    /// swapon(2).
    fn swapon(path: *const c_char, flags: c_int) -> c_int;
    /// swapoff(2).
    fn swapoff(path: *const c_char) -> c_int;
    /// acct(2).
    fn acct(path: *const c_char) -> c_int;
    /// quotactl(2).
    fn quotactl(command: c_int, device: *const c_char, id: c_int, told: *mut c_void) -> c_int;
    /// sethostname(2).
    fn sethostname(name: *const c_char, length: usize) -> c_int;
    /// setdomainname(2).
    fn setdomainname(name: *const c_char, length: usize) -> c_int;
    /// klogctl(3).
    fn klogctl(operation: c_int, text: *mut c_char, length: c_int) -> c_int;
    /// init_module(2).
    fn init_module(module: *const c_void, length: c_ulong, parameters: *const c_char) -> c_int;
    /// delete_module(2).
    fn delete_module(name: *const c_char, flags: c_uint) -> c_int;
    /// fanotify_mark(2).
    fn fanotify_mark(group: c_int, flags: c_uint, events: u64, folder: c_int, path: *const c_char) -> c_int;
    /// name_to_handle_at(2).
    fn name_to_handle_at(folder: c_int, path: *const c_char, handle: *mut c_void, mount: *mut c_int, flags: c_int) -> c_int;
    /// open_by_handle_at(2).
    fn open_by_handle_at(mount: c_int, handle: *mut c_void, flags: c_int) -> c_int;
    /// capget(2).
    fn capget(whose: *mut c_void, capabilities: *mut c_void) -> c_int;
    /// capset(2).
    fn capset(whose: *mut c_void, capabilities: *const c_void) -> c_int;
    /// adjtimex(2).
    fn adjtimex(clock: *mut c_void) -> c_int;
    /// ntp_adjtime(3).
    fn ntp_adjtime(clock: *mut c_void) -> c_int;
    /// clock_adjtime(2).
    fn clock_adjtime(clock: c_int, change: *mut c_void) -> c_int;
    /// clock_settime(2).
    fn clock_settime(clock: c_int, time: *const c_void) -> c_int;
    /// clock_gettime(2): of a clock that counts a processor's time the kernel writes it.
    fn clock_gettime(clock: c_int, time: *mut c_void) -> c_int;
    /// getcpu(2).
    fn getcpu(processor: *mut c_uint, node: *mut c_uint) -> c_int;
    /// mq_open(3). What does not come with it is left unread.
    fn mq_open(name: *const c_char, flags: c_int, mode: c_uint, attributes: *const c_void) -> c_int;
    /// mq_open(3) without a mode, with a check that none is needed (`_FORTIFY_SOURCE`).
    fn __mq_open_2(name: *const c_char, flags: c_int) -> c_int;
    /// mq_unlink(3).
    fn mq_unlink(name: *const c_char) -> c_int;
    /// mq_setattr(3).
    fn mq_setattr(queue: c_int, new: *const c_void, old: *mut c_void) -> c_int;
    /// mq_notify(3).
    fn mq_notify(queue: c_int, how: *const c_void) -> c_int;
    /// pthread_setname_np(3). It answers with an error number.
    fn pthread_setname_np(thread: usize, name: *const c_char) -> c_int;
    /// ttyname_r(3). It answers with an error number.
    fn ttyname_r(file: c_int, text: *mut c_char, length: usize) -> c_int;
    /// ttyname_r(3), as programs built with _FORTIFY_SOURCE call it.
    fn __ttyname_r_chk(file: c_int, text: *mut c_char, length: usize, room: usize) -> c_int;
    /// getdirentries(3).
    fn getdirentries(folder: c_int, entries: *mut c_char, length: usize, place: *mut c_long) -> isize;
    /// getdirentries(3) with large file support.
    fn getdirentries64(folder: c_int, entries: *mut c_char, length: usize, place: *mut c_long) -> isize;
    /// arch_prctl(2).
    fn arch_prctl(operation: c_int, told: *mut c_void) -> c_int;
    /// arch_prctl(2) under the name that libc's own parts use.
    fn __arch_prctl(operation: c_int, told: *mut c_void) -> c_int;
    /// modify_ldt(2).
    fn modify_ldt(operation: c_int, entries: *mut c_void, length: c_ulong) -> c_int;
    /// fsopen(2), which glibc has had since 2.36, as all below: where it has not, a program may take these for its own.
    fn fsopen(kind: *const c_char, flags: c_uint) -> c_int;
    /// fspick(2).
    fn fspick(folder: c_int, path: *const c_char, flags: c_uint) -> c_int;
    /// fsconfig(2).
    fn fsconfig(context: c_int, command: c_uint, key: *const c_char, value: *const c_void, number: c_int) -> c_int;
    /// move_mount(2).
    fn move_mount(from: c_int, path: *const c_char, to: c_int, place: *const c_char, flags: c_uint) -> c_int;
    /// mount_setattr(2).
    fn mount_setattr(folder: c_int, path: *const c_char, flags: c_uint, wanted: *mut c_void, length: usize) -> c_int;
    /// open_tree(2).
    fn open_tree(folder: c_int, path: *const c_char, flags: c_uint) -> c_int;
    /// pidfd_send_signal(2).
    fn pidfd_send_signal(process: c_int, signal: c_int, what: *const c_void, flags: c_uint) -> c_int;
}

interpose! {
    /// mincore(2). What it asks about is not touched: a byte for each page of it is filled.
    fn mincore(start: *mut c_void, length: usize, told: *mut u8) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        let call = move || unsafe { next(start, length, told) } as isize;
        with_buffer(told.cast(), length.div_ceil(PAGE as usize), call) as c_int
    }
}
