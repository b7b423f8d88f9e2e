//! Waiting while more is held than there is memory for.
//!
//! What is to leave is dropped by a thread that waits for its turn where others keep all processors busy, a tenth of a second now
//! and then. What is fetched meanwhile would make the kernel evict, and that takes what was read longest ago: of what is read in
//! a circle that is always what is needed next. So nothing is sent until what is to leave has left.

use super::file::DataFile;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

/// What has not left after this does not leave soon: somebody has it mapped, or the kernel has evicted it already.
const LONGEST: Duration = Duration::from_millis(200);

/// Waiting takes no more than this, and a quarter of the time: meanwhile the reader fetches for itself.
const ALLOWED: Duration = Duration::from_millis(500);

/// Between two looks.
const STEP: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Room {
    waiting: Mutex<()>,
    /// Milliseconds that have been waited.
    waited: AtomicU64,
}

impl DataFile {
    /// Whether more is held than there is memory for, and may be waited for.
    pub(super) fn lacks_room(&self) -> bool {
        let waited = Duration::from_millis(self.room.waited.load(Relaxed));
        self.kept.exceeds_memory() && waited < ALLOWED + self.age() / 4
    }

    /// Waits until there is room. Not for threads that have chunks in flight.
    pub(super) fn wait_for_room(&self) {
        if !self.lacks_room() {
            return;
        }
        let _waiting = self.room.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let since = Instant::now();
        while self.lacks_room() && since.elapsed() < LONGEST {
            thread::sleep(STEP);
        }
        self.room.waited.fetch_add(since.elapsed().as_millis() as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Held, SentFile};
    use std::sync::Arc;

    const MIB: u64 = 1 << 20;

    /// Of which 10 MiB are held, though memory has room for 8.
    fn file(held: &Arc<Held>) -> DataFile {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * MIB).unwrap();
        let file = DataFile::new(SentFile::new(file), None, None, held).unwrap();
        file.kept.add(0..10 * MIB);
        held.bound(Some(8 * MIB));
        file
    }

    #[test]
    fn what_leaves_makes_room() {
        let held = Arc::new(Held::default());
        let file = file(&held);
        assert!(file.lacks_room());
        std::thread::scope(|scope| {
            scope.spawn(|| file.wait_for_room());
            file.kept.remove(&(0..2 * MIB));
        });
        assert!(!file.lacks_room());
        held.bound(Some(4 * MIB));
        assert!(file.lacks_room());
        held.bound(None);
        assert!(!file.lacks_room());
    }

    /// Nothing leaves: fetching goes on all the same.
    #[test]
    fn it_is_not_waited_for_long() {
        let held = Arc::new(Held::default());
        let file = file(&held);
        while file.lacks_room() {
            file.wait_for_room();
        }
        assert!(file.kept.exceeds_memory());
    }
}
