//! Waiting while the kernel drops all that is cached of a file, as FUSE and NFS do when it is opened anew.
//!
//! It does so page by page, from the first to the last, and waits for those that are being read
//! (`invalidate_inode_pages2_range` in mm/truncate.c). Where others come ahead of it all the time its way has no end: what
//! is read meanwhile is lost, and whoever opens the file waits. So nothing is sent until what is in flight has come, and has gone.

use super::file::DataFile;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

/// What has not gone after this has been read again, or only what left before was evicted to make room.
const LONGEST: Duration = Duration::from_millis(20);

/// Waiting takes no more than this, and a fiftieth of the time.
const ALLOWED: Duration = Duration::from_millis(300);

/// Between two looks.
const STEP: Duration = Duration::from_micros(500);

#[derive(Default)]
pub(super) struct Walk {
    /// Chunks in flight, and a byte of the one that came last.
    flying: AtomicUsize,
    last: AtomicU64,
    waiting: Mutex<()>,
    /// Milliseconds that have been waited.
    waited: AtomicU64,
}

impl Walk {
    pub(super) fn enter_flight(&self) {
        self.flying.fetch_add(1, Relaxed);
    }

    /// A chunk that ends here has come, or has failed.
    pub(super) fn leave_flight(&self, end: u64) {
        self.last.store(end.saturating_sub(1), Relaxed);
        self.flying.fetch_sub(1, Relaxed);
    }
}

impl DataFile {
    /// Whether what is cached seems to be dropped, and may be waited for. Who has opened the file reads its first pages
    /// again, so not only these are asked for.
    pub(super) fn is_being_dropped(&self) -> bool {
        let waited = Duration::from_millis(self.walk.waited.load(Relaxed));
        let Some(part) = self.kept.first().filter(|_| waited < ALLOWED + self.age() / 50) else { return false };
        let length = part.end - part.start;
        [0, length / 2, length / 8 * 7].into_iter().any(|at| self.has_left(part.start + at))
    }

    /// Waits until all is dropped, if it is being dropped. Not for threads that have chunks in flight.
    pub(super) fn wait_while_dropped(&self) {
        if !self.is_being_dropped() {
            return;
        }
        let _waiting = self.walk.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !self.is_being_dropped() {
            return;
        }
        let (since, mut landed) = (Instant::now(), None);
        while since.elapsed() < ALLOWED {
            if self.walk.flying.load(Relaxed) == 0 {
                let landed: &mut Instant = landed.get_or_insert_with(Instant::now);
                if self.has_left(self.walk.last.load(Relaxed)) || landed.elapsed() > LONGEST {
                    break;
                }
            }
            thread::sleep(STEP);
        }
        self.reconcile(0..u64::MAX);
        self.walk.waited.fetch_add(since.elapsed().as_millis() as u64 + 1, Relaxed);
    }

    fn has_left(&self, offset: u64) -> bool {
        !self.evicted(&(offset..offset + 1)).is_empty()
    }
}
