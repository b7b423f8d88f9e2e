//! Whether a page of a file is in the page cache already.
//!
//! `cachestat` is asked first; on an overlay it looks into a cache that nothing is ever in, and it refuses who neither owns the file
//! nor may write it. `preadv2` with `RWF_NOWAIT` tells the truth to everyone, on file systems that support it, but where the page is
//! missing it starts to read it (`filemap_get_pages` in mm/filemap.c): a request of 4 KiB in front of the one that follows.
//! `mincore` looks where mappings do, and takes one for each question; whom `cachestat` refuses is told that every page is resident
//! (`can_do_mincore` in mm/mincore.c). So it comes last, and only where `cachestat` answers and sees nothing: files of huge pages, for
//! which that is not there, are not to be mapped for a question.

use super::counting::{self, pages};
use memmap2::{MmapOptions, MmapRaw};
use nix::sys::resource::{UsageWho, getrusage};
use precache_contract::PAGE;
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Linux 6.5; newer than the headers in use. The number is the same on all architectures.
const SYS_CACHESTAT: libc::c_long = 451;

/// Bytes per second that no storage brings, of one request.
const OF_MEMORY: f64 = 2e9;

/// The source that can be asked for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// `cachestat(2)`.
    CacheStat,
    /// `preadv2(RWF_NOWAIT)`.
    NoWait,
    /// `mincore(2)`.
    MinCore,
    /// Nobody tells: every page is taken to be missing, until whoever reads it need not wait.
    Unknown,
}

impl Residency {
    /// Finds the source by trying.
    pub fn of(file: &File) -> Self {
        let answers = cached_pages(file, &(0..1)).is_ok();
        if answers && Self::CacheStat.sees_what_is_mapped(file) {
            Self::CacheStat
        } else if !matches!(no_wait(file, 0), Err(error) if error.raw_os_error() != Some(libc::EAGAIN)) {
            Self::NoWait
        } else if answers && is_told_the_truth(file) && Self::MinCore.sees_what_is_mapped(file) {
            Self::MinCore
        } else {
            Self::Unknown
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::NoWait => "preadv2(RWF_NOWAIT)",
            Self::CacheStat => "cachestat",
            Self::MinCore => "mincore",
            Self::Unknown => "unknown",
        }
    }

    /// Whether all of a chunk is known to be cached. Chunks are fetched whole, so its first and last page stand for it where
    /// pages can only be asked for one by one.
    pub fn is_cached(self, file: &File, chunk: &Range<u64>) -> bool {
        match self {
            Self::NoWait => {
                [chunk.start, chunk.end - 1].into_iter().all(|offset| matches!(no_wait(file, offset), Ok(1)))
            }
            Self::CacheStat | Self::MinCore => counting::is_cached(&|part| self.count(file, part), chunk),
            Self::Unknown => false,
        }
    }

    /// Pages of the range that are cached, where whole ranges can be asked for.
    fn count(self, file: &File, range: &Range<u64>) -> Option<u64> {
        match self {
            Self::CacheStat => cached_pages(file, range).ok(),
            Self::MinCore => resident_pages(file, range),
            Self::NoWait | Self::Unknown => None,
        }
    }

    /// Whether whole ranges can be asked for.
    pub fn counts(self) -> bool {
        matches!(self, Self::CacheStat | Self::MinCore)
    }

    /// Whether it knows of the file's first page when that has been read through a mapping. If it cannot be read, or is gone at
    /// once, that says nothing.
    fn sees_what_is_mapped(self, file: &File) -> bool {
        let sees = || self.count(file, &(0..1)) == Some(1);
        sees() || !(0..3).all(|_| populate(file, 0) && !sees())
    }

