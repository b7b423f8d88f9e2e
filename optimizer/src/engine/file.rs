//! A data file that readers map: one for all of them, on a descriptor that one of them handed over.
//!
//! The descriptor shares the reader's open file. Opening the file anew instead would make FUSE and NFS drop what is
//! cached of it.

use super::audience::Audiences;
use super::cached::Cached;
use super::failures::Failures;
use super::filling::Filling;
use super::held::Held;
use super::kept::Kept;
use super::residency::Residency;
use super::sent::SentFile;
use super::trust::{LONG_PERIOD, PERIOD, Trust};
use super::walk::Walk;
use super::ways::Way;
use super::{CHUNK, LARGE_PIECE, LARGEST_CHUNK};
use crate::policy::retention::Retention;
use memmap2::{MmapOptions, MmapRaw};
use nix::sys::statfs::fstatfs;
use std::fs::{self, File};
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Identity {
    pub fn of(file: &File) -> std::io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// What was done with one file for one session.
#[derive(Default)]
pub struct Account {
    /// Bytes that windows asked for.
    pub requested: AtomicU64,
    /// Bytes that were left to the program for want of memory.
    pub unafforded: AtomicU64,
    /// Bytes of those asked for that were read in.
    pub fetched: AtomicU64,
    /// Bytes that were in the page cache already.
    pub cached: AtomicU64,
    /// Bytes dropped because there was no room for them.
    pub dropped: AtomicU64,
    /// Requests to the file system.
    pub requests: AtomicU64,
    /// Requests in flight, and the most there were.
    pub in_flight: AtomicU64,
    pub most_in_flight: AtomicU64,
    /// Once there was no thread to send any, and none could be started.
    pub lacked_threads: AtomicBool,
}

impl Account {
    pub(super) fn enter_flight(&self) {
        let now = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.most_in_flight.fetch_max(now, Relaxed);
        self.requests.fetch_add(1, Relaxed);
    }

    pub(super) fn leave_flight(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }
}

/// What is known of a data file: stays for the report when the file is let go of.
pub struct FileRecord {
    pub identity: Identity,
    pub path: PathBuf,
    pub size: u64,
    /// Magic number of the file system's type (statfs(2)): told in reports, never decided by.
    pub file_system: i64,
    /// Read-ahead of its device in bytes, where the kernel tells.
    pub read_ahead: Option<u64>,
    pub residency: Residency,
    pub(super) filling: Filling,
    pub(super) walk: Walk,
    /// What was fetched and not dropped.
    pub kept: Kept,
    /// Who hears what comes and goes.
    pub audiences: Audiences,
    /// Since when it is known: times of what follows count from here.
    origin: Instant,
    retention: Mutex<Retention>,
    /// So far it was looked what the kernel has evicted.
    pub(super) reconciled: AtomicU64,
    pub(super) trust: Trust,
    /// What could not be read.
    pub failures: Failures,
}

/// A data file that someone has mapped. Its descriptor keeps the reader's open file, and with it the locks on that, so
/// it goes with the last mapping.
pub struct DataFile {
    pub record: Arc<FileRecord>,
    pub(super) file: SentFile,
    mapping: OnceLock<Option<(MmapRaw, bool)>>,
    pub(super) cached: Cached,
}

impl Drop for DataFile {
    fn drop(&mut self) {
        self.record.kept.close();
    }
}

impl Deref for DataFile {
    type Target = FileRecord;

    fn deref(&self) -> &FileRecord {
        &self.record
    }
}

impl DataFile {
    /// The file behind a descriptor that a reader handed over; `known`, if it was there before. If an engine was asked
    /// for, no other is tried as long as it works.
    pub fn new(
        file: SentFile,
        known: Option<Arc<FileRecord>>,
        engine: Option<Way>,
        held: &Arc<Held>,
    ) -> std::io::Result<Self> {
        let record = match known {
            Some(record) => record,
            None => Arc::new(FileRecord::of(&file, engine, held)?),
        };
        record.kept.open();
        let opened = Self { cached: Cached::new(record.residency, held), record, file, mapping: OnceLock::new() };
        // What nobody read meanwhile may have left.
        opened.reconcile(0..u64::MAX);
        Ok(opened)
    }

    /// Does what may ask the file system, and will be needed: who has a lock later need not wait for that. Where read-ahead is
    /// off, or nobody tells, how it is to be mapped is not known before read-ahead calls have been tried. Where other engines
    /// serve, it is not mapped: some file systems bound how many mappings there are.
    pub fn prepare(&self) {
        let is_wanted = self.filling.is_on_trial() || self.filling.is_trying() || self.filling.next() == Way::Populate;
        if is_wanted && self.filling.offers(Way::Populate) && self.reads_ahead() {
            self.mapping();
        }
    }

    /// A mapping of the whole file, made when it is first needed, and whether its faults read in large pieces; `None`
    /// where the file cannot be mapped.
    pub(super) fn mapping(&self) -> Option<&(MmapRaw, bool)> {
        let map = || {
            let mapping = MmapOptions::new().len(self.size as usize).map_raw_read_only(&*self.file).ok()?;
            let advise = |advice| {
                // SAFETY: advice on our own mapping, which nobody reads.
                unsafe { libc::madvise(mapping.as_mut_ptr().cast(), mapping.len(), advice) == 0 }
            };
            let is_large = self.reads_large() && advise(libc::MADV_HUGEPAGE) && advise(libc::MADV_RANDOM);
            Some((mapping, is_large))
        };
        self.mapping.get_or_init(map).as_ref()
    }

    /// Whether a fault may ask for a large piece. Where the kernel's read-ahead is off, or nobody tells, and calls for it did
    /// nothing, the file system reads ahead by itself (Lustre): faults for a page make it do so, larger ones come to nothing, too.
    fn reads_large(&self) -> bool {
        self.reads_ahead() || self.filling.offers(Way::ReadAhead)
    }

    pub fn descriptor(&self) -> &File {
        &self.file
    }

    /// The engine for the first chunk of this extent; what lies around an `exact` one is not wanted.
    pub(super) fn way(&self, extent: &Range<u64>, is_exact: bool) -> Way {
        let in_piece = extent.end.min((extent.start / LARGE_PIECE + 1) * LARGE_PIECE) - extent.start;
        let is_short = || in_piece < LARGE_PIECE / 2 && self.chunk(Way::Populate) == LARGE_PIECE;
        match self.filling.next() {
            // A read makes the kernel read on behind it.
            _ if is_exact && !self.retention().has_several_readers() && self.filling.offers(Way::ReadAhead) => {
                Way::ReadAhead
            }
            // A large piece would bring in more than was asked for, and is better than nothing.
            Way::Populate if (is_exact || is_short()) && self.filling.offers(Way::Read) => Way::Read,
            way => way,
        }
    }

    /// Bytes of the pieces that an engine brings in at once.
    pub(super) fn chunk(&self, way: Way) -> u64 {
        match way {
            Way::Populate if self.mapping().is_some_and(|&(_, is_large)| is_large) => LARGE_PIECE,
            _ => self.request(),
        }
    }
}

impl FileRecord {
    fn of(file: &File, engine: Option<Way>, held: &Arc<Held>) -> std::io::Result<Self> {
        let residency = Residency::of(file);
        let metadata = file.metadata()?;
        let read_ahead = read_ahead_of(metadata.dev());
        Ok(Self {
            identity: Identity { device: metadata.dev(), inode: metadata.ino() },
            path: fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?,
            size: metadata.size(),
            file_system: fstatfs(file).map_or(0, |status| status.filesystem_type().0),
            read_ahead,
            filling: Filling::new(engine, residency, read_ahead.is_some_and(|bytes| bytes > 0)),
            walk: Walk::default(),
            kept: Kept::new(metadata.size(), held, residency.tells_evicted()),
            audiences: Audiences::default(),
            origin: Instant::now(),
            retention: Mutex::default(),
            reconciled: AtomicU64::new(0),
            trust: Trust::new(if residency == Residency::Unknown { LONG_PERIOD } else { PERIOD }),
            residency,
            failures: Failures::default(),
        })
    }

    /// Whether the kernel is known to read ahead.
    fn reads_ahead(&self) -> bool {
        self.read_ahead.is_some_and(|bytes| bytes > 0)
    }

    /// Bytes in one read: the read-ahead of the device, between bounds, for a read that asks for more is cut into
    /// pieces of that length which wait for each other.
    pub fn request(&self) -> u64 {
        self.read_ahead.unwrap_or(CHUNK).clamp(CHUNK, LARGEST_CHUNK)
    }

    /// The time, on the clock of [`Self::retention`] and [`Self::failures`].
    pub fn age(&self) -> Duration {
        self.origin.elapsed()
    }

    /// What its readers have passed and is to leave.
    pub fn retention(&self) -> MutexGuard<'_, Retention> {
        self.retention.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether nothing is to be fetched of it now, for nothing could be read.
    pub fn is_resting(&self) -> bool {
        self.failures.is_resting(self.age())
    }

    /// Whether it is filled by this engine because a session asked for it.
    pub fn is_filled_by(&self, engine: Way) -> bool {
        self.filling.is_by(engine)
    }

    /// Bytes that each engine brought in, the one with the most first.
    pub fn engines(&self) -> Vec<(&'static str, u64)> {
        self.filling.shares()
    }

    /// Whether it was to be filled by this engine, which has no effect on it.
    pub fn is_without_effect(&self, engine: Way) -> bool {
        self.filling.is_unmet(engine)
    }
}

/// `/sys/class/bdi/MAJOR:MINOR/read_ahead_kb`, in bytes.
fn read_ahead_of(device: u64) -> Option<u64> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let text = fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).ok()?;
    text.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
