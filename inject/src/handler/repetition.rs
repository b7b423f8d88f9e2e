//! Faults that come again though nothing has been closed: whatever was made of them, they are the program's own.
//!
//! What the kernel tells of a fault does not always show that no opening of pages helps: of a guard region that the program
//! has placed by a raw system call, or elsewhere than on x86-64 of a write to what is read-only. Natively such a fault
//! calls the program's handler, or kills; opened and tried again, it would come for ever.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// How often one thread may fault at one address again while nothing is closed. Once is usual (another thread has opened the page
/// meanwhile), more are rare. It is endless then.
pub const LIMIT: u64 = 100;

/// The low bits of [`LAST`], which count.
const COUNT: u64 = 0xff;

/// The last fault of each of some threads: a digest of it, and how often it has come.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static LAST: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

/// Takes note of a fault at `address`, and tells how often it has come before, at most [`LIMIT`] times. `frame`: where its
/// handler's arguments lie, which is at one place for a thread that goes round in circles, and at others for other threads.
/// `changes`: a number that changes whenever something is closed.
pub fn of(address: usize, frame: usize, changes: u32) -> u64 {
    let place = mixed(frame as u64) >> 60;
    let Some(last) = LAST.get(place as usize) else { return 0 };
    let digest = mixed(address as u64 ^ (frame as u64).rotate_left(24) ^ u64::from(changes).rotate_left(48)) & !COUNT;
    let before = last.load(Relaxed);
    let count = if before & !COUNT == digest { LIMIT.min((before & COUNT) + 1) } else { 0 };
    last.store(digest | count, Relaxed);
    if cfg!(feature = "sabotage-writes-swallowed") { 0 } else { count }
}

/// Depends on all bits, in the upper ones (Knuth, The Art of Computer Programming, vol. 3, 6.4: multiplication by 2^64
/// divided by the golden ratio).
fn mixed(word: u64) -> u64 {
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, for the table is one per process.
    #[test]
    fn what_repeats_without_a_change_is_endless() {
        let frame = 0x7ffd_1234_5678;
        let comes = |times: u64, address: usize, changes: u32| {
            (0..times).fold(false, |_, _| of(address, frame, changes) == LIMIT)
        };
        assert!(!comes(LIMIT, 4096, 1), "one is not a repetition");
        assert!(comes(1, 4096, 1));
        assert!(comes(5, 4096, 1), "it stays so");
        assert!(!comes(LIMIT, 4096, 2), "something was closed");
        assert!(!comes(LIMIT, 8192, 2), "it is another address");
        for change in 0..1000 {
            assert_eq!(of(4096, frame, change), 0, "closed again each time");
        }
    }
}
