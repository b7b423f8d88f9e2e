//! Private lock files for LMDB readers (`--private-lock`).
//!
//! LMDB opens the data file first and the lock file after it when the environment is read-only, and the lock file first
//! when it is not (`mdb_env_open`). So a lock file whose data file this process has opened for reading belongs to a
//! reader: it gets a file in memory instead, which nobody else sees. Who comes for the lock file first means to write,
//! and gets the shared one.

use crate::{handover, settings, sys};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// Data files remembered: a process with more environments open than this gets shared lock files for the oldest.
const REMEMBERED: usize = 32;

/// `mm_magic` of a meta page, behind the page header of 16 bytes (LMDB, `MDB_MAGIC`).
const MAGIC: u32 = 0xBEEF_C0DE;
const MAGIC_OFFSET: u64 = 16;

/// Paths, hashed, of LMDB data files that were opened for reading only.
static READ_ONLY: [AtomicU64; REMEMBERED] = [const { AtomicU64::new(0) }; REMEMBERED];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// What becomes of an `open` of a lock file.
#[derive(Debug, PartialEq, Eq)]
pub enum Lock {
    /// Not a lock file, or the wish is not set.
    None,
    /// For a reader: to be replaced by a private one.
    Private,
    /// For a writer: the shared one, and a warning.
    Shared,
}

/// What the path and the flags of an `open` say.
pub fn classify(path: &CStr, flags: c_int) -> Lock {
    if !settings::get().is_some_and(|settings| settings.private_lock) || flags & libc::O_ACCMODE != libc::O_RDWR {
        return Lock::None;
    }
    let path = path.to_bytes();
    let data = match (path.strip_suffix(b"lock.mdb"), path.strip_suffix(b"-lock")) {
        (Some(folder), _) if folder.is_empty() || folder.ends_with(b"/") => hash(&[folder, b"data.mdb"]),
        (_, Some(data)) => hash(&[data]),
        _ => return Lock::None,
    };
    if READ_ONLY.iter().any(|known| known.load(Acquire) == data) {
        Lock::Private
    } else if path.ends_with(b"lock.mdb") {
        Lock::Shared
    } else {
        Lock::None
    }
}

/// After a successful `open`: remembers the path if it is that of an LMDB data file opened for reading, forgets it if
/// it is opened for writing.
pub fn opened(path: &CStr, flags: c_int, file: c_int) {
    if !settings::get().is_some_and(|settings| settings.private_lock) {
        return;
    }
    let name = hash(&[path.to_bytes()]);
    if flags & libc::O_ACCMODE != libc::O_RDONLY {
        for known in READ_ONLY.iter().filter(|known| known.load(Acquire) == name) {
            known.store(0, Release);
        }
        return;
    }
    let regular = sys::file_status(file).is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFREG);
    let mut magic = [0u8; 4];
    if regular
        && sys::read_at(file, &mut magic, MAGIC_OFFSET) == Ok(4)
        && u32::from_ne_bytes(magic) == MAGIC
        && READ_ONLY.iter().all(|known| known.load(Acquire) != name)
        && let Some(place) = READ_ONLY.get(NEXT.fetch_add(1, Relaxed) % REMEMBERED)
    {
        place.store(name, Release);
    }
}

/// A private lock file, of length 0 as LMDB expects of a new one.
pub fn private(flags: c_int) -> sys::Result<c_int> {
    sys::plain_memory_file(flags & libc::O_CLOEXEC != 0)
}

/// Tells the optimizer, for the report.
pub fn report(lock: &Lock, path: &CStr) {
    if *lock != Lock::None {
        handover::report_lock(*lock == Lock::Private, path.to_bytes());
    }
}

/// FNV-1a, of the parts as one. Never 0, which marks an unused place.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325u64, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)) | 1
}
