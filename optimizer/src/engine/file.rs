//! A data file that readers map: one for all of them, on a descriptor that one of them handed over.
//!
//! The descriptor shares the reader's open file. Opening the file anew instead would make FUSE and NFS drop what is
//! cached of it.

use super::residency::Residency;
use super::{CHUNK, LARGEST_CHUNK, fill::Engine};
use nix::sys::statfs::fstatfs;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Mutex, OnceLock};

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

#[derive(Default)]
pub struct FileCounters {
    /// Bytes that windows asked for.
    pub requested: AtomicU64,
    /// Bytes of these that were read in.
    pub fetched: AtomicU64,
    /// Bytes of these that were in the page cache already.
    pub cached: AtomicU64,
    /// Requests to the file system.
    pub requests: AtomicU64,
    /// Requests in flight, and the most there were.
    pub in_flight: AtomicU64,
    pub most_in_flight: AtomicU64,
}

pub struct DataFile {
    pub file: File,
    pub identity: Identity,
    pub path: PathBuf,
    pub size: u64,
    /// Magic number of the file system's type (statfs(2)): told in reports, never decided by.
    pub file_system: i64,
    /// Read-ahead of its device in bytes, where the kernel tells.
    pub read_ahead: Option<u64>,
    pub residency: Residency,
    pub counters: FileCounters,
    pub(super) engine: OnceLock<Engine>,
    ended: Mutex<Option<String>>,
}

impl DataFile {
    pub fn new(file: File) -> std::io::Result<Self> {
        use std::os::fd::AsRawFd;
        let metadata = file.metadata()?;
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(Self {
            identity: Identity { device: metadata.dev(), inode: metadata.ino() },
            path,
            size: metadata.size(),
            file_system: fstatfs(&file).map_or(0, |status| status.filesystem_type().0),
            read_ahead: read_ahead_of(metadata.dev()),
            residency: Residency::of(&file),
            counters: FileCounters::default(),
            engine: OnceLock::new(),
            ended: Mutex::new(None),
            file,
        })
    }

    /// Bytes in one request: the read-ahead of the device, between bounds, for a read that asks for more is cut into
    /// pieces of that length which wait for each other.
    pub fn chunk(&self) -> u64 {
        self.read_ahead.unwrap_or(CHUNK).clamp(CHUNK, LARGEST_CHUNK)
    }

    /// Ends the acceleration of this file; the first reason stays.
    pub fn end(&self, reason: String) {
        self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(reason);
    }

    /// Why nothing is fetched of this file any more.
    pub fn ended(&self) -> Option<String> {
        self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub fn engine_name(&self) -> Option<&'static str> {
        self.engine.get().map(|engine| engine.name())
    }

    pub(super) fn enter_flight(&self) {
        let now = self.counters.in_flight.fetch_add(1, Relaxed) + 1;
        self.counters.most_in_flight.fetch_max(now, Relaxed);
        self.counters.requests.fetch_add(1, Relaxed);
    }

    pub(super) fn leave_flight(&self) {
        self.counters.in_flight.fetch_sub(1, Relaxed);
    }
}

/// `/sys/class/bdi/MAJOR:MINOR/read_ahead_kb`, in bytes.
fn read_ahead_of(device: u64) -> Option<u64> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let text = fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).ok()?;
    text.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
