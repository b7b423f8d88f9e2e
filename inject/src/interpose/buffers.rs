//! Calls by which the kernel reads or fills the program's buffers.
//!
//! The kernel raises no SIGSEGV for its own accesses: at a checkpoint the call fails with EFAULT or stops short. So a
//! buffer in an armed mapping has its checkpoints hit beforehand, and is pinned for as long as the call lasts. Nothing
//! is transferred twice, for nothing fails half-way.

use crate::arming::{ForCall, is_any_armed, prepare_for_call};
use crate::{interpose, registry};
use core::ffi::{c_int, c_long, c_ulong, c_void};

/// Times that a call is made anew.
const TRIES: u32 = 8;

/// Where a program's memory can lie (`vm.mmap_min_addr`; 47 bits on x86-64).
const LOWEST: usize = 64 << 10;
const HIGHEST: usize = 1 << 47;

/// Makes `call` with the checkpoints of its buffers, given by address and length, out of the way; they are pinned until it
/// has returned.
#[inline(always)]
pub fn with<B>(buffers: impl Fn() -> B + Copy, call: impl Fn() -> isize + Copy) -> isize
where
    B: Iterator<Item = (usize, usize)> + Clone,
{
    let is_armed = !registry::is_empty() && is_any_armed(buffers());
    if !is_armed {
        let result = call();
        if !is_bad_address(result) || registry::is_empty() {
            return result;
        }
    }
    // Copies: what is called through pointers lies in memory, and nothing should where nothing is armed.
    let (prepare, call) = (move || prepare_for_call(buffers()), move || call());
    if is_armed { when_armed(&prepare, &call) } else { after_failure(&prepare, &call) }
}

/// Whether a call failed with EFAULT.
#[inline(always)]
fn is_bad_address(result: isize) -> bool {
    // SAFETY: the calling thread's own errno (errno(3)).
    result == -1 && unsafe { *libc::__errno_location() } == libc::EFAULT
}

#[cold]
#[inline(never)] // One copy is enough for all calls.
fn when_armed(prepare: &dyn Fn() -> Option<ForCall>, call: &dyn Fn() -> isize) -> isize {
    match prepare() {
        Some(ready) => call_prepared(ready, prepare, call),
        // It has gone meanwhile.
        None => match call() {
            result if is_bad_address(result) => after_failure(prepare, call),
            result => result,
        },
    }
}

/// No buffer was armed before the call. Another thread may have mapped a file over one meanwhile (MAP_FIXED), and that was
/// armed.
#[cold]
#[inline(never)]
fn after_failure(prepare: &dyn Fn() -> Option<ForCall>, call: &dyn Fn() -> isize) -> isize {
    match prepare() {
        Some(ready) if ready.opened => call_prepared(ready, prepare, call),
        _ => -1,
    }
}

fn call_prepared(mut ready: ForCall, prepare: &dyn Fn() -> Option<ForCall>, call: &dyn Fn() -> isize) -> isize {
    let mut left = TRIES;
    loop {
        let result = call();
        left = if cfg!(feature = "sabotage-efault-not-retried") { 0 } else { left - 1 };
        if left == 0 || !is_bad_address(result) {
            return result;
        }
        // A buffer that is bad in itself stays bad, and a second call could take a second message. Only where pages were
        // closed in spite of the pin (in a child that a signal handler forked during the call) is it made anew.
        match prepare() {
            Some(again) if again.opened => drop(core::mem::replace(&mut ready, again)),
            _ => return result,
        }
    }
}

/// Makes `call` with one buffer.
#[inline(always)]
pub fn with_buffer(address: *const c_void, length: usize, call: impl Fn() -> isize + Copy) -> isize {
    with(move || core::iter::once((address as usize, length)), call)
}

/// The vectors that a program passes.
///
/// # Safety
/// `parts` must be null or point to `count` vectors, as the call that it is for demands.
pub unsafe fn slice<'a, T>(parts: *const T, count: usize) -> &'a [T] {
    // The kernel answers a bad address with EFAULT: what is plainly none is left to it. The bits that only an unaligned one
    // has become the highest, so that one comparison tells both.
    let above = (parts as usize).wrapping_sub(LOWEST).rotate_right(align_of::<T>().trailing_zeros());
    if above >= (HIGHEST - LOWEST) / align_of::<T>() {
        return &[];
    }
    // SAFETY: the caller's promise. IOV_MAX (UIO_MAXIOV for messages) bounds what the kernel takes (readv(2)).
    unsafe { core::slice::from_raw_parts(parts, count.min(1024)) }
}

/// Address and length of each vector.
pub fn parts(parts: &[libc::iovec]) -> impl Iterator<Item = (usize, usize)> + Clone {
    parts.iter().map(|part| (part.iov_base as usize, part.iov_len))
}

