//! The data files and the pools: one of each per file and per mount, whoever reads.

use super::promises::Promises;
use super::sweeper::Sweeper;
use super::worker::lock;
use crate::engine::{DataFile, FileRecord, Held, Identity, Pool, SentFile, Way, mount_number};
use crate::memory::{DataPages, Memory};
use crate::policy::retention::{AtWork, Holder};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How old what is told of memory may be: eight files tell it, at each window of each reader.
const FRESH: Duration = Duration::from_millis(20);

/// Fetching waits when what is held exceeds what memory allows by this part of it: half of what that leaves free
/// (`Memory::budget`).
const BEYOND: u64 = 64;

/// Mounts that are remembered when nobody reads there any more.
const MOUNTS: usize = 16;

#[derive(Default)]
struct Known {
    files: HashMap<Identity, KnownFile>,
    /// By their device numbers.
    mounts: HashMap<u64, Mount>,
}

/// A file as it was seen first.
struct KnownFile {
    record: Weak<FileRecord>,
    open: Weak<DataFile>,
    mount: Option<u64>,
}

/// What holds for the files of one device, and which mount it was.
struct Mount {
    number: Option<u64>,
    pool: Arc<Pool>,
}

pub struct Files {
    known: Mutex<Known>,
    /// Bytes of all files that were fetched and not dropped.
    pub held: Arc<Held>,
    pub promises: Promises,
    pub sweeper: Sweeper,
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
            promises: Promises::default(),
            sweeper: Sweeper::default(),
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
        let mount = mount_number(&file);
        let record = match lock(&self.known).find(identity, size, mount) {
            Some((_, Some(open))) => return Ok(open),
            Some((record, None)) => Some(record),
            None => None,
        };
        let file = Arc::new(DataFile::new(file, record, engine, &self.held)?);
        let mut known = lock(&self.known);
        if let Some((_, Some(open))) = known.find(identity, size, mount) {
            return Ok(open);
        }
        let (record, open) = (Arc::downgrade(&file.record), Arc::downgrade(&file));
        known.files.insert(identity, KnownFile { record, open, mount });
        Ok(file)
    }

    /// Bytes of page cache that the data files may take, as memory allowed a moment ago.
    pub fn budget(&self) -> u64 {
        let known = *lock(&self.budget);
        match known {
            Some((when, bytes)) if when.elapsed() < FRESH => bytes,
            _ => {
                let held = &self.held;
                let data = DataPages { cached: held.known(), mapped: held.witnessed(), displaced: held.displaced() };
                let bytes = self.memory.budget(data);
                // As long as what is to leave leaves in time nothing comes near.
                self.held.set_bound((self.held.size() > bytes).then_some(bytes.saturating_add(bytes / BEYOND)));
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
        let number = mount_number(file.descriptor());
        let mut known = lock(&self.known);
        let device = file.identity.device;
        // As long as files of it are open it cannot be another one; later the kernel gives its device number to the next.
        let is_another = |mount: &Mount| !mount.is_in_use() && (number.is_none() || mount.number != number);
        if known.mounts.get(&device).is_some_and(is_another) {
            known.mounts.remove(&device);
        }
        if known.mounts.len() >= MOUNTS && !known.mounts.contains_key(&device) {
            known.mounts.retain(|_, mount| mount.is_in_use());
        }
        Arc::clone(&known.mounts.entry(device).or_insert_with(|| Mount { number, pool: Arc::default() }).pool)
    }
}

impl Mount {
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.pool) > 1
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
    /// What is known of a file. One that has changed its length is another file, with another end, and so is one of another mount
    /// that has the number of a device which is no more.
    fn find(
        &mut self,
        identity: Identity,
        size: u64,
        mount: Option<u64>,
    ) -> Option<(Arc<FileRecord>, Option<Arc<DataFile>>)> {
        self.files.retain(|_, file| file.record.strong_count() > 0);
        let file = self.files.get(&identity)?;
        let open = file.open.upgrade();
        let record = file.record.upgrade().filter(|record| record.size == size)?;
        (open.is_some() || file.mount == mount).then_some((record, open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};

    fn file(files: &Files) -> Arc<DataFile> {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(1 << 20).unwrap();
        files.find_or_add(SentFile::new(file), None).unwrap()
    }

    /// What was measured holds for the next file; of what may be another mount with the same device number, nothing is known.
    #[test]
    fn a_pool_stays_with_its_mount() {
        let files = Files::default();
        let (first, next) = (file(&files), file(&files));
        let pool = Arc::downgrade(&files.pool_of(&first));
        if mount_number(first.descriptor()).is_some() {
            assert!(Weak::ptr_eq(&pool, &Arc::downgrade(&files.pool_of(&next))));
        }
        lock(&files.known).mounts.values_mut().for_each(|mount| mount.number = None);
        let used = pool.upgrade().unwrap();
        assert!(Arc::ptr_eq(&used, &files.pool_of(&next)), "files of it are open");
        drop(used);
        assert!(!Weak::ptr_eq(&pool, &Arc::downgrade(&files.pool_of(&next))));
        // Another mount makes nobody forget it.
        let pool = Arc::downgrade(&files.pool_of(&next));
        let elsewhere = SentFile::new(memfd_create(c"elsewhere", MFdFlags::empty()).unwrap().into());
        elsewhere.set_len(1 << 20).unwrap();
        files.pool_of(&files.find_or_add(elsewhere, None).unwrap());
        assert_eq!(lock(&files.known).mounts.len(), 2);
        if mount_number(next.descriptor()).is_some() {
            assert!(Weak::ptr_eq(&pool, &Arc::downgrade(&files.pool_of(&next))));
        }
    }
}
