//! Calls that send or receive messages with an address, or made of several buffers.

use super::buffers::{with, with_buffer};
use crate::arming::{ForCall, prepare_for_call};
use crate::buffers::Buffers;
use crate::interpose;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null;

/// Has what an address lies in, or goes to, out of the way while this exists. Its length may be told where there is no memory.
#[inline(never)] // One copy is enough for all.
fn hold(address: *const c_void, length: *const c_uint) -> Option<ForCall> {
    let words = [address as usize, length as usize, 0, 0, 0, 0];
    // SAFETY: they are there until this returns.
    let buffers = unsafe { Buffers::words(&words) };
    if buffers.may_be_armed() { prepare_for_call(&buffers) } else { None }
}

interpose! {
    /// sendto(2).
    fn sendto(socket: c_int, buffer: *const c_void, length: usize, flags: c_int, to: *const c_void, to_length: c_uint) -> isize;
    missing -1; |next| {
        let _held = hold(to, null());
        // SAFETY: the program's own call.
        with_buffer(buffer, length, move || unsafe { next(socket, buffer, length, flags, to, to_length) })
    }
}

interpose! {
    /// recvfrom(2).
    fn recvfrom(socket: c_int, buffer: *mut c_void, length: usize, flags: c_int, from: *mut c_void, from_length: *mut c_uint) -> isize;
    missing -1; |next| {
        let _held = hold(from, from_length);
        // SAFETY: the program's own call.
        with_buffer(buffer, length, move || unsafe { next(socket, buffer, length, flags, from, from_length) })
    }
}

interpose! {
    /// recvfrom(2) with a check of the buffer's size (`_FORTIFY_SOURCE`).
    fn __recvfrom_chk(socket: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int, from: *mut c_void,
        from_length: *mut c_uint) -> isize; missing -1; |next| {
        let _held = hold(from, from_length);
        // SAFETY: the program's own call.
        with_buffer(buffer, length, move || unsafe { next(socket, buffer, length, size, flags, from, from_length) })
    }
}

interpose! {
    /// sendmsg(2).
    fn sendmsg(socket: c_int, message: *const libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own call.
        with(Buffers::message(message), move || unsafe { next(socket, message, flags) })
    }
}

interpose! {
    /// recvmsg(2).
    fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own call.
        with(Buffers::message(message), move || unsafe { next(socket, message, flags) })
    }
}

interpose! {
    /// sendmmsg(2).
    fn sendmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        let call = move || unsafe { next(socket, messages, count, flags) } as isize;
        with(Buffers::sent_messages(messages, count), call) as c_int
    }
}

interpose! {
    /// recvmmsg(2).
    fn recvmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int, timeout: *mut libc::timespec)
        -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        let call = move || unsafe { next(socket, messages, count, flags, timeout) } as isize;
        with(Buffers::messages(messages, count), call) as c_int
    }
}
