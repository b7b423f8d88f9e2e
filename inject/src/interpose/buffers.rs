//! Calls by which the kernel, or libc in the kernel's stead, reads or fills the program's buffers.
//!
//! The kernel raises no SIGSEGV for its own accesses: at a checkpoint the call fails with EFAULT or stops short. So a
//! buffer in an armed mapping has its checkpoints hit beforehand. Should another thread close one again in between,
//! the call is made anew: EFAULT means that nothing was transferred (write(2)).

use crate::arming::prepare_for_call;
use crate::interpose;
use core::ffi::{c_char, c_int, c_long, c_void};

/// Times that a call is made anew.
const TRIES: u32 = 8;

/// Makes `call` with the checkpoints of its buffers out of the way.
fn with_buffer(address: *const c_void, length: usize, call: impl Fn() -> isize) -> isize {
    with(|| prepare_for_call(address as usize, length), call)
}

fn with(prepare: impl Fn() -> bool, call: impl Fn() -> isize) -> isize {
    let mut left = TRIES;
    loop {
        let armed = prepare();
        let result = call();
        left -= 1;
        // SAFETY: the calling thread's own errno (errno(3)).
        if result != -1 || !armed || left == 0 || unsafe { *libc::__errno_location() } != libc::EFAULT {
            return result;
        }
    }
}

/// # Safety
/// `parts` must be null or point to `count` vectors, as the call that it is for demands.
unsafe fn prepare_parts(parts: *const libc::iovec, count: usize) -> bool {
    if parts.is_null() || crate::registry::is_empty() {
        return false;
    }
    // SAFETY: the caller's promise. IOV_MAX bounds what the kernel takes (readv(2)).
    let parts = unsafe { core::slice::from_raw_parts(parts, count.min(1024)) };
    parts.iter().fold(false, |armed, part| prepare_for_call(part.iov_base as usize, part.iov_len) | armed)
}

/// Calls with one buffer and its length.
macro_rules! one_buffer {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty,)* ; $buffer:ident: $buffer_type:ty, $length:ident ; $(, $after:ident: $after_type:ty)*);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($before: $before_type,)* $buffer: $buffer_type, $length: usize $(, $after: $after_type)*) -> isize; missing -1; |next| {
                // SAFETY: the program's own call.
                with_buffer($buffer.cast(), $length, || unsafe { next($($before,)* $buffer, $length $(, $after)*) })
            }
        }
    )*};
}

one_buffer! {
    /// write(2).
    fn write(file: c_int, ; buffer: *const c_void, length ;);
    /// pwrite(2).
    fn pwrite(file: c_int, ; buffer: *const c_void, length ;, offset: c_long);
    /// pwrite(2).
    fn pwrite64(file: c_int, ; buffer: *const c_void, length ;, offset: c_long);
    /// send(2).
    fn send(socket: c_int, ; buffer: *const c_void, length ;, flags: c_int);
    /// sendto(2).
    fn sendto(socket: c_int, ; buffer: *const c_void, length ;, flags: c_int, to: *const c_void, to_length: u32);
    /// read(2).
    fn read(file: c_int, ; buffer: *mut c_void, length ;);
    /// pread(2).
    fn pread(file: c_int, ; buffer: *mut c_void, length ;, offset: c_long);
    /// pread(2).
    fn pread64(file: c_int, ; buffer: *mut c_void, length ;, offset: c_long);
    /// recv(2).
    fn recv(socket: c_int, ; buffer: *mut c_void, length ;, flags: c_int);
    /// recvfrom(2).
    fn recvfrom(socket: c_int, ; buffer: *mut c_void, length ;, flags: c_int, from: *mut c_void, from_length: *mut u32);
}

/// Calls with a list of buffers.
macro_rules! buffer_list {
    ($($(#[$doc:meta])* fn $name:ident($($after:ident: $after_type:ty),*);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(file: c_int, parts: *const libc::iovec, count: c_int $(, $after: $after_type)*) -> isize; missing -1; |next| {
                // SAFETY: the program's own call and its own list.
                with(|| unsafe { prepare_parts(parts, count.max(0) as usize) }, || unsafe { next(file, parts, count $(, $after)*) })
            }
        }
    )*};
}

buffer_list! {
    /// writev(2).
    fn writev();
    /// pwritev(2).
    fn pwritev(offset: c_long);
    /// pwritev(2).
    fn pwritev64(offset: c_long);
    /// pwritev2(2).
    fn pwritev2(offset: c_long, flags: c_int);
    /// readv(2).
    fn readv();
    /// preadv(2).
    fn preadv(offset: c_long);
    /// preadv(2).
    fn preadv64(offset: c_long);
    /// preadv2(2).
    fn preadv2(offset: c_long, flags: c_int);
}

interpose! {
    /// sendmsg(2).
    fn sendmsg(socket: c_int, message: *const libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program passes null or a valid message.
        let prepare = || unsafe { message.as_ref().is_some_and(|m| prepare_parts(m.msg_iov, m.msg_iovlen)) };
        // SAFETY: the program's own call.
        with(prepare, || unsafe { next(socket, message, flags) })
    }
}

interpose! {
    /// recvmsg(2).
    fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize; missing -1; |next| {
        // SAFETY: the program passes null or a valid message.
        let prepare = || unsafe { message.as_ref().is_some_and(|m| prepare_parts(m.msg_iov, m.msg_iovlen)) };
        // SAFETY: the program's own call.
        with(prepare, || unsafe { next(socket, message, flags) })
    }
}

/// stdio writes large buffers by a system call of its own that no interposer sees.
macro_rules! stdio {
    ($($(#[$doc:meta])* fn $name:ident($buffer:ident: $buffer_type:ty);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($buffer: $buffer_type, size: usize, count: usize, stream: *mut c_void) -> usize; missing 0; |next| {
                prepare_for_call($buffer as usize, size.saturating_mul(count));
                // SAFETY: the program's own call.
                unsafe { next($buffer, size, count, stream) }
            }
        }
    )*};
}

stdio! {
    /// fwrite(3).
    fn fwrite(buffer: *const c_void);
    /// fwrite_unlocked(3).
    fn fwrite_unlocked(buffer: *const c_void);
    /// fread(3).
    fn fread(buffer: *mut c_void);
    /// fread_unlocked(3).
    fn fread_unlocked(buffer: *mut c_void);
}

/// Hits what a C string holds of checkpoints.
///
/// # Safety
/// `text` must be null or a C string.
unsafe fn prepare_text(text: *const c_char) {
    if !crate::registry::is_empty() && !text.is_null() {
        // SAFETY: the caller's promise. Measuring it touches every page of it.
        prepare_for_call(text as usize, unsafe { libc::strlen(text) });
    }
}

interpose! {
    /// puts(3).
    fn puts(text: *const c_char) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call and its own string.
        unsafe {
            prepare_text(text);
            next(text)
        }
    }
}

interpose! {
    /// fputs_unlocked(3).
    fn fputs_unlocked(text: *const c_char, stream: *mut c_void) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call and its own string.
        unsafe {
            prepare_text(text);
            next(text, stream)
        }
    }
}

interpose! {
    /// fputs(3).
    fn fputs(text: *const c_char, stream: *mut c_void) -> c_int; missing -1; |next| {
        // SAFETY: the program's own string.
        unsafe { prepare_text(text) };
        // SAFETY: the program's own call.
        unsafe { next(text, stream) }
    }
}
