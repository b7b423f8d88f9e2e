//! Calls by which the kernel reads or fills the program's buffers.
//!
//! The kernel raises no SIGSEGV for its own accesses: at a checkpoint the call fails with EFAULT or stops short. So a
//! buffer in an armed mapping has its checkpoints hit beforehand, and is pinned for as long as the call lasts. Nothing
//! is transferred twice, for nothing fails half-way.

use super::memory::preserving_errno;
use super::words::Call;
use crate::arming::{prepare_again, prepare_for_call};
use crate::buffers::{Buffers, Words};
use crate::doing::Doing;
use crate::in_use::are_calls_watched;
use crate::next::Next;
use crate::{interpose, next_of, registry, sys};
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem;
use core::ptr::NonNull;

/// Times that a call is made anew.
const TRIES: u32 = 8;

/// Makes `call` with the checkpoints of its buffers out of the way; they are pinned until it has returned. Where none of
/// them is armed, it is left to the compiler as a jump: a return that follows a system call is mispredicted on some
/// processors, and takes as long as all else here. Then nobody sees what the call returns, nor need anybody, as long as no
/// file is mapped over what it is at work on (`in_use`).
#[inline(always)]
pub fn with(buffers: Buffers, call: impl Fn() -> isize + Copy) -> isize {
    if !buffers.may_be_armed() && !are_calls_watched() {
        return call();
    }
    // Copies: what is reached through a pointer lies in memory, and nothing should where nothing is armed.
    let (buffers, call) = (buffers, move |()| call());
    watch(&buffers, Doing::by(&call))
}

/// Whether a call failed with EFAULT.
#[inline(always)]
pub fn is_bad_address(result: isize) -> bool {
    // SAFETY: the calling thread's own errno (errno(3)).
    result == -1 && unsafe { *libc::__errno_location() } == libc::EFAULT
}

/// Makes `call` as [`with`], with what its words point to and these buffers out of the way.
#[inline(never)] // One copy is enough for all calls.
pub fn with_both(words: &Words, buffers: Buffers, call: Doing<(), isize>) -> isize {
    // SAFETY: they are there until this returns.
    with(unsafe { Buffers::words(words) }, || watch(&buffers, call))
}

/// Makes a call whose buffers are armed, or may be while it lasts: another thread, or a signal handler in the midst of it,
/// may map a file over one.
#[cold]
#[inline(never)] // One copy is enough for all calls.
fn watch(buffers: &Buffers, call: Doing<(), isize>) -> isize {
    let mut before = registry::changes();
    let mut ready = prepare_for_call(buffers);
    let mut left = TRIES;
    loop {
        let result = call.with(());
        let changes = registry::changes();
        left = if cfg!(feature = "sabotage-efault-not-retried") { 0 } else { left - 1 };
        // Where nothing has been closed meanwhile, it has not failed because of us.
        if left == 0 || !is_bad_address(result) || ready.is_none() && changes == before {
            return result;
        }
        // A buffer that is bad in itself stays bad, and a second call could take a second message. Only where pages were
        // closed in spite of the pin (in a child that a signal handler forked during the call), or in a mapping that has come
        // since (then another thread may have opened them again), is it made anew.
        match prepare_again(buffers) {
            Some(again) if again.opened || changes != before => drop(ready.replace(again)),
            _ => return result,
        }
        before = changes;
    }
}

/// Makes `call` with one buffer.
#[inline(always)]
pub fn with_buffer(address: *const c_void, length: usize, call: impl Fn() -> isize + Copy) -> isize {
    with(Buffers::one(address, length), call)
}

/// Makes a call of these words, the second and third of which are a buffer and its length.
#[inline(never)] // One copy is enough for all.
extern "C" fn transfer(file: usize, buffer: usize, length: usize, a: usize, b: usize, next: &Next) -> isize {
    let Some(next) = next.address() else { return -1 };
    // SAFETY: the next function of such a name takes these words, or the first ones of them, and returns as many bits.
    let next = unsafe { mem::transmute::<NonNull<c_void>, Call>(next) };
    // SAFETY: the program's own call.
    with_buffer(buffer as *const c_void, length, move || unsafe { next(file, buffer, length, a, b, 0) })
}

