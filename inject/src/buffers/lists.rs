//! Lists of buffers (readv(2)).

use super::LONGEST;
use crate::extent::Extent;
use crate::peek;
use core::ffi::c_void;

/// Where a list lies; nowhere if the kernel refuses it for its length. It may be armed as well as the buffers, where the program has a
/// private mapping of its own: the look at it opens it, and another thread's trip may close it again, so it is kept open, too.
#[inline(always)]
pub fn place_of((list, count): (*const libc::iovec, usize)) -> (*const c_void, usize) {
    (list.cast(), if count > LONGEST { 0 } else { count * size_of::<libc::iovec>() })
}

pub fn each_of_list(list: (*const libc::iovec, usize), visit: &impl Fn((*const c_void, usize))) {
    if !cfg!(feature = "sabotage-lists-not-kept-open") {
        visit(place_of(list));
    }
    parts_of(list.0, list.1).for_each(visit);
}

/// The buffers of a list; none of one that the kernel refuses for its length.
#[inline(always)]
pub fn parts_of(list: *const libc::iovec, count: usize) -> impl Iterator<Item = (*const c_void, usize)> {
    let taken = if count > LONGEST { 0 } else { count };
    // SAFETY: our handler is in place ([`super::is_nothing_closed`]).
    let part = move |index: usize| unsafe { peek::pair(list.wrapping_add(index).addr()) };
    (0..taken).map_while(part).map(|(address, length)| (address as *const c_void, length))
}

/// Where the buffers of a list lie.
pub trait Gather {
    fn add(&mut self, address: usize, length: usize);
}

impl Gather for Extent {
    #[inline(always)]
    fn add(&mut self, address: usize, length: usize) {
        Self::add(self, address, length);
    }
}

/// Adds the buffers of a list. One that is not there, which the kernel refuses as a whole, takes the end to that of all memory, and
/// ends the list. `false`: the kernel refuses it for its length.
#[inline(always)]
pub fn add_list(gathered: &mut impl Gather, (list, count): (*const libc::iovec, usize)) -> bool {
    let part = |index| {
        // SAFETY: our handler is in place ([`super::is_nothing_closed`]).
        unsafe { peek::pair_or_ones(list.wrapping_add(index).addr()) }
    };
    if count.wrapping_sub(1) >= LONGEST {
        return count == 0;
    }
    let mut index = 0;
    loop {
        let (address, length) = part(index);
        gathered.add(address, length);
        index += 1;
        if index == count || address & length == usize::MAX {
            return true;
        }
    }
}

/// The same, where it mostly is one buffer.
#[inline(always)]
pub fn add_short_list(gathered: &mut impl Gather, (list, count): (*const libc::iovec, usize)) -> bool {
    if count != 1 {
        return add_list(gathered, (list, count));
    }
    // SAFETY: our handler is in place ([`super::is_nothing_closed`]).
    let (address, length) = unsafe { peek::pair_or_ones(list.addr()) };
    gathered.add(address, length);
    true
}
