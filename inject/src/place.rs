//! Where the memory shared with the optimizer lies: in the library's own image, which the loader has put there once. What
//! the kernel would place by itself could come to lie in a hole that the program has made and counts on, to unmap or to fill
//! it as a whole.

use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};
use precache_contract::segment::Segment;

/// One is in use, one is in the making, and one was in use before: threads that were on their way may still see it.
const PLACES: usize = 3;

#[repr(C, align(4096))]
struct Ground(UnsafeCell<[u8; Segment::LENGTH]>);

// SAFETY: never accessed as what it is declared as; whoever has claimed a place maps a segment over it, whose fields are
// atomics.
unsafe impl Sync for Ground {}

static GROUND: [Ground; PLACES] = [const { Ground(UnsafeCell::new([0; Segment::LENGTH])) }; PLACES];

/// Whether a thread is making a segment.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// The right to make a segment; others may have it when this drops.
pub struct Claim(());

impl Claim {
    /// `None`: another thread has it.
    pub fn take() -> Option<Self> {
        // Made only when it is ours: one that is dropped ends the claim of whoever has it.
        (!CLAIMED.swap(true, AcqRel)).then(|| Self(()))
    }

    /// Maps the segment, for good, at the place after the one in use.
    pub fn map(&self, file: c_int, in_use: *const Segment) -> sys::Result<*const Segment> {
        let place = |ground: &Ground| ground.0.get().cast_const().cast();
        let next = GROUND.iter().position(|ground| place(ground) == in_use).map_or(0, |index| (index + 1) % PLACES);
        let place: *const Segment = GROUND.get(next).map(place).ok_or(sys::Error::ENOMEM)?;
        // SAFETY: the place is our own, whole pages, and claimed by us alone; the kernel checks what can be checked before it
        // takes the old mapping away (`mmap_region` in mm/vma.c), so that no other comes to lie there.
        unsafe { sys::map_over(place.addr(), Segment::LENGTH, file) }.map(|_| place)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CLAIMED.store(false, Release);
    }
}

/// In a forked child: nobody else is making a segment.
pub fn reset_after_fork() {
    CLAIMED.store(false, Relaxed);
}
