//! Calls that send or receive messages with an address, or made of several buffers.

use super::buffers::{with_both, with_buffer};
use super::words::Call;
use crate::arming::{ForCall, prepare_for_call};
use crate::buffers::{Buffers, LONGEST, do_messages_lie_elsewhere, does_message_lie_elsewhere};
use crate::doing::Doing;
use crate::in_use::are_calls_watched;
use crate::next::Next;
use crate::{interpose, next_of, registry};
use core::ffi::{c_int, c_uint, c_void};
use core::mem::{self, offset_of};
use core::ptr::NonNull;

/// Has what an address lies in, or goes to, out of the way while this exists. Its length may be told where there is no memory.
#[inline(never)] // One copy is enough for all.
fn hold(address: *const c_void, length: *const c_uint) -> Option<ForCall> {
    let words = [address as usize, length as usize, 0, 0, 0, 0];
    // SAFETY: they are there until this returns.
    let buffers = unsafe { Buffers::words(&words) };
    if buffers.may_be_armed() { prepare_for_call(&buffers) } else { None }
}

/// A call with a buffer and an address, by its arguments: one that is not there is not looked at, nor is the upper half of a
/// register that holds an `int` (System V ABI, 3.2.3; AAPCS64, 6.8.2).
type Addressed = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> isize;

/// # Safety
/// `next` is a function that takes these arguments, or the first six of them, and a buffer and its length second and third.
#[inline(never)] // One copy is enough for all.
unsafe fn with_address(
    next: *const c_void,
    arguments: [usize; 7],
    address: *const c_void,
    length: *const c_uint,
) -> isize {
    let _held = hold(address, length);
    // SAFETY: the caller's promise.
    let next = unsafe { mem::transmute::<*const c_void, Addressed>(next) };
    let [socket, buffer, size, a, b, c, d] = arguments;
    // SAFETY: the program's own call.
    with_buffer(buffer as *const c_void, size, move || unsafe { next(socket, buffer, size, a, b, c, d) })
}

/// Such a call of six arguments between armed mappings, of which there are few: still in registers. The first and the fourth argument
/// are an `int` each.
#[inline(never)] // One copy is enough for both.
extern "C" fn near(ints: usize, buffer: usize, size: usize, address: usize, length: usize, next: &Next) -> isize {
    let is_between = registry::are_few()
        && !registry::is_among_few(buffer, buffer.saturating_add(size))
        && !registry::is_in_few(address)
        && !registry::is_in_few(length);
    if is_between
        && !are_calls_watched()
        && let Some(next) = next.known()
    {
        // SAFETY: as in `words::make`; the program's own call.
        return unsafe {
            mem::transmute::<NonNull<c_void>, Call>(next)(
                ints as u32 as usize,
                buffer,
                size,
                ints >> 32,
                address,
                length,
            )
        };
    }
    look_at(ints, buffer, size, address, length, next)
}

#[inline(never)] // All of it is on the stack there.
extern "C" fn look_at(ints: usize, buffer: usize, size: usize, address: usize, length: usize, next: &Next) -> isize {
    let Some(next) = next.address() else { return -1 };
    let arguments = [ints as u32 as usize, buffer, size, ints >> 32, address, length, 0];
    // SAFETY: these are its arguments.
    unsafe { with_address(next.as_ptr(), arguments, address as *const c_void, length as *const c_uint) }
}

/// Calls with a buffer second, and an address fifth, whose length or its place comes last: a length is no address.
macro_rules! addressed {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            socket: c_uint, buffer: usize, size: usize, flags: c_uint, address: usize, length: usize,
        ) -> isize {
            next_of!($name);
            // Nearly always: before anything is put into memory.
            let is_elsewhere = !registry::could_overlap(buffer, buffer.saturating_add(size))
                && !registry::could_any_lie_in([address, length, address, address, address])
                && !are_calls_watched();
            let (socket, flags) = (socket as usize, flags as usize);
            if is_elsewhere && let Some(next) = NEXT.known() {
                // SAFETY: as in `words::make`; the program's own call.
                return unsafe { mem::transmute::<NonNull<c_void>, Call>(next)(socket, buffer, size, flags, address, length) };
            }
            near(socket | flags << 32, buffer, size, address, length, &NEXT)
        }
    )*};
}

addressed! {
    /// sendto(2).
    fn sendto;
    /// recvfrom(2).
    fn recvfrom;
}

interpose! {
    /// recvfrom(2) with a check of the buffer's size (`_FORTIFY_SOURCE`).
    fn __recvfrom_chk(socket: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int, from: *mut c_void,
        from_length: *mut c_uint) -> isize; missing -1; |next| {
        let arguments = [socket as usize, buffer as usize, length, size, flags as usize, from as usize, from_length as usize];
        // SAFETY: recvfrom(2), with a size after the length.
        unsafe { with_address(next as *const c_void, arguments, from, from_length) }
    }
}

