//! The reader table of a lock file, read as liblmdb reads it (`mdb_reader_list`, `mdb_reader_check`), and without liblmdb:
//! that looks into a table only after it has opened the lock file for writing and locked it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};

const MAGIC: u32 = 0xBEEF_C0DE;
const CACHE_LINE: u64 = 64;
const MUTEX: u64 = size_of::<libc::pthread_mutex_t>() as u64;
/// The table starts after the header, which ends with the readers' mutex, and the writers' mutex, each in cache lines of
/// its own (mdb.c, `MDB_txninfo`).
const TABLE_AT: u64 = (24 + MUTEX).next_multiple_of(CACHE_LINE) + MUTEX.next_multiple_of(CACHE_LINE);
/// A slot is a cache line: transaction (8 bytes), process id (4), thread (8).
const SLOT: u64 = CACHE_LINE;

/// Who reads, according to the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderTable {
    /// Readers that may be there at a time; 126 unless the program that made the file asked for others.
    pub slots: u64,
    /// Slots that readers have taken. None where nobody has the database open: whoever opens it next begins a new table,
    /// whatever the old one holds (`mdb_env_setup_locks`).
    pub used: usize,
    /// Those of processes that hold their lock no longer: they are gone, and their slots stay taken until somebody clears
    /// them. None are known where the file system does not tell about locks.
    pub stale: usize,
}

/// Why there is no table to look at.
#[derive(Debug, thiserror::Error)]
pub enum NoTable {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("nobody has opened the database with it yet")]
    Unused,
    #[error("not a lock file of LMDB")]
    Foreign,
    #[error(
        "of the format {0:#x}, which is neither that of LMDB 0.9 nor that of its newer branch on this kind of machine"
    )]
    Format(u32),
}

impl ReaderTable {
    /// Reads the table of the lock file at `path`.
    ///
    /// # Errors
    /// [`NoTable`].
    pub fn read(path: &Path) -> Result<Self, NoTable> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            return Err(NoTable::Unused);
        }
        let mut input = BufReader::new(&file);
        let mut header = [0; TABLE_AT as usize];
        if length < TABLE_AT + SLOT || input.read_exact(&mut header).is_err() {
            return Err(NoTable::Foreign);
        }
        let slots = (length - TABLE_AT) / SLOT;
        let reached = reached(&header)?;
        let (mut used, mut stale) = (0, 0);
        if is_locked(&file, 0) != Some(false) {
            input.seek(SeekFrom::Start(TABLE_AT))?;
            let mut slot = [0; SLOT as usize];
            for _ in 0..u64::from(reached).min(slots) {
                input.read_exact(&mut slot)?;
                let Some(pid) = taken(&slot) else { continue };
                used += 1;
                stale += usize::from(is_locked(&file, pid.into()) == Some(false));
            }
        }
        Ok(Self { slots, used, stale })
    }
}

/// Slots that were ever taken since the table was begun: those behind hold what an earlier table left there (mdb.c,
/// `mti_numreaders`).
fn reached(header: &[u8; TABLE_AT as usize]) -> Result<u32, NoTable> {
    let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    match (word(0), word(4)) {
        (MAGIC, FORMAT_0_9) => Ok(word(16 + MUTEX as usize)),
        (MAGIC, FORMAT_NEWER) => Ok(word(16)),
        (MAGIC, format) => Err(NoTable::Format(format)),
        _ => Err(NoTable::Foreign),
    }
}

/// The process that has taken a slot, which stands behind the number of its transaction; none where it is free.
fn taken(slot: &[u8; SLOT as usize]) -> Option<u32> {
    let [_, _, _, _, _, _, _, _, p0, p1, p2, p3, ..] = *slot;
    Some(u32::from_ne_bytes([p0, p1, p2, p3])).filter(|&pid| pid != 0)
}

/// Whether another process holds a lock on a byte: on the first, as long as it has the environment open
/// (`mdb_env_excl_lock`); on the one at its process id, from its first read transaction on (`mdb_reader_pid`).
fn is_locked(file: &File, at: libc::off_t) -> Option<bool> {
    let mut question = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at,
        l_len: 1,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_GETLK(&mut question)).ok()?;
    Some(question.l_type != libc::F_UNLCK as libc::c_short)
}

/// `MDB_LOCK_FORMAT` of 0.9 with mutexes and process ids as Linux has them. Its header has the mutex before the numbers.
const FORMAT_0_9: u32 = 1 | 1 << 16;

/// `MDB_LOCK_FORMAT` of the newer branch (0.9.70): version 2 and, above its 12 bits, the sizes of what the file consists of
/// (mdb.c, `MDB_lock_desc`). Its header has the mutex after the numbers.
const FORMAT_NEWER: u32 = {
    let mutexes = 10 + log2_mod(align_of::<libc::pthread_mutex_t>(), 5) + MUTEX as usize / 4 % 22 * 5;
    let sizes = 6 * (size_of::<libc::pid_t>() / 4 % 3)
        + 18 * (size_of::<libc::pthread_t>() / 4 % 5)
        + 90 * ((24 + MUTEX) / CACHE_LINE % 3) as usize
        + 270 * (mutexes % 120);
    let wide_transactions = 1 << 15;
    let locks_by_process_id = 1 << 17;
    2 + ((sizes + wide_transactions + locks_by_process_id) << 12) as u32
};

/// mdb.c, `LOG2_MOD`.
const fn log2_mod(power: usize, bits: u32) -> usize {
    7 - 86 / (power % ((1 << bits) - 1) + 11)
}
