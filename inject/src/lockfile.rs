//! Private lock files for LMDB readers (`--private-lock`).
//!
//! A read-only environment opens its data file for reading and right after it, in the same thread, the lock file; any
//! other environment opens the lock file first and the data file for writing right after it (`mdb_env_open`). So a lock
//! file that is opened directly after its data file, while that is still open for reading, belongs to a reader: it gets
//! a file in memory instead, which nobody else sees.
//!
//! But a program may keep the data file open by itself, and then open an environment for writing. Both names of an
//! environment are written into one piece of memory (`mdb_fopen`; before 0.9.22 `mdb_env_open`), and a program's own name
//! is somewhere else: such an environment gets the shared lock file. Should a thread that was given a private one open
//! the data file for writing after all, it is refused: a writer without the shared lock file would destroy what other
//! writers write.

use crate::glance::GLANCE;
use crate::{handover, settings, sys};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Threads whose last open is remembered. One that is forgotten gets the shared lock file.
const THREADS: usize = 64;

/// `mm_magic` of a meta page, behind the page header of 16 bytes (LMDB, `MDB_MAGIC`).
const MAGIC: u32 = 0xBEEF_C0DE;
const MAGIC_OFFSET: u64 = 16;

/// A data file has two meta pages, of 4 KiB at least on all machines that run Linux. Shorter files are not looked into.
const SHORTEST: i64 = 8192;

/// What a thread opened last.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Last {
    Other = 0,
    /// An LMDB data file, for reading.
    ReadOnlyData = 1,
    /// A lock file, and was given a private one.
    PrivateLock = 2,
}

/// Device and inode number.
type File = (u64, u64);

/// All zeros at first: then it takes no room in the library's file.
struct Memory {
    thread: AtomicI32,
    /// A [`Last`]'s number. Unless it is that of a data file, the rest says nothing.
    last: AtomicU32,
    device: AtomicU64,
    inode: AtomicU64,
    descriptor: AtomicI32,
    /// Where the data file's name was.
    name: AtomicUsize,
}

static MEMORIES: [Memory; THREADS] = [const {
    Memory {
        thread: AtomicI32::new(0),
        last: AtomicU32::new(0),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
        descriptor: AtomicI32::new(0),
        name: AtomicUsize::new(0),
    }
}; THREADS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// What becomes of an `open`.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// Goes ahead.
    Open,
    /// A reader's lock file: a private one instead.
    Private,
    /// The data file, for writing, by a thread that was just given a private lock file.
    Refused,
}

/// Whether the user wishes private lock files at all.
pub fn are_private() -> bool {
    GLANCE.are_locks_private.load(Acquire)
}

/// Decides before the call, from the path relative to `folder` and the flags. Costs nothing without the wish.
pub fn decide(folder: c_int, path: &CStr, flags: c_int) -> Fate {
    if !are_private() || flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Fate::Open;
    }
    let Some(memory) = memory() else { return Fate::Open };
    let file = (memory.device.load(Relaxed), memory.inode.load(Relaxed));
    match memory.last.load(Relaxed) {
        last if last == Last::ReadOnlyData as u32 => {
            let still_open =
                sys::file_status(memory.descriptor.load(Relaxed)).is_ok_and(|status| identity(&status) == file);
            let is_readers = still_open
                && is_of_one_environment(memory.name.load(Relaxed), path)
                && data_file_of(folder, path) == Some(file);
            if is_readers { Fate::Private } else { Fate::Open }
        }
        last if last == Last::PrivateLock as u32 && file_at(folder, path) == Some(file) => Fate::Refused,
        _ => Fate::Open,
    }
}

/// A private lock file, of length 0 as LMDB expects of a new one.
pub fn make_private(path: &CStr, flags: c_int) -> sys::Result<c_int> {
    let file = sys::plain_memory_file(flags & libc::O_CLOEXEC != 0)?;
    if let Some(memory) = memory() {
        memory.last.store(Last::PrivateLock as u32, Relaxed);
    }
    handover::report_lock(true, path.to_bytes());
    Ok(file)
}

/// After a successful `open`: remembers it. An LMDB data file that is opened for writing is reported.
pub fn opened(path: &CStr, flags: c_int, descriptor: c_int) {
    if !are_private() {
        return;
    }
    let Some(memory) = memory() else { return };
    memory.last.store(Last::Other as u32, Relaxed);
    let Ok(status) = sys::file_status(descriptor) else { return };
    let mut magic = [0u8; 4];
    let is_data = status.st_mode & libc::S_IFMT == libc::S_IFREG
        && status.st_size >= SHORTEST
        && flags & libc::O_ACCMODE != libc::O_WRONLY
        && sys::read_at(descriptor, &mut magic, MAGIC_OFFSET) == Ok(4)
        && u32::from_ne_bytes(magic) == MAGIC;
    if is_data && flags & libc::O_ACCMODE == libc::O_RDWR {
        handover::report_lock(false, path.to_bytes());
    } else if is_data {
        let (device, inode) = identity(&status);
        memory.device.store(device, Relaxed);
        memory.inode.store(inode, Relaxed);
        memory.descriptor.store(descriptor, Relaxed);
        memory.name.store(path.as_ptr().addr(), Relaxed);
        memory.last.store(Last::ReadOnlyData as u32, Relaxed);
    }
}

/// The calling thread's place; if it has none, one of another thread that then forgets.
fn memory() -> Option<&'static Memory> {
    let thread = sys::thread();
    if let Some(own) = MEMORIES.iter().find(|memory| memory.thread.load(Relaxed) == thread) {
        return Some(own);
    }
    let place = MEMORIES.get(NEXT.fetch_add(1, Relaxed) % THREADS)?;
    place.last.store(Last::Other as u32, Relaxed);
    place.thread.store(thread, Relaxed);
    Some(place)
}

/// Whether LMDB itself opened the data file whose name was at `data`: the lock file's is written over it, or, before
/// 0.9.22, stands directly before it.
fn is_of_one_environment(data: usize, lock: &CStr) -> bool {
    let at = lock.as_ptr().addr();
    data == at || data == at + lock.count_bytes() + 1
}

/// The data file that belongs to the lock file at this path: `data.mdb` beside `lock.mdb`, or `FILE` for `FILE-lock`.
#[inline(never)] // Its buffer must not weigh on the stacks of those who open other files.
fn data_file_of(folder: c_int, path: &CStr) -> Option<File> {
    let path = path.to_bytes();
    let (stem, name): (&[u8], &[u8]) = match (path.strip_suffix(b"lock.mdb"), path.strip_suffix(b"-lock")) {
        (Some(folder), _) if folder.is_empty() || folder.ends_with(b"/") => (folder, b"data.mdb"),
        (_, Some(data)) => (data, b""),
        _ => return None,
    };
    let mut buffer = [0u8; settings::PATH + 1];
    buffer.get_mut(..stem.len())?.copy_from_slice(stem);
    buffer.get_mut(stem.len()..stem.len() + name.len())?.copy_from_slice(name);
    file_at(folder, CStr::from_bytes_until_nul(&buffer).ok()?)
}

fn file_at(folder: c_int, path: &CStr) -> Option<File> {
    sys::status_at(folder, path).ok().map(|status| identity(&status))
}

fn identity(status: &libc::stat) -> File {
    (status.st_dev, status.st_ino)
}
