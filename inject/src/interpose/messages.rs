//! Calls that send or receive messages made of several buffers.

use super::buffers::{parts_of, slice, with};
use crate::interpose;
use core::ffi::{c_int, c_uint};

/// Address and length of each buffer of a message.
///
/// # Safety
/// `message` must be null or valid, as sendmsg(2) demands.
#[inline(always)]
pub unsafe fn parts_of_message<'a>(message: *const libc::msghdr) -> impl Iterator<Item = (usize, usize)> + Clone + 'a {
    // SAFETY: the caller's promise, for the message and its list.
    unsafe {
        let list = slice(message, 1).first().map(|message| (message.msg_iov, message.msg_iovlen));
        list.map_or_else(|| parts_of(core::ptr::null(), 0), |(list, count)| parts_of(list, count))
    }
}

/// The same of several.
///
/// # Safety
/// `messages` must be null or point to `count` messages, as sendmmsg(2) demands.
pub unsafe fn parts_of_messages<'a>(
    messages: *const libc::mmsghdr,
    count: c_uint,
) -> impl Iterator<Item = (usize, usize)> + Clone + 'a {
    // SAFETY: the caller's promise, for the messages and the list of each.
    unsafe {
        slice(messages, count as usize).iter().flat_map(|one| parts_of(one.msg_hdr.msg_iov, one.msg_hdr.msg_iovlen))
    }
}

interpose! {
    /// sendmsg(2).
    fn sendmsg(socket: c_int, message: *const libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own message and call.
        with(move || unsafe { parts_of_message(message) }, move || unsafe { next(socket, message, flags) })
    }
}

interpose! {
    /// recvmsg(2).
    fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own message and call.
        with(move || unsafe { parts_of_message(message) }, move || unsafe { next(socket, message, flags) })
    }
}

interpose! {
    /// sendmmsg(2).
    fn sendmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own messages and call.
        let call = move || unsafe { next(socket, messages, count, flags) } as isize;
        // SAFETY: as above.
        with(move || unsafe { parts_of_messages(messages, count) }, call) as c_int
    }
}

interpose! {
    /// recvmmsg(2).
    fn recvmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int, timeout: *mut libc::timespec)
        -> c_int; missing -1; |next| {
        // SAFETY: the program's own messages and call.
        let call = move || unsafe { next(socket, messages, count, flags, timeout) } as isize;
        // SAFETY: as above.
        with(move || unsafe { parts_of_messages(messages, count) }, call) as c_int
    }
}