/// Calls with a file, a buffer and its length, and at most two words more: all but the usual case is that of [`transfer`].
macro_rules! transferring {
    ($($(#[$doc:meta])* fn $name:ident($buffer:ty $(, $after:ident: $after_type:ty)*; $($missing:literal)*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(file: c_int, buffer: $buffer, length: usize $(, $after: $after_type)*) -> isize {
            next_of!($name);
            if !Buffers::one(buffer.cast(), length).may_be_armed() && !are_calls_watched() && let Some(next) = NEXT.known() {
                type Own = unsafe extern "C" fn(c_int, $buffer, usize $(, $after_type)*) -> isize;
                // SAFETY: the next function of this name has this type; the program's own call.
                return unsafe { mem::transmute::<NonNull<c_void>, Own>(next)(file, buffer, length $(, $after)*) };
            }
            transfer(file as usize, buffer as usize, length $(, $after as usize)* $(, $missing)*, &NEXT)
        }
    )*};
}

transferring! {
    /// write(2).
    fn write(*const c_void; 0 0);
    /// write(2) under the name that libc's own parts use.
    fn __write(*const c_void; 0 0);
    /// pwrite(2).
    fn pwrite(*const c_void, offset: c_long; 0);
    /// pwrite(2).
    fn pwrite64(*const c_void, offset: c_long; 0);
    /// pwrite(2).
    fn __pwrite64(*const c_void, offset: c_long; 0);
    /// send(2).
    fn send(*const c_void, flags: c_int; 0);
    /// send(2).
    fn __send(*const c_void, flags: c_int; 0);
    /// read(2).
    fn read(*mut c_void; 0 0);
    /// read(2).
    fn __read(*mut c_void; 0 0);
    /// read(2) with a check of the buffer's size, as all `_chk` calls (`_FORTIFY_SOURCE`).
    fn __read_chk(*mut c_void, size: usize; 0);
    /// pread(2).
    fn pread(*mut c_void, offset: c_long; 0);
    /// pread(2).
    fn pread64(*mut c_void, offset: c_long; 0);
    /// pread(2).
    fn __pread64(*mut c_void, offset: c_long; 0);
    /// pread(2).
    fn __pread_chk(*mut c_void, offset: c_long, size: usize;);
    /// pread(2).
    fn __pread64_chk(*mut c_void, offset: c_long, size: usize;);
    /// recv(2).
    fn recv(*mut c_void, flags: c_int; 0);
    /// recv(2).
    fn __recv_chk(*mut c_void, size: usize, flags: c_int;);
}

/// Other calls with one buffer and its length.
macro_rules! one_buffer {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty,)* ; $buffer:ident: $buffer_type:ty, $length:ident ; $(, $after:ident: $after_type:ty)*) -> $result:ty;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($before: $before_type,)* $buffer: $buffer_type, $length: usize $(, $after: $after_type)*) -> $result; missing -1; |next| {
                // SAFETY: the program's own call.
                let call = move || unsafe { next($($before,)* $buffer, $length $(, $after)*) } as isize;
                with_buffer($buffer.cast(), $length, call) as $result
            }
        }
    )*};
}

one_buffer! {
    /// getrandom(2).
    fn getrandom(; buffer: *mut c_void, length ;, flags: c_uint) -> isize;
    /// getentropy(3).
    fn getentropy(; buffer: *mut c_void, length ;) -> c_int;
    /// mq_send(3).
    fn mq_send(queue: c_int, ; buffer: *const c_void, length ;, priority: c_uint) -> c_int;
}

/// Calls with a buffer, and what else they are given by address.
macro_rules! buffer_and_words {
    ($($(#[$doc:meta])* fn $name:ident($buffer:ty, $after:ident: $after_type:ty $(, $last:ident: $last_type:ty)?; [$one:expr, $other:expr]) -> $result:ty;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(queue: c_int, buffer: $buffer, length: usize, $after: $after_type $(, $last: $last_type)?) -> $result; missing -1; |next| {
                // SAFETY: the program's own call.
                let call = |()| unsafe { next(queue, buffer, length, $after $(, $last)?) } as isize;
                with_both(&[$one, $other, 0, 0, 0, 0], Buffers::one(buffer.cast(), length), Doing::by(&call)) as $result
            }
        }
    )*};
}

