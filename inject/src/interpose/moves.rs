//! mremap(2) of what has been armed. Parts of a private mapping that were first written while their protection kept them apart stay
//! areas of their own, each with its `anon_vma` (`is_mergeable_anon_vma` in mm/vma.c), and the kernel moves no more than one of them at
//! a time: these are moved one by one.

use super::memory::{Change, change};
use crate::sys;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use libc::{MREMAP_DONTUNMAP, MREMAP_FIXED, MREMAP_MAYMOVE};
use precache_contract::PAGE;

/// Where private mappings that may be written to have been let go of last: bounds, one pair after the other.
static APART: [[AtomicUsize; 2]; 8] = [const { [const { AtomicUsize::new(0) }; 2] }; 8];
static NOTED: AtomicUsize = AtomicUsize::new(0);

/// From here to there lies such a mapping.
pub fn note(start: usize, end: usize) {
    let place = NOTED.fetch_add(1, Relaxed) % APART.len();
    if let Some([first, last]) = APART.get(place) {
        first.store(start, Relaxed);
        last.store(end, Relaxed);
    }
}

/// Whether one of them holds the range. What the program has put in its place since is moved part by part, too, where it fails else.
fn is_apart(start: usize, end: usize) -> bool {
    APART.iter().any(|[first, last]| first.load(Relaxed) <= start && end <= last.load(Relaxed))
}

/// What the program wants of mremap(2).
pub struct Move {
    pub address: usize,
    pub length: usize,
    pub new_length: usize,
    pub flags: c_int,
    /// With `MREMAP_FIXED`.
    pub place: usize,
}

/// Makes the program's call without any armed mapping in its ranges: the new address, or -1.
#[inline(never)] // One copy is enough for both who call this.
pub fn remap(wanted: &Move, call: &dyn Fn() -> isize) -> isize {
    let what = Change::Move { to: wanted.place, length: wanted.new_length, flags: wanted.flags };
    let before = errno();
    let result = change(what, wanted.address as *const c_void, wanted.length, call);
    if result == -1
        && errno() == libc::EFAULT
        && is_apart(wanted.address, wanted.address.saturating_add(wanted.length))
        && wanted.flags & (MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MREMAP_MAYMOVE
    {
        in_parts(wanted, before).unwrap_or(result)
    } else {
        result
    }
}

fn errno() -> c_int {
    // SAFETY: the calling thread's own errno (errno(3)).
    unsafe { *libc::__errno_location() }
}

/// The same, part by part; then errno is as it was before.
fn in_parts(wanted: &Move, errno: c_int) -> Option<isize> {
    let [new_length, length] = [wanted.new_length, wanted.length].map(|length| length.next_multiple_of(PAGE as usize));
    let is_fixed = wanted.flags & MREMAP_FIXED != 0;
    let to = if is_fixed { wanted.place } else { sys::reserve(new_length).ok()? };
    // What is too much is gone by now.
    let (length, moved) = (length.min(new_length), shift(wanted.address, length.min(new_length), new_length, to));
    if moved == length {
        // SAFETY: the calling thread's own errno (errno(3)).
        unsafe { *libc::__errno_location() = errno };
        note(to, to + new_length);
        return Some(to as isize);
    }
    shift(to, moved, moved, wanted.address);
    if !is_fixed {
        // SAFETY: reserved above, and told to nobody.
        unsafe { sys::give_back(to, new_length) };
    }
    None
}

/// Moves each part as soon as it is short enough, the last one with what is added to it. How much has been moved before one could not be.
#[inline(never)] // One copy is enough for the way there and back.
fn shift(from: usize, length: usize, new_length: usize, to: usize) -> usize {
    let (mut moved, mut part) = (0, length);
    while moved < length {
        let new = if moved + part == length { new_length - moved } else { part };
        // SAFETY: the program's own mapping, which it wants there.
        match unsafe { sys::remap(from + moved, part, new, MREMAP_MAYMOVE | MREMAP_FIXED, to + moved) } {
            Ok(_) => (moved, part) = (moved + part, length - moved - part),
            Err(sys::Error::EFAULT) if part > PAGE as usize && !cfg!(feature = "sabotage-parts-stay-apart") => {
                part = (part / 2).next_multiple_of(PAGE as usize);
            }
            Err(_) => break,
        }
    }
    moved
}
