//! stdio writes and reads large buffers by system calls of its own, which no interposer sees.

use crate::arming::{ForCall, prepare_for_call};
use crate::buffers::Buffers;
use crate::{interpose, registry};
use core::ffi::{c_char, c_int, c_void};

/// Hits what the buffer holds of checkpoints, and keeps it open.
#[inline(always)]
fn prepare(address: *const c_void, length: usize) -> Option<ForCall> {
    let buffer = Buffers::one(address, length);
    if buffer.may_be_armed() { prepare_for_call(&buffer) } else { None }
}

/// The same of so many objects.
#[inline(never)] // One copy is enough for all calls.
fn prepare_objects(address: *const c_void, size: usize, count: usize) -> Option<ForCall> {
    prepare(address, size.saturating_mul(count))
}

/// Calls with one buffer of so many objects.
macro_rules! objects {
    ($($(#[$doc:meta])* fn $name:ident($buffer:ident: $buffer_type:ty $(, $before:ident)?);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($buffer: $buffer_type $(, $before: usize)?, size: usize, count: usize, stream: *mut c_void) -> usize; missing 0; |next| {
                let _open = prepare_objects($buffer.cast(), size, count);
                // SAFETY: the program's own call.
                unsafe { next($buffer $(, $before)?, size, count, stream) }
            }
        }
    )*};
}

objects! {
    /// fwrite(3).
    fn fwrite(buffer: *const c_void);
    /// fwrite_unlocked(3).
    fn fwrite_unlocked(buffer: *const c_void);
    /// fread(3).
    fn fread(buffer: *mut c_void);
    /// fread_unlocked(3).
    fn fread_unlocked(buffer: *mut c_void);
    /// fread(3), with a check of the buffer's size.
    fn __fread_chk(buffer: *mut c_void, length);
    /// fread_unlocked(3), with a check of the buffer's size.
    fn __fread_unlocked_chk(buffer: *mut c_void, length);
}

/// A text is not so long: what is armed behind it is not measured for.
const FAR: usize = 1 << 30;

/// Hits what a C string holds of checkpoints, and keeps it open.
///
/// # Safety
/// `text` must be null or a C string.
unsafe fn prepare_text(text: *const c_char) -> Option<ForCall> {
    if text.is_null() || !registry::could_overlap(text as usize, (text as usize).saturating_add(FAR)) {
        return None;
    }
    // SAFETY: the caller's promise. Measuring it touches every page of it, as the call does too.
    let length = unsafe { libc::strlen(text) };
    prepare(text.cast(), length)
}

/// Calls with a text.
macro_rules! text {
    ($($(#[$doc:meta])* fn $name:ident(text $(, $stream:ident)?);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name(text: *const c_char $(, $stream: *mut c_void)?) -> c_int; missing -1; |next| {
                // SAFETY: the program's own string.
                let _open = unsafe { prepare_text(text) };
                // SAFETY: the program's own call.
                unsafe { next(text $(, $stream)?) }
            }
        }
    )*};
}

text! {
    /// puts(3).
    fn puts(text);
    /// fputs(3).
    fn fputs(text, stream);
    /// fputs_unlocked(3).
    fn fputs_unlocked(text, stream);
}
