//! Where the memory shared with the optimizer lies: in the library's own image, which the loader has put there once. What
//! the kernel would place by itself could come to lie in a hole that the program has made and counts on, to unmap or to fill
//! it as a whole.

use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use precache_contract::segment::Segment;

/// One is in use, and each thread that makes a new segment needs another.
const PLACES: usize = 8;

#[repr(C, align(4096))]
struct Ground(UnsafeCell<[u8; Segment::LENGTH]>);

// SAFETY: never accessed as what it is declared as; whoever has claimed a place maps a segment over it, whose fields are
// atomics.
unsafe impl Sync for Ground {}

static GROUND: [Ground; PLACES] = [const { Ground(UnsafeCell::new([0; Segment::LENGTH])) }; PLACES];

/// Places at which a thread is making a segment.
static CLAIMED: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];

/// Where the search begins: what was in use last is used again last.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A place for a segment that is in the making; others may claim it when this drops.
pub struct Place(usize);

impl Place {
    /// A place that is not in use. One that was may still be seen by a thread that was on its way meanwhile: what it finds
    /// there is a later segment of the same process.
    ///
    /// # Errors
    /// `ENOMEM` while as many threads as there are places are at it.
    pub fn claim(is_in_use: impl Fn(*const Segment) -> bool) -> sys::Result<Self> {
        let first = NEXT.fetch_add(1, Relaxed);
        let places = (0..PLACES).map(|more| first.wrapping_add(more) % PLACES);
        let is_free = |&place: &usize| CLAIMED.get(place).is_some_and(|claimed| !claimed.swap(true, AcqRel));
        let mut claimed = places.filter(is_free).map(Self);
        claimed.find(|place| !is_in_use(place.address())).ok_or(sys::Error::ENOMEM)
    }

    fn address(&self) -> *const Segment {
        GROUND.get(self.0).map_or(core::ptr::null(), |ground| ground.0.get().cast())
    }

    /// Maps the segment there, for good.
    pub fn map(&self, file: c_int) -> sys::Result<*const Segment> {
        // SAFETY: the place is our own, whole pages, and claimed by us alone.
        unsafe { sys::map_over(self.address().addr(), Segment::LENGTH, file) }.map(|_| self.address())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(taken) = CLAIMED.get(self.0) {
            taken.store(false, Release);
        }
    }
}

/// In a forked child: nobody else is making a segment.
pub fn reset_after_fork() {
    for taken in &CLAIMED {
        taken.store(false, Relaxed);
    }
}
