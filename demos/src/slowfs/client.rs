//! A client that reads ahead by itself, as Lustre's does: what `--no-willneed` mounts.
//!
//! The kernel has no switch that makes read-ahead calls do nothing on FUSE: with the read-ahead of
//! the mount at 0 they still bring in 128 KiB each, while faults and `read` ask for one page at a
//! time. That difference tells them apart. A request for one page is a demand: it costs one request
//! for the rest of its aligned chunk, and the other pages are stored into the page cache. A request
//! for more is a read-ahead call: it fails, which nobody sees, and its empty pages are dropped.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};

use fuser::{INodeNo, Notifier};

use crate::files::{OpenFile, Reads};

/// Filled in once the mount exists: the way to change the kernel's page cache.
pub type SharedNotifier = Arc<OnceLock<Notifier>>;

/// A chunk of a file: the offset is a multiple of the read-ahead.
type Chunk = (INodeNo, u64);

#[derive(Debug)]
pub struct Client {
    readahead: u64,
    page: u64,
    notifier: SharedNotifier,
    /// Chunks being brought in, from which offset on, and whether the storage has delivered them.
    fetches: Mutex<HashMap<Chunk, Fetch>>,
    delivered: Condvar,
}

#[derive(Clone, Copy, Debug)]
struct Fetch {
    from: u64,
    delivered: bool,
}

/// How a demand gets its page.
enum Demand {
    /// By asking the storage for this many bytes; the chunk is then entered as being fetched.
    Fetch(u64),
    /// From a chunk that another request has fetched in the meantime.
    Fetched,
}

impl Client {
    pub fn new(readahead: u64, notifier: SharedNotifier) -> Self {
        let page = rustix::param::page_size() as u64;
        Self {
            readahead: readahead.next_multiple_of(page).max(page),
            page,
            notifier,
            fetches: Mutex::default(),
            delivered: Condvar::new(),
        }
    }

    /// True if only a read-ahead call asks for so many bytes at once through the page cache.
    pub fn is_readahead_call(&self, size: u64) -> bool {
        size > self.page
    }

    /// Drops the pages that a failed read-ahead call leaves behind empty.
    pub fn drop_pages(&self, ino: INodeNo, offset: u64, size: u64) {
        if let Some(notifier) = self.notifier.get() {
            // Pages that stay empty are read when they are needed, so nothing depends on it.
            let _ = notifier.inval_inode(ino, offset as i64, size as i64);
        }
    }

    /// Serves one page, and brings in the rest of its chunk.
    pub fn serve(
        &self,
        reads: &Reads,
        ino: INodeNo,
        open: &OpenFile,
        offset: u64,
        size: u64,
        reply: impl FnOnce(io::Result<&[u8]>),
    ) {
        let chunk = (ino, offset - offset % self.readahead);
        match self.demand(chunk, offset) {
            Demand::Fetched => {
                let mut page = vec![0; size as usize];
                let count = open.file.read_at(&mut page, offset);
                reply(count.map(|count| &page[..count]));
            }
            Demand::Fetch(bytes) => reads.serve(open, offset, bytes, |result| {
                self.deliver(chunk);
                if let Ok(bytes) = &result {
                    // Before the reply, so that the reader finds the next page when it goes on. Only
                    // pages behind its own are stored: waiting for locked ones cannot go in circles.
                    self.store(ino, offset + self.page, bytes.get(self.page as usize..).unwrap_or_default());
                }
                self.fetches().remove(&chunk);
                reply(result.map(|bytes| &bytes[..bytes.len().min(size as usize)]));
            }),
        }
    }

    /// Decides how a demand is met; waits while another request fetches the page.
    fn demand(&self, chunk: Chunk, offset: u64) -> Demand {
        let mut fetches = self.fetches();
        loop {
            match fetches.get(&chunk) {
                Some(fetch) if fetch.from <= offset && fetch.delivered => return Demand::Fetched,
                Some(fetch) if fetch.from <= offset => {
                    fetches = self.delivered.wait(fetches).expect("no thread panics with it");
                }
                _ => {
                    fetches.insert(chunk, Fetch { from: offset, delivered: false });
                    return Demand::Fetch(chunk.1 + self.readahead - offset);
                }
            }
        }
    }

    fn deliver(&self, chunk: Chunk) {
        if let Some(fetch) = self.fetches().get_mut(&chunk) {
            fetch.delivered = true;
        }
        self.delivered.notify_all();
    }

    fn store(&self, ino: INodeNo, offset: u64, bytes: &[u8]) {
        if let Some(notifier) = self.notifier.get()
            && !bytes.is_empty()
        {
            // A page that cannot be stored is read when it is needed.
            let _ = notifier.store(ino, offset, bytes);
        }
    }

    fn fetches(&self) -> MutexGuard<'_, HashMap<Chunk, Fetch>> {
        self.fetches.lock().expect("no thread panics with it")
    }
}