buffer_and_words! {
    /// mq_receive(3).
    fn mq_receive(*mut c_void, priority: *mut c_uint; [priority.addr(), 0]) -> isize;
    /// mq_receive(3).
    fn mq_timedreceive(*mut c_void, priority: *mut c_uint, until: *const libc::timespec; [priority.addr(), until.addr()]) -> isize;
    /// mq_send(3).
    fn mq_timedsend(*const c_void, priority: c_uint, until: *const libc::timespec; [until.addr(), 0]) -> c_int;
}

/// arc4random_buf(3), which ends the program where the kernel refuses its buffer. Where libc has none (before glibc 2.36), a
/// program may take this one for it.
///
/// # Safety
/// As for the function of this name.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn arc4random_buf(buffer: *mut c_void, length: usize) {
    next_of!(arc4random_buf);
    // It tells of nothing by errno, nor that libc has none.
    let Some(next) = preserving_errno(|| NEXT.address()) else { return fill(buffer, length) };
    // SAFETY: the next function of this name has this type.
    let next = unsafe { mem::transmute::<NonNull<c_void>, unsafe extern "C" fn(*mut c_void, usize)>(next) };
    let call = move || {
        // SAFETY: the program's own call.
        unsafe { next(buffer, length) };
        0
    };
    with_buffer(buffer, length, call);
}

/// Does without libc what arc4random_buf(3) does.
#[cold]
#[inline(never)]
fn fill(buffer: *mut c_void, length: usize) {
    let mut done = 0;
    preserving_errno(|| {
        while done < length {
            // SAFETY: what is left of the program's own buffer.
            match unsafe { getrandom(buffer.wrapping_byte_add(done), length - done, 0) } {
                got @ 1.. => done += got as usize,
                // SAFETY: the calling thread's own errno (errno(3)).
                _ if unsafe { *libc::__errno_location() } == libc::EINTR => {}
                // SAFETY: as libc does where it has no random numbers.
                _ => unsafe { libc::abort() },
            }
        }
    });
}

/// Calls with one message of System V: its type is a word before its text, whose length is told.
macro_rules! typed_message {
    ($($(#[$doc:meta])* fn $name:ident($message:ident: $message_type:ty $(, $kind:ident)?) -> $result:ty;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(queue: c_int, $message: $message_type, length: usize $(, $kind: c_long)?, flags: c_int) -> $result; missing -1; |next| {
                // SAFETY: the program's own call.
                let call = move || unsafe { next(queue, $message, length $(, $kind)?, flags) } as isize;
                with_buffer($message.cast(), length.saturating_add(size_of::<c_long>()), call) as $result
            }
        }
    )*};
}

typed_message! {
    /// msgsnd(2).
    fn msgsnd(message: *const c_void) -> c_int;
    /// msgrcv(2).
    fn msgrcv(message: *mut c_void, kind) -> isize;
}

/// Makes a call of these words, the second and third of which are a list of buffers and their count.
#[inline(never)] // One copy is enough for all.
extern "C" fn transfer_list(file: usize, parts: usize, count: usize, a: usize, b: usize, next: &Next) -> isize {
    let Some(next) = next.address() else { return -1 };
    // SAFETY: as in `transfer`.
    let next = unsafe { mem::transmute::<NonNull<c_void>, Call>(next) };
    let buffers = Buffers::list(parts as *const libc::iovec, count);
    // SAFETY: the program's own call.
    with(buffers, move || unsafe { next(file, parts, count, a, b, 0) })
}

