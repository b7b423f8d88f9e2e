//! How a tree's pages reach memory.
//!
//! The mapping has no read-ahead (MDB_NORDAHEAD), so a walk brings in exactly the pages that it touches: right where most
//! of the file is values in overflow pages. Where records lie in the leaf pages, the tree is most of the file, and page
//! after page would cost one latency each: then the file is read ahead of the walk, many requests at a time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

use super::env::{Env, Stat};

/// One read: large enough for a network file system, a small part of [`AHEAD`].
const CHUNK: u64 = 1 << 20;
/// Reads at a time: what it takes to fill 400 MB/s at 2 ms for each 128 KiB that the kernel asks for.
const READERS: u64 = 16;
/// Bytes that the reads may be ahead of what the walk has visited: a bound on page cache, not on memory of this process.
const AHEAD: u64 = 256 << 20;

/// Whether a walk should read the whole file rather than the pages that it touches.
///
/// A page by itself costs a latency, in which storage that is read with many requests at a time delivers 50 pages or more
/// (2 ms at 400 MB/s: 200). Four times the bytes are worth that, and are not reached by values in overflow pages: one leaf
/// page then holds the keys of dozens.
fn worth_streaming(tree_pages: u64, used_pages: u64) -> bool {
    tree_pages.saturating_mul(4) >= used_pages
}

impl Stat {
    /// Pages that a walk of the tree touches.
    pub fn tree_pages(&self) -> u64 {
        self.branch_pages + self.leaf_pages
    }
}

/// Told by a walk where it is; in stream mode it reads the file ahead of it.
pub struct Fetcher<'a>(Option<&'a Stream>);

impl Fetcher<'_> {
    /// Each page when it is touched.
    pub fn pages() -> Self {
        Fetcher(None)
    }

    /// The walk has come to the leaf page at `offset`.
    pub(super) fn arrived_at(&mut self, offset: u64) {
        if let Some(stream) = self.0 {
            stream.arrived_at(offset);
        }
    }
}

impl Env {
    /// Runs `walk`, which visits `tree_pages` pages, with the fetcher that suits it.
    pub fn fetching<R>(&self, tree_pages: u64, walk: impl FnOnce(&mut Fetcher<'_>) -> R) -> R {
        let end = self.used.min(self.file_size);
        // A window's worth of latencies is not worth threads; and a tree that fits one read needs none.
        if !worth_streaming(tree_pages, end / self.page_size) || end <= CHUNK {
            return walk(&mut Fetcher::pages());
        }
        let Ok(file) = self.descriptor().try_clone_to_owned().map(File::from) else {
            return walk(&mut Fetcher::pages());
        };
        let stream = Stream::new(end, self.page_size);
        thread::scope(|scope| {
            let _stop = StopOnDrop(&stream);
            let is_read_ahead = stream.start(scope, &file);
            walk(&mut Fetcher(is_read_ahead.then_some(&stream)))
        })
    }
}

/// Reads a file from its first byte to `end`, a bounded way ahead of a walk.
struct Stream {
    end: u64,
    page_size: u64,
    /// The next chunk that nobody reads yet.
    next: AtomicU64,
    /// Which chunks have been read.
    done: Box<[AtomicBool]>,
    walk: Mutex<Walk>,
    moved: Condvar,
}

#[derive(Default)]
struct Walk {
    /// Bytes of leaf pages visited, in whatever order.
    visited: u64,
    over: bool,
}

impl Stream {
    fn new(end: u64, page_size: u64) -> Self {
        let done = (0..end.div_ceil(CHUNK)).map(|_| AtomicBool::new(false)).collect();
        Self { end, page_size, next: AtomicU64::new(0), done, walk: Mutex::default(), moved: Condvar::new() }
    }

    /// Starts the readers: as many as this process may have (`ulimit -u`), which can be none; then it is false.
    fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, file: &'scope File) -> bool {
        let begin = |_: &u64| thread::Builder::new().spawn_scoped(scope, || self.read(file)).is_ok();
        (0..READERS.min(self.done.len() as u64)).take_while(begin).count() > 0
    }

    fn read(&self, file: &File) {
        let mut buffer = vec![0; CHUNK as usize];
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(done) = self.done.get(chunk as usize) else { return };
            if !self.wait_for_turn(chunk) {
                return;
            }
            // A read that fails fails again where the walk touches the page, and there it is reported.
            let _ = file.read_at(&mut buffer, chunk * CHUNK);
            done.store(true, Ordering::Release);
            drop(self.lock());
            self.moved.notify_all();
        }
    }

    /// Waits until the chunk is within the window; false when the walk is over.
    fn wait_for_turn(&self, chunk: u64) -> bool {
        let mut walk = self.lock();
        while !walk.over && !near(chunk, &walk) {
            walk = self.moved.wait(walk).unwrap_or_else(PoisonError::into_inner);
        }
        !walk.over
    }

    /// Counts a visited leaf page, and waits for the chunk after it, which the walk will enter next: touching one of its
    /// pages before it is read would fetch that page alone.
    fn arrived_at(&self, offset: u64) {
        let mut walk = self.lock();
        let before = walk.visited / CHUNK;
        walk.visited += self.page_size;
        if walk.visited / CHUNK != before {
            self.moved.notify_all();
        }
        let chunk = (offset / CHUNK + 1).min((self.end - 1) / CHUNK);
        let done = &self.done[chunk as usize];
        while !done.load(Ordering::Acquire) && near(chunk, &walk) {
            walk = self.moved.wait(walk).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Walk> {
        self.walk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a chunk is within the window, so that a reader that takes it reads it at once. The window moves faster than the
/// walk where only a part of the pages is the tree's.
fn near(chunk: u64, walk: &Walk) -> bool {
    chunk * CHUNK <= walk.visited.saturating_mul(4) + AHEAD
}

/// Sends the readers home, also when the walk panics.
struct StopOnDrop<'a>(&'a Stream);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_what_is_mostly_tree() {
        // 1,281,167 records of 100 bytes; 100,000 of 1000, inserted in random order, 40 % of the pages free.
        assert!(worth_streaming(37_850, 37_861));
        assert!(worth_streaming(34_563, 59_313));
        // 10,000 records of 100 KB, 200,000 of 4 KB.
        assert!(!worth_streaming(66, 250_068));
        assert!(!worth_streaming(1_290, 401_301));
    }
}
