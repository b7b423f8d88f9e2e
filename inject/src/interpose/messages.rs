//! Calls that send or receive messages made of several buffers.

use super::buffers::with;
use crate::buffers::Buffers;
use crate::interpose;
use core::ffi::{c_int, c_uint};

interpose! {
    /// sendmsg(2).
    fn sendmsg(socket: c_int, message: *const libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own message and call.
        unsafe { with(Buffers::message(message), move || next(socket, message, flags)) }
    }
}

interpose! {
    /// recvmsg(2).
    fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program's own message and call.
        unsafe { with(Buffers::message(message), move || next(socket, message, flags)) }
    }
}

interpose! {
    /// sendmmsg(2).
    fn sendmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own messages and call.
        let call = move || unsafe { next(socket, messages, count, flags) } as isize;
        // SAFETY: as above.
        with(unsafe { Buffers::sent_messages(messages, count) }, call) as c_int
    }
}

interpose! {
    /// recvmmsg(2).
    fn recvmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int, timeout: *mut libc::timespec)
        -> c_int; missing -1; |next| {
        // SAFETY: the program's own messages and call.
        let call = move || unsafe { next(socket, messages, count, flags, timeout) } as isize;
        // SAFETY: as above.
        with(unsafe { Buffers::messages(messages, count) }, call) as c_int
    }
}
