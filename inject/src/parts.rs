//! Private mappings that the program has written to here and there while closed pages lay in between.
//!
//! Each part that was first written so stays a mapping of its own to the kernel (`is_mergeable_anon_vma` in mm/vma.c), which grows
//! one at a time (mremap(2)), and before Linux 6.17 moves one at a time: the program is told EFAULT for what is one mapping to it.
//! Here they are moved one by one. Until the last one has gone, the place of each stays taken (`MREMAP_DONTUNMAP`, Linux 5.13), so
//! that all can come back.

use crate::fork_gate::Shut;
use crate::maps::Maps;
use crate::{past_libc, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};
use precache_contract::PAGE;

const KNOWN: c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;

/// There may be such mappings.
static MAY_EXIST: AtomicBool = AtomicBool::new(false);

/// A private mapping that may be written to is about to be closed.
pub fn expect() {
    MAY_EXIST.store(true, Release);
}

pub fn may_exist() -> bool {
    MAY_EXIST.load(Acquire) && !past_libc::is_filtered() && !cfg!(feature = "sabotage-parts-stay")
}

/// What mremap(2) is given, in whole pages.
pub struct Move {
    start: usize,
    length: usize,
    new_length: usize,
    flags: c_int,
    /// With `MREMAP_FIXED`.
    to: usize,
}

/// What the kernel has of one mapping of the program's.
#[derive(Default)]
struct Parts {
    count: usize,
    /// Where the last one begins.
    last: usize,
}

impl Move {
    /// `None`: the kernel takes it as one, or refuses it whatever there is.
    pub fn new(start: usize, length: usize, new_length: usize, flags: c_int, to: usize) -> Option<Self> {
        let page = PAGE as usize;
        let whole = |length: usize| length.checked_next_multiple_of(page).filter(|&length| length != 0);
        let (length, new_length) = (whole(length)?, whole(new_length)?);
        let (end, new_end) = (start.checked_add(length)?, to.checked_add(new_length));
        let is = |flag: c_int| flags & flag != 0;
        let overlaps = |new_end: usize| to < end && start < new_end;
        let is_refused = flags & !KNOWN != 0
            || (is(libc::MREMAP_FIXED) || is(libc::MREMAP_DONTUNMAP)) && !is(libc::MREMAP_MAYMOVE)
            || is(libc::MREMAP_DONTUNMAP) && length != new_length
            || !start.is_multiple_of(page)
            || is(libc::MREMAP_FIXED) && (!to.is_multiple_of(page) || new_end.is_none_or(overlaps));
        (!is_refused).then_some(Self { start, length, new_length, flags, to })
    }

    /// Makes it, if there are such parts. `None`: there are none, or they cannot be told.
    #[inline(never)] // One copy is enough for all who ask.
    pub fn make(&self) -> Option<sys::Result<usize>> {
        // A child would find some here and some there.
        let shut = Shut::begin();
        let mut maps = Maps::of_process(&shut);
        let end = self.start + self.length;
        let parts = parts_in(self.start, end, &mut maps).filter(|parts| parts.count > 1)?;
        let is_fixed = self.flags & libc::MREMAP_FIXED != 0;
        let growth = self.new_length.saturating_sub(self.length);
        let last = end - parts.last;
        if growth != 0 && !is_fixed {
            // SAFETY: the last part, which the program wants to grow.
            let grown = unsafe { sys::remap(parts.last, last, last + growth, 0, 0) };
            if grown.is_ok() || self.flags & libc::MREMAP_MAYMOVE == 0 {
                return Some(grown.map(|_| self.start));
            }
        }
        Some(self.make_one_by_one(parts.last, growth, &mut maps))
    }

