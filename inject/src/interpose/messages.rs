//! Calls that send or receive messages made of several buffers.

use super::buffers::{parts, prepare_parts, slice, with};
use crate::arming::{ForCall, prepare_for_call};
use crate::interpose;
use core::ffi::{c_int, c_uint};

/// # Safety
/// `message` must be null or valid, as sendmsg(2) demands.
pub unsafe fn prepare_message(message: *const libc::msghdr) -> Option<ForCall> {
    // SAFETY: the caller's promise.
    unsafe { slice(message, 1).first().and_then(|message| prepare_parts(message.msg_iov, message.msg_iovlen)) }
}

/// # Safety
/// `messages` must be null or point to `count` messages, as sendmmsg(2) demands.
pub unsafe fn prepare_messages(messages: *const libc::mmsghdr, count: c_uint) -> Option<ForCall> {
    // SAFETY: the caller's promise, for the messages and the list of each.
    let messages = unsafe { slice(messages, count as usize) };
    let of_one = |message: &libc::mmsghdr| {
        // SAFETY: as above.
        parts(unsafe { slice(message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) })
    };
    prepare_for_call(messages.iter().flat_map(of_one))
}

interpose! {
    /// sendmsg(2).
    fn sendmsg(socket: c_int, message: *const libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own message and call.
        with(|| unsafe { prepare_message(message) }, || unsafe { next(socket, message, flags) })
    }
}

interpose! {
    /// recvmsg(2).
    fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own message and call.
        with(|| unsafe { prepare_message(message) }, || unsafe { next(socket, message, flags) })
    }
}

interpose! {
    /// sendmmsg(2).
    fn sendmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own messages and call.
        with(|| unsafe { prepare_messages(messages, count) }, || unsafe { next(socket, messages, count, flags) } as isize) as c_int
    }
}

interpose! {
    /// recvmmsg(2).
    fn recvmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int, timeout: *mut libc::timespec)
        -> c_int; missing -1; |next| {
        let call = || {
            // SAFETY: the program's own call.
            unsafe { next(socket, messages, count, flags, timeout) as isize }
        };
        // SAFETY: the program's own messages.
        with(|| unsafe { prepare_messages(messages, count) }, call) as c_int
    }
}
