//! Where what is read goes that nobody looks at: a read into the page cache needs a buffer all the same.

use crate::engine::LARGEST_CHUNK;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// One for all threads, so that many threads take no memory of the user's.
static SCRAP: Scrap = Scrap(UnsafeCell::new(MaybeUninit::uninit()));

struct Scrap(UnsafeCell<MaybeUninit<[u8; LARGEST_CHUNK as usize]>>);

// SAFETY: only the kernel writes to it, in system calls that were given its address, and nobody reads it: `area`, the only use
// of `SCRAP`, makes no reference to what is inside, so there are no accesses in the program that could race.
unsafe impl Sync for Scrap {}

/// Address and length of memory that the kernel may write to at any time. It lives as long as the process, and its content
/// means nothing: no reference to it may be made.
pub fn area() -> (*mut u8, usize) {
    (SCRAP.0.get().cast(), LARGEST_CHUNK as usize)
}