/// Makes a call of these words, the second of which are messages; above the third, how many of them to look at.
/// Mostly it is left by a jump, as in [`super::buffers::with`], and nothing is saved that is not needed for the look.
#[inline(never)] // One copy is enough for both.
extern "C" fn several(socket: usize, messages: usize, counts: usize, flags: usize, until: usize, next: &Next) -> isize {
    if do_messages_lie_elsewhere(messages as *const libc::mmsghdr, counts >> 32)
        && !are_calls_watched()
        && let Some(next) = next.known()
    {
        let third = counts as u32 as usize;
        // SAFETY: as in `words::make`; the program's own call.
        return unsafe { mem::transmute::<NonNull<c_void>, Call>(next)(socket, messages, third, flags, until, 0) };
    }
    several_looked_at(socket, messages, counts, flags, until, next)
}

/// The same, where each is looked at.
#[inline(never)] // All of it is on the stack there.
extern "C" fn several_looked_at(
    socket: usize,
    messages: usize,
    counts: usize,
    flags: usize,
    until: usize,
    next: &Next,
) -> isize {
    if core::ptr::eq(next, &NOT_MADE) {
        return -1;
    }
    let Some(next) = next.address() else { return -1 };
    type Several = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> c_int;
    // SAFETY: the next function of such a name takes these words, or the first ones of them, and answers with less than 2^31.
    let next = unsafe { mem::transmute::<NonNull<c_void>, Several>(next) };
    // SAFETY: the program's own call.
    let call = move |()| unsafe { next(socket, messages, counts as u32 as usize, flags, until) } as isize;
    let buffers = Buffers::messages(messages as *const libc::mmsghdr, (counts >> 32) as c_uint);
    with_both(&[until, 0, 0, 0, 0, 0], buffers, Doing::by(&call))
}

/// Makes a call of these words, the second of which is a message.
#[inline(never)] // One copy is enough for both.
extern "C" fn one(socket: usize, message: usize, flags: usize, next: &Next) -> isize {
    if does_message_lie_elsewhere(message as *const libc::msghdr)
        && !are_calls_watched()
        && let Some(next) = next.known()
    {
        // SAFETY: as in `words::make`; the program's own call.
        return unsafe { mem::transmute::<NonNull<c_void>, Call>(next)(socket, message, flags, 0, 0, 0) };
    }
    const _: () = assert!(offset_of!(libc::mmsghdr, msg_hdr) == 0);
    several_looked_at(socket, message, 1 << 32 | flags, 0, 0, next)
}

/// Calls with one message, and flags third.
macro_rules! one_message {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(socket: c_uint, message: usize, flags: c_uint) -> isize {
            next_of!($name);
            one(socket as usize, message, flags as usize, &NEXT)
        }
    )*};
}

one_message! {
    /// sendmsg(2).
    fn sendmsg;
    /// recvmsg(2).
    fn recvmsg;
}

/// sendmmsg(2). Of more than the kernel sends at a time it looks at so many.
///
/// # Safety
/// As for the function of this name.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn sendmmsg(socket: c_uint, messages: usize, count: c_uint, flags: c_uint) -> isize {
    next_of!(sendmmsg);
    let counts = (count as usize).min(LONGEST) << 32 | count as usize;
    several(socket as usize, messages, counts, flags as usize, 0, &NEXT)
}

/// recvmmsg(2).
///
/// # Safety
/// As for the function of this name.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn recvmmsg(
    socket: c_uint,
    messages: usize,
    count: c_uint,
    flags: c_uint,
    until: usize,
) -> isize {
    next_of!(recvmmsg);
    let make = if registry::could_overlap(until, until.saturating_add(1)) { several_looked_at } else { several };
    make(socket as usize, messages, (count as usize) << 32 | count as usize, flags as usize, until, &NEXT)
}

/// Stands for a call that is not made: who only asks is answered by what is called where all lies elsewhere.
static NOT_MADE: Next = Next::of_function(lies_elsewhere as Call as *const c_void);

extern "C" fn lies_elsewhere(_: usize, _: usize, _: usize, _: usize, _: usize, _: usize) -> isize {
    0
}

/// Whether a message, or what it points to, may be armed.
pub fn may_message_be_armed(message: usize) -> bool {
    one(0, message, 0, &NOT_MADE) != 0
}

/// The same of so many.
pub fn may_messages_be_armed(messages: usize, count: usize) -> bool {
    several(0, messages, count << 32, 0, 0, &NOT_MADE) != 0
}
