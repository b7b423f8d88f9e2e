//! Memory that a system call is given: to be read, or to be filled.

use crate::registry;
use core::ffi::c_void;

/// Where a program's memory can lie (`vm.mmap_min_addr`; 47 bits on x86-64).
const LOWEST: usize = 64 << 10;
const HIGHEST: usize = 1 << 47;

/// All buffers of one call, as the program names them: they are looked at when they are asked for.
#[derive(Clone, Copy)]
pub enum Buffers<'a> {
    /// Address and length.
    One(usize, usize),
    Lists([&'a [libc::iovec]; 2]),
    /// With the address that it goes to or comes from, and its control data.
    Message(&'a [libc::msghdr]),
    Messages(&'a [libc::mmsghdr]),
}

impl Buffers<'_> {
    #[inline(always)]
    pub fn one(address: *const c_void, length: usize) -> Self {
        Self::One(address as usize, length)
    }

    /// # Safety
    /// As [`slice`]; so below.
    #[inline(always)]
    pub unsafe fn list(list: *const libc::iovec, count: usize) -> Self {
        // SAFETY: the caller's promise.
        Self::Lists([unsafe { slice(list, count) }, &[]])
    }

    /// # Safety
    /// For both lists.
    #[inline(always)]
    pub unsafe fn lists(one: (*const libc::iovec, usize), other: (*const libc::iovec, usize)) -> Self {
        // SAFETY: the caller's promise.
        Self::Lists(unsafe { [slice(one.0, one.1), slice(other.0, other.1)] })
    }

    /// # Safety
    /// Null or a message, as sendmsg(2) demands.
    #[inline(always)]
    pub unsafe fn message(message: *const libc::msghdr) -> Self {
        // SAFETY: the caller's promise.
        Self::Message(unsafe { slice(message, 1) })
    }

    /// # Safety
    /// Null or so many messages, as sendmmsg(2) demands.
    #[inline(always)]
    pub unsafe fn messages(messages: *const libc::mmsghdr, count: usize) -> Self {
        // SAFETY: the caller's promise.
        Self::Messages(unsafe { slice(messages, count) })
    }

    /// Whether any of them may lie in an armed mapping: all that most calls ask.
    #[inline(always)]
    pub fn may_be_armed(&self) -> bool {
        match *self {
            Self::One(address, length) => registry::overlaps(address, address.saturating_add(length)),
            _ => !registry::is_empty() && self.is_any_armed(),
        }
    }

    #[inline(never)] // One copy is enough for all who ask.
    fn is_any_armed(&self) -> bool {
        self.any(|address, length| registry::overlaps(address, address.saturating_add(length)))
    }

    /// Calls `visit` with start and end of each that may lie in an armed mapping.
    #[inline(never)] // As above.
    pub fn each_armed(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.any(|address, length| {
            let end = address.saturating_add(length);
            if address < end && registry::overlaps(address, end) {
                visit(address, end);
            }
            false
        });
    }

    /// Whether it is so for any address and length; the others are not asked about then.
    #[inline(always)]
    fn any(&self, mut is_so: impl FnMut(usize, usize) -> bool) -> bool {
        match self {
            Self::One(address, length) => is_so(*address, *length),
            Self::Lists(lists) => lists.iter().any(|list| any_of_list(list, &mut is_so)),
            Self::Message(messages) => messages.iter().any(|message| any_of_message(message, &mut is_so)),
            Self::Messages(messages) => messages.iter().any(|message| any_of_message(&message.msg_hdr, &mut is_so)),
        }
    }
}

#[inline(always)]
fn any_of_list(list: &[libc::iovec], is_so: &mut impl FnMut(usize, usize) -> bool) -> bool {
    list.iter().any(|part| is_so(part.iov_base as usize, part.iov_len))
}

#[inline(always)]
fn any_of_message(message: &libc::msghdr, is_so: &mut impl FnMut(usize, usize) -> bool) -> bool {
    // SAFETY: what `message` and `messages` promise.
    any_of_list(unsafe { slice(message.msg_iov, message.msg_iovlen) }, is_so)
        || is_so(message.msg_name as usize, message.msg_namelen as usize)
        || is_so(message.msg_control as usize, message.msg_controllen)
}

/// What a program passes as so many of something.
///
/// # Safety
/// `parts` must be null or point to `count` of them, as the call that it is for demands.
#[inline]
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
