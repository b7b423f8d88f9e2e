//! Messages: each with its list of buffers, the address that it goes to or comes from, and its control data (sendmsg(2)).

use super::lists::{Gather, add_list, add_short_list, each_of_list};
use super::{LONGEST, is_nothing_closed};
use crate::extent::Extent;
use crate::{peek, registry};
use core::ffi::c_void;
use core::mem::offset_of;

/// The longest address that the kernel takes or gives (`move_addr_to_kernel` in net/socket.c).
const LONGEST_NAME: usize = size_of::<libc::sockaddr_storage>();

/// The longest list, in bytes.
const LONGEST_LIST: usize = LONGEST * size_of::<libc::iovec>();

/// Where a message lies, with the length that the kernel writes to it: what follows one that is alone, and has none, counts as it.
/// It is kept open, as its list is ([`super::lists::place_of`]).
#[inline(always)]
pub fn place_of_message(message: *const libc::mmsghdr) -> (*const c_void, usize) {
    let length = if cfg!(feature = "sabotage-lists-not-kept-open") { 0 } else { size_of::<libc::mmsghdr>() };
    (message.cast(), length)
}

/// Whether a message, its list, and all that they point to lie where nothing is armed. Where that is not so, or not to be told at once,
/// each is to be looked at.
#[inline(always)]
pub fn does_message_lie_elsewhere(message: *const libc::msghdr) -> bool {
    if is_nothing_closed() {
        return true;
    }
    let header = header_or_ones(message);
    let mut parts = Parts { all: Extent::NONE, could: false };
    add_list(&mut parts, header.parts);
    !registry::could_begin_near(message.addr(), LONGEST_LIST)
        && !registry::could_begin_near(header.parts.0.addr(), LONGEST_LIST)
        && (header.has_parts_alone() || {
            let mut rest = Extent::of_buffers_up_to(LONGEST_NAME);
            header.add_rest(&mut rest);
            is_elsewhere(&rest)
        })
        && (!parts.could || is_between(parts.all.range()))
}

/// Whether several messages and their lists lie together where nothing is armed, as what one loop has filled in mostly does, and so does
/// all that they point to, or each kind of it. Where that is not so, or not to be told, each is to be looked at. A message takes as long
/// as its instructions are many: no address is compared before the end, and what is gathered stays in registers.
#[inline(always)]
pub fn do_messages_lie_elsewhere(messages: *const libc::mmsghdr, count: usize) -> bool {
    if is_nothing_closed() {
        return true;
    }
    let behind = messages.wrapping_add(count);
    let (mut lists, mut all) = (Extent::of_buffers_up_to(LONGEST_LIST), Extent::of_buffers_up_to(LONGEST_NAME));
    lists.add(messages.addr(), 0);
    lists.add(behind.addr(), 0);
    let mut message = messages;
    while message != behind {
        let header = header_or_ones(message.cast());
        lists.add(header.parts.0.addr(), 0);
        // Mostly there is neither.
        if !header.has_parts_alone() {
            header.add_rest(&mut all);
        }
        if !add_short_list(&mut all, header.parts) {
            break;
        }
        message = message.wrapping_add(1);
    }
    let (start, end) = all.range();
    is_elsewhere(&lists)
        && (!registry::could_overlap(start, end) || is_between((start, end)) || do_kinds_lie_elsewhere(messages, count))
}

/// Whether the buffers of messages lie where nothing is armed, and the rest that these point to, which need not lie near them.
#[inline(never)] // It must not weigh on the others.
fn do_kinds_lie_elsewhere(messages: *const libc::mmsghdr, count: usize) -> bool {
    let (mut parts, mut rest) = (Extent::NONE, Extent::of_buffers_up_to(LONGEST_NAME));
    for index in 0..count {
        let header = header_or_ones(messages.wrapping_add(index).cast());
        if !header.has_parts_alone() {
            header.add_rest(&mut rest);
        }
        if !add_list(&mut parts, header.parts) {
            break;
        }
    }
    is_elsewhere(&parts) && is_elsewhere(&rest)
}

#[inline(always)]
fn is_elsewhere(extent: &Extent) -> bool {
    let (start, end) = extent.range();
    !registry::overlaps(start, end)
}

/// Whether nothing armed overlaps the range, though it could. Few mappings are looked at here: a call takes as long as all of this.
#[inline(always)]
fn is_between((start, end): (usize, usize)) -> bool {
    if registry::are_few() { !registry::is_among_few(start, end) } else { !registry::overlaps(start, end) }
}

/// What a message points to.
pub struct Header {
    name: (*const c_void, usize),
    parts: (*const libc::iovec, usize),
    control: (*const c_void, usize),
}

impl Header {
    /// Whether there is neither a name nor control data.
    #[inline(always)]
    fn has_parts_alone(&self) -> bool {
        self.name.0.addr() | self.control.0.addr() == 0
    }

    /// Adds name and control data, of which there is one at least.
    #[inline(always)]
    fn add_rest(&self, extent: &mut Extent) {
        extent.add_any(self.name.0.addr(), self.control.0.addr(), self.control.1);
    }

    pub fn each(self, visit: &impl Fn((*const c_void, usize))) {
        visit(self.name);
        visit(self.control);
        each_of_list(self.parts, visit);
    }
}

/// `None`: it is not there.
#[inline(always)]
pub fn header_of(message: *const libc::msghdr) -> Option<Header> {
    // SAFETY: our handler is in place ([`is_nothing_closed`]).
    unsafe { peek::message(message.addr()) }.map(header)
}

/// Where it is not there, the kernel says so, whatever is told of it here.
#[inline(always)]
fn header_or_ones(message: *const libc::msghdr) -> Header {
    // SAFETY: as above.
    header(unsafe { peek::message_or_ones(message.addr()) })
}

#[inline(always)]
fn header([name, parts, count, control, control_length]: [usize; 5]) -> Header {
    const _: () = assert!(offset_of!(libc::msghdr, msg_iov) == 16 && offset_of!(libc::msghdr, msg_controllen) == 40);
    Header {
        name: (name as *const c_void, LONGEST_NAME),
        parts: (parts as *const libc::iovec, count),
        control: (control as *const c_void, control_length),
    }
}

/// Buffers that may lie far apart: one on the stack, another on the heap.
struct Parts {
    all: Extent,
    /// One of them could lie in an armed mapping.
    could: bool,
}

impl Gather for Parts {
    #[inline(always)]
    fn add(&mut self, address: usize, length: usize) {
        self.could |= registry::could_overlap(address, address.saturating_add(length));
        self.all.add(address, length);
    }
}
