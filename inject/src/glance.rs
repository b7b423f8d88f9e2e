//! What calls look at, in one cache line: whichever file a value is of, `open` would else wait for several lines that the kernel's look
//! for the path has evicted (5 to 15 ns, by where the linker puts them).

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize};

/// Bytes of a cache line (x86-64, and most of arm64).
const LINE: usize = 64;

#[repr(align(64))]
pub struct Glance {
    /// All mappings ever armed lie between these (`registry::brief`).
    pub lowest: AtomicUsize,
    pub highest: AtomicUsize,
    /// Slots of the table from this one on have never been used.
    pub top: AtomicUsize,
    /// Slots that hold a mapping now.
    pub in_use: AtomicU32,
    /// How many threads are in the middle of what no checkpoint may meet (`handler::disposition`).
    pub suspended: AtomicU32,
    /// Bits that say whether our handler is in place (`handler::disposition`).
    pub handler: AtomicU8,
    /// Calls are looked at when they return (`in_use`).
    pub are_calls_watched: AtomicBool,
    /// LMDB readers are to get lock files of their own (`lockfile`).
    pub are_locks_private: AtomicBool,
}

const _: () = assert!(size_of::<Glance>() == LINE);

/// In `.data`, with which the addresses of the next library's functions share a page (`next`): one of `.bss` would be another that the
/// processor has to look up.
#[cfg_attr(not(test), unsafe(link_section = ".data.glance"))]
pub static GLANCE: Glance = Glance {
    lowest: AtomicUsize::new(usize::MAX),
    highest: AtomicUsize::new(0),
    top: AtomicUsize::new(0),
    in_use: AtomicU32::new(0),
    suspended: AtomicU32::new(0),
    handler: AtomicU8::new(0),
    are_calls_watched: AtomicBool::new(false),
    are_locks_private: AtomicBool::new(false),
};
