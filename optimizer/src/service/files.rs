//! The data files and the pools: one of each per file and per mount, whoever reads.

use super::worker::lock;
use crate::engine::{DataFile, FileRecord, Held, Identity, Pool, SentFile, Way};
use crate::memory::Memory;
use crate::policy::retention::{AtWork, Holder};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How old what is told of memory may be: eight files tell it, at each window of each reader.
const FRESH: Duration = Duration::from_millis(20);

/// Mounts that are remembered when nobody reads there.
const MOUNTS: usize = 64;

#[derive(Default)]
struct Known {
    files: HashMap<Identity, (Weak<FileRecord>, Weak<DataFile>)>,
    /// By the device numbers of their mounts.
    pools: HashMap<u64, Arc<Pool>>,
}

pub struct Files {
    known: Mutex<Known>,
    /// Bytes of all files that were fetched and not dropped.
    pub held: Arc<Held>,
    memory: Memory,
    /// What it allowed, and when.
    budget: Mutex<Option<(Instant, u64)>>,
    at_work: Mutex<AtWork>,
    origin: Instant,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            held: Arc::default(),
            memory: Memory::here(),
            budget: Mutex::default(),
            at_work: Mutex::default(),
            origin: Instant::now(),
        }
    }
}

impl Files {
    /// The file, on the descriptor that came first, filled by the engine that was asked for first. It is let go of when
    /// its last mapping is gone; its record stays while someone has to report on it.
    ///
    /// Asks the file system, which may not answer for long: nothing is held meanwhile.
    pub fn find_or_add(&self, file: SentFile, engine: Option<Way>) -> io::Result<Arc<DataFile>> {
        check(&file)?;
        let identity = Identity::of(&file)?;
        let size = file.metadata()?.len();
        let record = match lock(&self.known).find(identity, size) {
            Some((_, Some(open))) => return Ok(open),
            Some((record, None)) => Some(record),
            None => None,
        };
        let file = Arc::new(DataFile::new(file, record, engine, &self.held)?);
        let mut known = lock(&self.known);
        if let Some((_, Some(open))) = known.find(identity, size) {
            return Ok(open);
        }
        known.files.insert(identity, (Arc::downgrade(&file.record), Arc::downgrade(&file)));
        Ok(file)
    }

    /// Bytes of page cache that the data files may take, as memory allowed a moment ago.
    pub fn budget(&self) -> u64 {
        let known = *lock(&self.budget);
        match known {
            Some((when, bytes)) if when.elapsed() < FRESH => bytes,
            _ => {
                let bytes = self.memory.budget();
                *lock(&self.budget) = Some((Instant::now(), bytes));
                bytes
            }
        }
    }

    /// The reader of a mapping gets on. Returns how many do, of whatever file: they share the budget.
    pub fn note_at_work(&self, holder: Holder) -> u64 {
        lock(&self.at_work).note(holder, self.origin.elapsed())
    }

    /// The mapping is gone.
    pub fn forget(&self, holder: Holder) {
        lock(&self.at_work).forget(holder);
    }

    /// The pool of the file's mount. It stays when nobody reads there any more: what it has measured holds for the next file,
    /// and what is still in flight (of a mount that hangs) counts among the requests that may be.
    pub fn pool_of(&self, file: &DataFile) -> Arc<Pool> {
        let mut known = lock(&self.known);
        let device = file.identity.device;
        if known.pools.len() >= MOUNTS && !known.pools.contains_key(&device) {
            known.pools.retain(|_, pool| Arc::strong_count(pool) > 1);
        }
        Arc::clone(known.pools.entry(device).or_default())
    }
}

/// Whether it can be read as all readers of the file need it: it will be read for others, too. Who maps a file has it open
/// for reading (mmap(2)).
fn check(file: &File) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    let is_readable = flags & OFlag::O_ACCMODE != OFlag::O_WRONLY && !flags.contains(OFlag::O_PATH);
    match file.metadata()?.is_file() {
        true if is_readable && !flags.contains(OFlag::O_DIRECT) => Ok(()),
        true => Err(io::Error::other("its descriptor is not open for reading through the page cache")),
        false => Err(io::Error::other("it is no regular file")),
    }
}

impl Known {
    /// What is known of a file. One that has changed its length is another file, with another end.
    fn find(&mut self, identity: Identity, size: u64) -> Option<(Arc<FileRecord>, Option<Arc<DataFile>>)> {
        self.files.retain(|_, (record, _)| record.strong_count() > 0);
        let (record, open) = self.files.get(&identity)?;
        let record = record.upgrade().filter(|record| record.size == size)?;
        Some((record, open.upgrade()))
    }
}
