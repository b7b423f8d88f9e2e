//! The engines, by name and in the order in which they are tried.

mod populate;
mod read;
mod read_ahead;
mod ring;
mod scrap;
mod single;

use super::file::DataFile;
use super::residency::Residency;
use super::{Engine, Failure, Traffic};
use crate::policy::choice::Contender;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::os::fd::AsRawFd;

pub use self::populate::is_known as is_populating_known;

/// Names an engine. The order is that of the trials: what costs less besides time comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// `readahead(2)`, checked: no copy.
    ReadAhead,
    /// `pread(2)` into a buffer that is thrown away: works nearly everywhere, and costs a copy.
    Read,
    /// The same through io_uring: fewer threads.
    Ring,
    /// `MADV_POPULATE_READ` on a mapping: large requests whatever the read-ahead; and for file systems whose `read` does
    /// not fill what mappings see.
    Populate,
}

impl Way {
    const ALL: [Self; 4] = [Self::ReadAhead, Self::Read, Self::Ring, Self::Populate];

    pub fn name(self) -> &'static str {
        match self {
            Self::ReadAhead => "readahead",
            Self::Read => "pread",
            Self::Ring => "io_uring",
            Self::Populate => "populate",
        }
    }

    /// Its part in the trials: 1.5 and 6 MiB, where the read-ahead is that of most mounts, and if the mapping is surely filled
    /// in `large` pieces, those for one and three times in flight.
    pub fn contender(self, large: bool) -> Contender {
        let (chunks, handicap) = match self {
            Self::ReadAhead => ([12, 48], 1.0),
            // A copy, and processors that a reader lacks: where a trial sees both equal, it takes a sixth longer than small pieces.
            Self::Read if large => ([12, 48], 1.1),
            Self::Read => ([12, 48], 1.2),
            // Workers of the kernel read for it, and wake it for each answer: where processors are short it falls behind.
            Self::Ring => ([12, 48], 2.0),
            // No copy, and an eighth of the requests.
            Self::Populate if large => ([4, 12], 1.0),
            Self::Populate => ([12, 48], 1.1),
        };
        Contender { chunks, handicap, is_read: matches!(self, Self::Read | Self::Ring) }
    }

    /// What can be tried on a file. Where residency cannot be asked for, nobody can tell read-ahead that does nothing, and
    /// what was cached is told by the thread that need not wait for it: one that has several requests in flight does.
    pub fn candidates(residency: Residency) -> Vec<Self> {
        let is_told = |way: &Self| residency != Residency::Unknown || matches!(way, Self::Read | Self::Populate);
        Self::ALL.into_iter().filter(is_told).collect()
    }
}

/// One thread's engines.
#[derive(Default)]
pub struct Engines {
    read: read::Read,
    read_ahead: read_ahead::ReadAhead,
    ring: ring::Ring,
    populate: populate::Populate,
}

impl Engines {
    pub fn get(&mut self, way: Way) -> &mut dyn Engine {
        match way {
            Way::ReadAhead => &mut self.read_ahead,
            Way::Read => &mut self.read,
            Way::Ring => &mut self.ring,
            Way::Populate => &mut self.populate,
        }
    }

    /// The last resort for a chunk that another engine did not bring in.
    pub fn read(&mut self, file: &DataFile, chunk: &Range<u64>) -> Result<(), Failure> {
        self.read.bring_in(file, chunk)
    }
}

/// An engine that serves one chunk at a time.
fn one_by_one(
    chunk: &Range<u64>,
    traffic: &mut dyn Traffic,
    bring_in: impl FnOnce(&Range<u64>) -> Result<(), Failure>,
) {
    let result = bring_in(chunk);
    traffic.done(chunk, result);
}

/// Has the kernel read a chunk ahead, which does not wait for it.
fn ask_for(file: &DataFile, chunk: &Range<u64>) -> std::io::Result<()> {
    let length = (chunk.end - chunk.start) as usize;
    // SAFETY: takes numbers only.
    let asked = unsafe { libc::readahead(file.file.as_raw_fd(), chunk.start as libc::off64_t, length) };
    Ok(Errno::result(asked).map(drop)?)
}

/// The end of a file that was cut after it was opened.
fn shorter() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the file is shorter than it was")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{LARGEST_CHUNK, SentFile};
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    use std::io::Write;
    use std::sync::Arc;

    /// The chunks of a file one after the other, and how many have come.
    struct Chunks {
        next: u64,
        end: u64,
        come: u64,
    }

    impl Traffic for Chunks {
        fn more(&mut self) -> Option<Range<u64>> {
            let start = self.next;
            self.next += LARGEST_CHUNK;
            (start < self.end).then(|| start..start + LARGEST_CHUNK)
        }

        fn lacked(&self, _: &Range<u64>) -> &[Range<u64>] {
            &[]
        }

        fn done(&mut self, _: &Range<u64>, result: Result<(), Failure>) {
            self.come += u64::from(!matches!(result, Err(Failure::Storage(_))));
        }
    }

    /// A file of so many bytes of which nothing is cached; none where all of it is in memory only, or nobody tells.
    pub(super) fn cold_file(size: u64) -> Option<DataFile> {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&vec![1; size as usize]).unwrap();
        file.sync_all().unwrap();
        let file = DataFile::new(SentFile::new(file), None, Some(Way::Read), &Arc::default()).unwrap();
        posix_fadvise(&*file.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
        if file.residency != Residency::CacheStat || file.is_cached(&(0..size)) {
            return None;
        }
        assert_eq!(file.lacking(&(0..size)), std::slice::from_ref(&(0..size)));
        Some(file)
    }

    /// Bytes of memory of its own that this process takes.
    fn own_memory() -> u64 {
        let status = procfs::process::Process::myself().and_then(|process| process.status()).unwrap();
        status.rssanon.unwrap() << 10
    }

    /// However many threads fill, the user's memory is left to the user.
    #[test]
    fn engines_keep_no_memory() {
        const SIZE: u64 = 8 * LARGEST_CHUNK;
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        let file = DataFile::new(SentFile::new(file), None, Some(Way::Read), &Arc::default()).unwrap();
        let before = own_memory();
        let mut threads: Vec<Engines> = std::iter::repeat_with(Engines::default).take(64).collect();
        for way in Way::ALL {
            for engines in &mut threads {
                let mut chunks = Chunks { next: LARGEST_CHUNK, end: SIZE, come: 0 };
                let mut next = Some(0..LARGEST_CHUNK);
                while let Some(chunk) = next {
                    engines.get(way).fill(&file, &chunk, &mut chunks);
                    next = chunks.more();
                }
                assert_eq!(chunks.come, SIZE / LARGEST_CHUNK);
            }
        }
        let grown = own_memory().saturating_sub(before);
        // Other tests take some meanwhile.
        assert!(grown < 48 << 20, "{grown} bytes");
    }
}