    fn make_one_by_one(&self, last: usize, growth: usize, maps: &mut Maps) -> sys::Result<usize> {
        let is_fixed = self.flags & libc::MREMAP_FIXED != 0;
        let leaves_all = self.flags & libc::MREMAP_DONTUNMAP != 0;
        let spare = Spare::take()?;
        // SAFETY: what lies at a place that the program names is to go.
        let to = unsafe { sys::reserve(if is_fixed { self.to } else { 0 }, self.new_length, is_fixed) }?;
        let (mut failure, end) = (None, self.start + self.length.min(self.new_length));
        let moved = each_part(self.start, end, maps, |from, length| {
            let (grows, stays) = if growth != 0 && from == last { (growth, 0) } else { (0, libc::MREMAP_DONTUNMAP) };
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | stays;
            let (new_length, place) = (length + grows, to + (from - self.start));
            // SAFETY: a part of what is to move, to its place in what is ours.
            if let Err(why) = unsafe { sys::remap(from, length, new_length, flags, place) } {
                failure = Some((why, place + new_length));
            } else if stays != 0 && !leaves_all {
                // As inaccessible as it is natively, and not counted twice as data (RLIMIT_DATA, getrlimit(2)).
                // SAFETY: what has moved from there left nothing of it.
                let _ = unsafe { sys::reserve(from, length, true) };
            }
            failure.is_none()
        }) - self.start;
        drop(spare);
        if let Some((why, unused)) = failure {
            // The place of the part that failed may have been unmapped, and be another thread's by now.
            // SAFETY: nothing has come to lie there.
            let _ = unsafe { sys::unmap(unused, to + self.new_length - unused) };
            self.bring_back(to, moved, maps);
            return Err(why);
        }
        if !leaves_all {
            // What has grown has left nothing, and its place may be another's by now.
            let left = if growth != 0 { last - self.start } else { self.length };
            // SAFETY: what has moved from there left nothing of it.
            let _ = unsafe { sys::unmap(self.start, left) };
        }
        Ok(to)
    }

    /// All that has moved, to where it was. Where others have used up the kernel's mappings just now it may stay: better at another place
    /// than gone.
    fn bring_back(&self, to: usize, moved: usize, maps: &mut Maps) {
        each_part(to, to + moved, maps, |from, length| {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: what this has moved from there.
            let _ = unsafe { sys::remap(from, length, length, flags, self.start + (from - to)) };
            true
        });
    }
}

/// Kernel mappings that are there for nothing, and leave room for the way back where they have run out on the way (`vm.max_map_count`).
struct Spare(usize);

impl Spare {
    const PAGES: usize = 5;

    fn take() -> sys::Result<Self> {
        let page = PAGE as usize;
        // SAFETY: a new mapping, at the kernel's choice.
        let spare = Self(unsafe { sys::reserve(0, Self::PAGES * page, false) }?);
        for other in [1, 3] {
            // Another protection makes it a mapping of its own.
            // SAFETY: a page of it.
            unsafe { sys::mprotect(spare.0 + other * page, page, libc::PROT_READ) }?;
        }
        Ok(spare)
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        // SAFETY: its own memory.
        let _ = unsafe { sys::unmap(self.0, Self::PAGES * PAGE as usize) };
    }
}

/// How many mappings are looked up at a time.
const AT_ONCE: usize = 128;

/// Calls `visit` with address and length of each of the kernel's mappings that the range consists of, as long as it says so; they
/// may change meanwhile. The answer is where it ended.
fn each_part(start: usize, end: usize, maps: &mut Maps, mut visit: impl FnMut(usize, usize) -> bool) -> usize {
    let (mut at, mut ends) = (start, [0; AT_ONCE]);
    while at < end {
        for &part_end in ends_after(at, end, maps, &mut ends) {
            if !visit(at, part_end - at) {
                return at;
            }
            at = part_end;
        }
    }
    at
}

/// Where those end that lie in the range, or reach into it, as many as there is room for, and at least one.
#[inline(never)] // One copy is enough for both ways.
fn ends_after<'a>(start: usize, end: usize, maps: &mut Maps, ends: &'a mut [usize; AT_ONCE]) -> &'a [usize] {
    // Where nothing tells it is tried as a whole.
    *ends = [end; AT_ONCE];
    let mut count = 1;
    maps.begin_again();
    for (found, place) in ends.iter_mut().enumerate() {
        let Some(line) = core::iter::from_fn(|| maps.next()).find(|line| start < line.end) else { break };
        (*place, count) = (line.end.min(end), found + 1);
        if end <= line.end {
            break;
        }
    }
    ends.get(..count).unwrap_or_default()
}

/// The kernel's mappings of that range. `None`: not all of it is one private mapping of a file to the program.
fn parts_in(start: usize, end: usize, maps: &mut Maps) -> Option<Parts> {
    let (mut parts, mut at) = (Parts::default(), start);
    // Where the file would begin, and the digest.
    let mut kind = None;
    while let Some(line) = maps.next()
        && line.start < end
    {
        if line.end <= start {
            continue;
        }
        let like = (line.start.wrapping_sub(line.offset), line.digest);
        let follows = line.start <= at && line.is_private && line.is_of_file && *kind.get_or_insert(like) == like;
        if !follows {
            return None;
        }
        (parts.count, parts.last, at) = (parts.count + 1, line.start.max(start), line.end);
    }
    (end <= at).then_some(parts)
}
