//! The reader table of a lock file, read without opening the environment: that would write to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};

const MAGIC: u32 = 0xBEEF_C0DE;
/// The table starts after two cache lines: the header with one mutex, and the writers' mutex (mdb.c, `MDB_txninfo`, on
/// Linux with 64 bits; the same in 0.9 and in the newer branches).
const TABLE_AT: u64 = 128;
/// A slot is a cache line: transaction (8 bytes), process id (4), thread (8).
const SLOT: u64 = 64;

/// Who reads, according to the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderTable {
    /// Readers that may be there at a time; 126 unless the program that made the file asked for others.
    pub slots: u64,
    pub used: Vec<Slot>,
}

/// A slot that a reader has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub pid: u32,
    /// The snapshot that it reads; none between transactions.
    pub transaction: Option<u64>,
    /// The process holds its lock no longer: it is gone, and its slot stays taken until somebody clears it. Unknown where
    /// the file system does not tell about locks.
    pub stale: Option<bool>,
}

impl ReaderTable {
    /// Reads the table of the lock file at `path`; none where the file is not one (yet).
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut magic = [0; 4];
        if length < TABLE_AT + SLOT || file.read_at(&mut magic, 0)? < 4 || u32::from_ne_bytes(magic) != MAGIC {
            return Ok(None);
        }
        let slots = (length - TABLE_AT) / SLOT;
        let mut used = Vec::new();
        let mut slot = [0; 12];
        for index in 0..slots {
            file.read_exact_at(&mut slot, TABLE_AT + index * SLOT)?;
            let [t0, t1, t2, t3, t4, t5, t6, t7, p0, p1, p2, p3] = slot;
            let pid = u32::from_ne_bytes([p0, p1, p2, p3]);
            let transaction = u64::from_ne_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
            if pid != 0 {
                // liblmdb marks a slot without a transaction with the largest number.
                let transaction = Some(transaction).filter(|&transaction| transaction != u64::MAX);
                used.push(Slot { pid, transaction, stale: is_stale(&file, pid) });
            }
        }
        Ok(Some(Self { slots, used }))
    }

    pub fn stale(&self) -> usize {
        self.used.iter().filter(|slot| slot.stale == Some(true)).count()
    }
}

/// A reader keeps the byte at the offset of its process id locked for as long as it lives (mdb.c, `mdb_reader_pid`).
fn is_stale(file: &File, pid: u32) -> Option<bool> {
    let mut question = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: libc::off_t::from(pid),
        l_len: 1,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_GETLK(&mut question)).ok()?;
    Some(question.l_type == libc::F_UNLCK as libc::c_short)
}
