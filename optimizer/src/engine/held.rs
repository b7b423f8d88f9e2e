//! What is held of files, and whether that is more than there is memory for.
//!
//! What is to leave is dropped by a thread that waits for its turn where others keep all processors busy, a tenth of a second now
//! and then. What is fetched meanwhile would make the kernel evict, and that takes what was read longest ago: of what is read in
//! a circle it is always what is needed next. So fetching waits for what is to leave, for a moment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// Where nothing has left for so long nothing leaves soon: somebody has it mapped, or no reader comes to it.
pub(super) const LONGEST: Duration = Duration::from_millis(200);

/// What is held of some files, as long as someone has them mapped.
#[derive(Default)]
pub struct Held {
    pub(super) bytes: AtomicU64,
    pub(super) crowding: AtomicU64,
    /// Bytes of these that the kernel has evicted lately, beyond what is known to crowd.
    pub(super) displaced: AtomicU64,
    pub(super) size: AtomicU64,
    /// Bytes that were fetched and not dropped, of all files that are remembered.
    pub(super) remembered: AtomicU64,
    /// Bytes of these that this process has mapped, too, and not let go of since ([`super::witness`]).
    pub(super) witnessed: AtomicU64,
    /// Bytes that have left so far.
    pub(super) left: AtomicU64,
    /// Bytes beyond which fetching waits; 0: it never does.
    most: AtomicU64,
    /// Since when it waits for something to leave, and how much had left then.
    waits: Mutex<Option<(Instant, u64)>>,
}

impl Held {
    /// Bytes that were fetched and not dropped.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Bytes that the kernel has evicted of them while as many were cached that were not fetched here: their readers brought
    /// these in themselves, or somebody did before.
    pub fn crowding(&self) -> u64 {
        self.crowding.load(Relaxed)
    }

    /// Bytes that the kernel has evicted lately of what was fetched, beyond what is known to crowd.
    pub fn displaced(&self) -> u64 {
        self.displaced.load(Relaxed)
    }

    /// Bytes of page cache that are known to be of data files, also of those that nobody has mapped any more.
    pub fn known(&self) -> u64 {
        self.remembered.load(Relaxed).saturating_add(self.crowding())
    }

    /// Bytes of what was fetched that this process has mapped and not let go of since.
    pub fn witnessed(&self) -> u64 {
        self.witnessed.load(Relaxed)
    }

    /// Bytes of the files.
    pub fn size(&self) -> u64 {
        self.size.load(Relaxed)
    }

    /// Fetching waits while more than `most` bytes are held; without a bound it never does.
    pub fn set_bound(&self, most: Option<u64>) {
        self.most.store(most.map_or(0, |most| most.max(1)), Relaxed);
    }

    /// Whether more is held than there is room for, and something has left lately, or may have: then it is waited for.
    pub fn lacks_room(&self) -> bool {
        let most = self.most.load(Relaxed);
        most != 0 && self.bytes() > most && self.may_more_leave(Instant::now())
    }

    fn may_more_leave(&self, now: Instant) -> bool {
        let mut waits = self.waits.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let left = self.left.load(Relaxed);
        match *waits {
            Some((since, before)) if before == left => now.saturating_duration_since(since) < LONGEST,
            _ => {
                *waits = Some((now, left));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of which 10 bytes are held, though there is room for 8.
    fn held() -> Held {
        let held = Held::default();
        held.bytes.store(10, Relaxed);
        assert!(!held.lacks_room(), "without a bound");
        held.set_bound(Some(8));
        held
    }

    fn leave(held: &Held, bytes: u64) {
        held.bytes.fetch_sub(bytes, Relaxed);
        held.left.fetch_add(bytes, Relaxed);
    }

    #[test]
    fn what_leaves_makes_room() {
        let held = held();
        assert!(held.lacks_room());
        leave(&held, 2);
        assert!(!held.lacks_room());
        held.set_bound(Some(0));
        assert!(held.lacks_room());
        held.set_bound(None);
        assert!(!held.lacks_room());
    }

    #[test]
    fn where_nothing_leaves_nothing_is_waited_for() {
        let (held, begun) = (held(), Instant::now());
        assert!(held.may_more_leave(begun) && held.may_more_leave(begun + LONGEST / 2));
        assert!(!held.may_more_leave(begun + LONGEST) && !held.may_more_leave(begun + 100 * LONGEST));
        leave(&held, 1);
        assert!(held.may_more_leave(begun + 101 * LONGEST) && !held.may_more_leave(begun + 102 * LONGEST));
    }
}
