//! mremap(2) of a private mapping that has come apart.
//!
//! Parts of one that a program first writes to while closed ones lie between them get an `anon_vma` each, and are areas of their
//! own from then on (`is_mergeable_anon_vma` in mm/vma.c). mremap(2) fails with EFAULT where it meets the end of an area. What natively
//! would be one is moved by its areas then: whole ones, so that nothing comes apart that was not.

use crate::areas::{self, Area};
use crate::fork_gate::Shut;
use crate::{past_libc, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};
use precache_contract::PAGE;

/// A private mapping that can be written to has been armed: some may have come apart, also those of a forked child.
static MAY_BE_APART: AtomicBool = AtomicBool::new(false);

/// One that can be written to is about to be armed.
pub fn note_writable() {
    MAY_BE_APART.store(true, Relaxed);
}

/// What mremap(2) was asked for.
#[derive(Clone, Copy)]
pub struct Move {
    pub from: usize,
    pub length: usize,
    pub new_length: usize,
    pub flags: c_int,
    /// With `MREMAP_FIXED`.
    pub to: usize,
}

/// Does what the kernel has refused with EFAULT. `None`: it has refused it for another reason than ours.
#[cold]
#[inline(never)] // Nearly nobody moves such a mapping.
pub fn by_areas(wanted: &Move) -> Option<sys::Result<usize>> {
    let is_fixed = wanted.flags & libc::MREMAP_FIXED != 0;
    let is_known = wanted.flags & !(libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) == 0;
    if cfg!(feature = "sabotage-written-apart") || !is_known || !MAY_BE_APART.load(Relaxed) || past_libc::is_filtered()
    {
        return None;
    }
    let whole_pages = |length: usize| length.checked_next_multiple_of(PAGE as usize);
    let (from, new_length) = (wanted.from, whole_pages(wanted.new_length)?);
    let was_end = from.checked_add(whole_pages(wanted.length)?)?;
    let end = was_end.min(from.saturating_add(new_length));
    let growth = new_length - (end - from);
    // No child is forked half-way.
    let shut = Shut::begin();
    // Some kernels cut what is too long before they look, and some after.
    if end < was_end && last_of(&shut, from, was_end).is_some() {
        // SAFETY: the program's own wish.
        let _ = unsafe { sys::unmap(end, was_end - end) };
    }
    let last = last_of(&shut, from, end)?;
    if !is_fixed {
        // SAFETY: the program's own wish: its mapping is to grow where it is.
        let grown = unsafe { sys::remap(last, end - last, end - last + growth, 0, 0) };
        if grown.is_ok() || wanted.flags & libc::MREMAP_MAYMOVE == 0 {
            return Some(grown.map(|_| from));
        }
    }
    // SAFETY: the program wishes something else there.
    let place = unsafe { sys::reserve(is_fixed.then_some(wanted.to), new_length) }.ok()?;
    let moved = move_all(&shut, (from, end), growth, place);
    if moved.is_err() {
        // SAFETY: reserved above, and nothing has come to lie there.
        let _ = unsafe { sys::unmap(place, new_length) };
    }
    Some(moved.map(|()| place))
}

/// Where the last area of the range begins, if all are of one mapping: what follows one is more of the same.
fn last_of(shut: &Shut, from: usize, end: usize) -> Option<usize> {
    let mut last = Area::default();
    let mut is_one = true;
    areas::each(shut, &mut |area| {
        if area.end > from && area.start < end {
            is_one = if last.end == 0 { area.start <= from } else { last.goes_on_in(area) };
            last = *area;
        }
        is_one && area.end < end
    });
    (is_one && last.end >= end).then_some(last.start.max(from))
}

/// Moves the areas of `from..end` to `place`, where room is reserved, the last one first: it grows, which may be refused. What is moved
/// after it needs no more than that did. An error: nothing has been moved.
#[inline(always)]
fn move_all(shut: &Shut, (from, end): (usize, usize), growth: usize, place: usize) -> sys::Result<()> {
    let (mut until, mut growth, mut pauses) = (end, growth, sys::Pauses::default());
    while from < until {
        let mut start = until;
        areas::each(shut, &mut |area| {
            start = area.start.max(from);
            area.end < until
        });
        const MOVING: c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let length = until - start;
        // SAFETY: the program's own wish, to where room is reserved for it.
        match unsafe { sys::remap(start, length, length + growth, MOVING, place + (start - from)) } {
            Ok(_) => (until, growth) = (start, 0),
            Err(error) if until == end => return Err(error),
            // Another thread has taken the last descriptor, or area (`vm.max_map_count`). What the kernel does in one step does not
            // end half-way.
            Err(_) => pauses.next(),
        }
    }
    Ok(())
}