    /// Whether the page at `offset` is cached. Where nobody tells, it is read: that is a request if it is not.
    pub fn is_page_cached(self, file: &File, offset: u64) -> bool {
        match self {
            Self::NoWait => matches!(no_wait(file, offset), Ok(1)),
            Self::CacheStat | Self::MinCore => self.count(file, &(offset..offset + 1)) == Some(1),
            Self::Unknown => {
                let before = waits();
                file.read_at(&mut [0], offset).is_ok_and(|read| read == 1) && waits() == before
            }
        }
    }

    /// The parts of a chunk that are not known to be cached, as far as that can be asked without a request for them.
    pub fn lacking(self, file: &File, chunk: &Range<u64>) -> Vec<Range<u64>> {
        match self {
            Self::CacheStat | Self::MinCore => counting::lacking(&|part| self.count(file, part), chunk.clone()),
            _ if self.is_cached(file, chunk) => Vec::new(),
            _ => vec![chunk.clone()],
        }
    }

    /// Where nobody tells before: whether so many bytes were cached, as the thread that brought them in did not wait, or for
    /// no longer than memory takes.
    pub fn was_cached(self, bytes: u64, took: Duration, has_waited: bool) -> bool {
        self == Self::Unknown && (!has_waited || bytes as f64 > OF_MEMORY * took.as_secs_f64())
    }

    /// Bytes of a part that are cached, where that can be asked for little.
    pub fn count_for_little(self, file: &File, part: &Range<u64>) -> Option<u64> {
        if self == Self::CacheStat { self.count(file, part).map(|pages| pages * PAGE) } else { None }
    }

    /// Whether it comes to be known what the kernel evicts: it can be asked for little, or a witness tells.
    pub fn tells_evicted(self) -> bool {
        self != Self::MinCore
    }

    /// What of a part that was cached is not any more, where that can be asked for little and without a request for what is missing.
    pub fn evicted(self, file: &File, part: &Range<u64>, piece: u64) -> Vec<Range<u64>> {
        if self == Self::CacheStat { self.missing(file, part, piece) } else { Vec::new() }
    }

    /// What of a part that was dropped is not cached any more, in pieces of so many bytes. Where nobody tells, all of it.
    pub fn missing(self, file: &File, part: &Range<u64>, piece: u64) -> Vec<Range<u64>> {
        match self {
            Self::CacheStat | Self::MinCore => counting::missing(&|part| self.count(file, part), part, piece),
            // To ask for a page that is missing costs a request: two stand for all.
            Self::NoWait if [part.start, part.end - 1].into_iter().any(|at| matches!(no_wait(file, at), Ok(1))) => {
                Vec::new()
            }
            Self::NoWait | Self::Unknown => vec![part.clone()],
        }
    }
}

/// How often this thread has waited for something (getrusage(2)): storage is always waited for, and a thread whose turn
/// it is not does not count.
pub fn waits() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.voluntary_context_switches())
}

/// For how many faults this thread has had to wait for storage (getrusage(2)), those of populating included
/// (`mm_account_fault` in mm/memory.c).
fn major_faults() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.major_page_faults())
}

/// Reads the byte at `offset` if that needs no waiting.
fn no_wait(file: &File, offset: u64) -> std::io::Result<usize> {
    let mut byte = [0u8; 1];
    let mut parts = [IoSliceMut::new(&mut byte)];
    // SAFETY: IoSliceMut is an iovec in layout (std::io::IoSliceMut, ABI compatibility on Unix), and the buffer lives
    // through the call.
    let read = unsafe {
        libc::preadv2(file.as_raw_fd(), parts.as_mut_ptr().cast(), 1, offset as libc::off_t, libc::RWF_NOWAIT)
    };
    usize::try_from(read).map_err(|_| std::io::Error::last_os_error())
}

/// Whether `mincore` tells this user the truth: that what lies behind the file's end is not resident.
fn is_told_the_truth(file: &File) -> bool {
    let behind = file.metadata().map(|metadata| metadata.len().next_multiple_of(PAGE));
    behind.is_ok_and(|end| resident_pages(file, &(end..end + 1)) == Some(0))
}