/// The same, from what the program passes.
///
/// # Safety
/// As [`slice`].
#[inline(always)]
pub unsafe fn parts_of<'a>(
    list: *const libc::iovec,
    count: usize,
) -> impl Iterator<Item = (usize, usize)> + Clone + 'a {
    // SAFETY: the caller's promise.
    parts(unsafe { slice(list, count) })
}

/// Calls with one buffer and its length.
macro_rules! one_buffer {
    ($($(#[$doc:meta])* fn $name:ident($($before:ident: $before_type:ty,)* ; $buffer:ident: $buffer_type:ty, $length:ident ; $(, $after:ident: $after_type:ty)*);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($before: $before_type,)* $buffer: $buffer_type, $length: usize $(, $after: $after_type)*) -> isize; missing -1; |next| {
                // SAFETY: the program's own call.
                with_buffer($buffer.cast(), $length, move || unsafe { next($($before,)* $buffer, $length $(, $after)*) })
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
    /// read(2) with a check of the buffer's size, as all `_chk` calls (`_FORTIFY_SOURCE`).
    fn __read_chk(file: c_int, ; buffer: *mut c_void, length ;, size: usize);
    /// pread(2).
    fn pread(file: c_int, ; buffer: *mut c_void, length ;, offset: c_long);
    /// pread(2).
    fn pread64(file: c_int, ; buffer: *mut c_void, length ;, offset: c_long);
    /// pread(2).
    fn __pread_chk(file: c_int, ; buffer: *mut c_void, length ;, offset: c_long, size: usize);
    /// pread(2).
    fn __pread64_chk(file: c_int, ; buffer: *mut c_void, length ;, offset: c_long, size: usize);
    /// recv(2).
    fn recv(socket: c_int, ; buffer: *mut c_void, length ;, flags: c_int);
    /// recv(2).
    fn __recv_chk(socket: c_int, ; buffer: *mut c_void, length ;, size: usize, flags: c_int);
    /// recvfrom(2).
    fn recvfrom(socket: c_int, ; buffer: *mut c_void, length ;, flags: c_int, from: *mut c_void, from_length: *mut u32);
    /// recvfrom(2).
    fn __recvfrom_chk(socket: c_int, ; buffer: *mut c_void, length ;, size: usize, flags: c_int, from: *mut c_void, from_length: *mut u32);
    /// getrandom(2).
    fn getrandom(; buffer: *mut c_void, length ;, flags: core::ffi::c_uint);
}

/// Calls with a list of buffers.
macro_rules! buffer_list {
    ($($(#[$doc:meta])* fn $name:ident($count:ty $(, $after:ident: $after_type:ty)*);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(file: c_int, parts: *const libc::iovec, count: $count $(, $after: $after_type)*) -> isize; missing -1; |next| {
                // SAFETY: the program's own call and its own list.
                let call = move || unsafe { next(file, parts, count $(, $after)*) };
                // SAFETY: as above.
                with(move || unsafe { parts_of(parts, usize::try_from(count).unwrap_or(0)) }, call)
            }
        }
    )*};
}

buffer_list! {
    /// writev(2).
    fn writev(c_int);
    /// pwritev(2).
    fn pwritev(c_int, offset: c_long);
    /// pwritev(2).
    fn pwritev64(c_int, offset: c_long);
    /// pwritev2(2).
    fn pwritev2(c_int, offset: c_long, flags: c_int);
    /// pwritev2(2).
    fn pwritev64v2(c_int, offset: c_long, flags: c_int);
    /// readv(2).
    fn readv(c_int);
    /// preadv(2).
    fn preadv(c_int, offset: c_long);
    /// preadv(2).
    fn preadv64(c_int, offset: c_long);
    /// preadv2(2).
    fn preadv2(c_int, offset: c_long, flags: c_int);
    /// preadv2(2).
    fn preadv64v2(c_int, offset: c_long, flags: c_int);
    /// vmsplice(2): the pages are looked up during the call, and held by the pipe from then on.
    fn vmsplice(usize, flags: core::ffi::c_uint);
}

/// Calls that copy between this process and another, or itself: `process` is asked for its own part alone, but what it
/// names of this process is open too.
macro_rules! process_copy {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(process: libc::pid_t, local: *const libc::iovec, local_count: c_ulong, remote: *const libc::iovec,
                remote_count: c_ulong, flags: c_ulong) -> isize; missing -1; |next| {
                let own = if process == crate::sys::process() { remote_count as usize } else { 0 };
                // SAFETY: the program's own lists.
                let buffers = move || unsafe { parts_of(local, local_count as usize).chain(parts_of(remote, own)) };
                // SAFETY: the program's own call.
                with(buffers, move || unsafe { next(process, local, local_count, remote, remote_count, flags) })
            }
        }
    )*};
}

process_copy! {
    /// process_vm_readv(2).
    fn process_vm_readv;
    /// process_vm_writev(2).
    fn process_vm_writev;
}