/// Calls with a file, a list of buffers and their count, and at most two words more.
macro_rules! buffer_list {
    ($($(#[$doc:meta])* fn $name:ident($count:ty $(, $after:ident: $after_type:ty)*; $($missing:literal)*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(file: c_int, parts: *const libc::iovec, count: $count $(, $after: $after_type)*) -> isize {
            next_of!($name);
            let is_armed = Buffers::list(parts, count as usize).may_be_armed();
            if !is_armed && !are_calls_watched() && let Some(next) = NEXT.known() {
                type Own = unsafe extern "C" fn(c_int, *const libc::iovec, $count $(, $after_type)*) -> isize;
                // SAFETY: the next function of this name has this type; the program's own call.
                return unsafe { mem::transmute::<NonNull<c_void>, Own>(next)(file, parts, count $(, $after)*) };
            }
            transfer_list(file as usize, parts as usize, count as usize $(, $after as usize)* $(, $missing)*, &NEXT)
        }
    )*};
}

buffer_list! {
    /// writev(2).
    fn writev(c_int; 0 0);
    /// pwritev(2).
    fn pwritev(c_int, offset: c_long; 0);
    /// pwritev(2).
    fn pwritev64(c_int, offset: c_long; 0);
    /// pwritev2(2).
    fn pwritev2(c_int, offset: c_long, flags: c_int;);
    /// pwritev2(2).
    fn pwritev64v2(c_int, offset: c_long, flags: c_int;);
    /// readv(2).
    fn readv(c_int; 0 0);
    /// preadv(2).
    fn preadv(c_int, offset: c_long; 0);
    /// preadv(2).
    fn preadv64(c_int, offset: c_long; 0);
    /// preadv2(2).
    fn preadv2(c_int, offset: c_long, flags: c_int;);
    /// preadv2(2).
    fn preadv64v2(c_int, offset: c_long, flags: c_int;);
    /// vmsplice(2): the pages are looked up during the call, and held by the pipe from then on.
    fn vmsplice(usize, flags: c_uint; 0);
}

/// How many buffers of the other list are ours, of a copy between this process and another, or itself: another's lie elsewhere,
/// whatever is here at their addresses.
#[inline(never)] // One copy is enough for all who ask.
pub fn ours_of(process: c_int, own: (*const libc::iovec, usize), other: (*const libc::iovec, usize)) -> usize {
    if !Buffers::lists(own, other).may_be_armed() || sys::is_own(process) { other.1 } else { 0 }
}

/// Copies between this process and another, or itself.
#[cold]
#[inline(never)] // It must not weigh on the others.
fn copy_near([process, local, local_count, remote, remote_count, flags]: [usize; 6], next: &Next) -> isize {
    let Some(next) = next.address() else { return -1 };
    // SAFETY: as in `transfer`.
    let next = unsafe { mem::transmute::<NonNull<c_void>, Call>(next) };
    let (own, other) = ((local as *const libc::iovec, local_count), (remote as *const libc::iovec, remote_count));
    let buffers = Buffers::lists(own, (other.0, ours_of(process as c_int, own, other)));
    // SAFETY: the program's own call.
    let call = move |()| unsafe { next(process, local, local_count, remote, remote_count, flags) };
    with_both(&[local, remote, 0, 0, 0, 0], buffers, Doing::by(&call))
}

macro_rules! process_copy {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            process: usize, local: *const libc::iovec, local_count: usize, remote: *const libc::iovec, remote_count: usize, flags: usize,
        ) -> isize {
            next_of!($name);
            let is_armed = registry::could_any_lie_in([local.addr(), remote.addr(), local.addr(), local.addr(), local.addr()])
                || Buffers::lists((local, local_count), (remote, remote_count)).may_be_armed();
            if !is_armed && !are_calls_watched() && let Some(next) = NEXT.known() {
                type Own = unsafe extern "C" fn(usize, *const libc::iovec, usize, *const libc::iovec, usize, usize) -> isize;
                // SAFETY: the next function of this name takes these words; the program's own call.
                return unsafe { mem::transmute::<NonNull<c_void>, Own>(next)(process, local, local_count, remote, remote_count, flags) };
            }
            copy_near([process, local.addr(), local_count, remote.addr(), remote_count, flags], &NEXT)
        }
    )*};
}

process_copy! {
    /// process_vm_readv(2).
    fn process_vm_readv;
    /// process_vm_writev(2).
    fn process_vm_writev;
}