/// A mapping of the pages of a range.
fn map(file: &File, range: &Range<u64>) -> Option<MmapRaw> {
    let length = usize::try_from(pages(range) * PAGE).ok()?;
    MmapOptions::new().offset(range.start / PAGE * PAGE).len(length).map_raw_read_only(file).ok()
}

/// Has a fault read the page at `offset`, and no other; whether that came to something.
pub fn populate(file: &File, offset: u64) -> bool {
    let Some(mapping) = map(file, &(offset..offset + 1)) else { return false };
    // SAFETY: advice on our own mapping, which nobody reads.
    unsafe {
        libc::madvise(mapping.as_mut_ptr().cast(), mapping.len(), libc::MADV_RANDOM);
        libc::madvise(mapping.as_mut_ptr().cast(), mapping.len(), libc::MADV_POPULATE_READ) == 0
    }
}

/// Whether a mapping of the page at `offset` had to wait for storage: then it has been read by now.
pub fn has_to_read(file: &File, offset: u64) -> bool {
    let before = major_faults();
    populate(file, offset) && major_faults() != before
}

/// Pages of the range that a mapping would find in the page cache (mincore(2)).
fn resident_pages(file: &File, range: &Range<u64>) -> Option<u64> {
    let mapping = map(file, range)?;
    let mut told = [0u8; 16 << 10];
    let mut resident = 0;
    for start in (0..mapping.len()).step_by(told.len() * PAGE as usize) {
        let length = (mapping.len() - start).min(told.len() * PAGE as usize);
        let address = mapping.as_mut_ptr().wrapping_add(start).cast();
        // SAFETY: part of our own mapping, and a byte to fill in for each of its pages.
        if unsafe { libc::mincore(address, length, told.as_mut_ptr()) } != 0 {
            return None;
        }
        // The other bits are reserved.
        resident += told.iter().take(length / PAGE as usize).filter(|&&page| page & 1 == 1).count() as u64;
    }
    Some(resident)
}

/// Pages of the range that are in the page cache.
fn cached_pages(file: &File, range: &Range<u64>) -> std::io::Result<u64> {
    let range = [range.start, range.end - range.start];
    // struct cachestat: nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted.
    let mut answer = [0u64; 5];
    // SAFETY: two words to read, five to fill in, as cachestat(2) has them; flags are zero.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), answer.as_mut_ptr(), 0) };
    if result == 0 { Ok(answer[0]) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    use std::io::Write;

    /// Of pages that are there and pages that are not.
    #[test]
    fn sources_that_count_agree() {
        const SIZE: u64 = 1 << 20;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; SIZE as usize]).unwrap();
        file.sync_all().unwrap();
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).unwrap();
        for at in [3 * PAGE, 4 * PAGE, SIZE - PAGE] {
            file.read_at(&mut [0], at).unwrap();
        }
        let lacking = |source: Residency| source.lacking(&file, &(0..SIZE));
        assert!(is_told_the_truth(&file));
        if cached_pages(&file, &(0..SIZE)).is_ok_and(|cached| cached == 3) {
            assert_eq!(lacking(Residency::MinCore), [0..3 * PAGE, 5 * PAGE..SIZE - PAGE]);
            assert_eq!(lacking(Residency::MinCore), lacking(Residency::CacheStat));
            assert_eq!(Residency::MinCore.missing(&file, &(0..SIZE), SIZE / 2).len(), 2);
        }
    }

    #[test]
    fn waiting_tells_where_nobody_does() {
        let microseconds = Duration::from_micros;
        let was_cached = |took, has_waited| Residency::Unknown.was_cached(128 << 10, microseconds(took), has_waited);
        assert!(was_cached(30, true) && !was_cached(300, true));
        // A thread whose turn it was not.
        assert!(was_cached(30_000, false));
        assert!(!Residency::CacheStat.was_cached(128 << 10, microseconds(30), false));
    }
}
