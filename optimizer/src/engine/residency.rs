//! Whether a page of a file is in the page cache already.
//!
//! `mincore` would be the classic answer, and lies to whoever neither owns the file nor may write it: it reports every
//! page resident. `cachestat` refuses in that case. `preadv2` with `RWF_NOWAIT` tells the truth to everyone, on file
//! systems that support it, but where the page is missing it starts to read it (`filemap_get_pages` in mm/filemap.c): a
//! request of 4 KiB in front of the one that follows. So it is asked only where `cachestat` refuses.

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
    /// Nobody tells: every page is taken to be missing, until whoever reads it need not wait.
    Unknown,
}

impl Residency {
    /// Finds the source by trying.
    pub fn of(file: &File) -> Self {
        if cached_pages(file, 0..1).is_ok() {
            Self::CacheStat
        } else if !matches!(no_wait(file, 0), Err(error) if error.raw_os_error() != Some(libc::EAGAIN)) {
            Self::NoWait
        } else {
            Self::Unknown
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::NoWait => "preadv2(RWF_NOWAIT)",
            Self::CacheStat => "cachestat",
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
            Self::CacheStat => cached_pages(file, chunk.clone()).is_ok_and(|cached| cached >= pages(chunk)),
            Self::Unknown => false,
        }
    }

    /// Whether the page at `offset` is cached. Where nobody tells, it is read: that is a request if it is not.
    pub fn is_page_cached(self, file: &File, offset: u64) -> bool {
        match self {
            Self::NoWait => matches!(no_wait(file, offset), Ok(1)),
            Self::CacheStat => cached_pages(file, offset..offset + 1).is_ok_and(|cached| cached == 1),
            Self::Unknown => {
                let before = waits();
                file.read_at(&mut [0], offset).is_ok_and(|read| read == 1) && waits() == before
            }
        }
    }

    /// The parts of a chunk that are not known to be cached, as far as that can be asked without a request for them.
    pub fn lacking(self, file: &File, chunk: &Range<u64>) -> Vec<Range<u64>> {
        let mut lacking = Vec::new();
        match self {
            Self::CacheStat => find_lacking(file, chunk.clone(), &mut lacking),
            _ if self.is_cached(file, chunk) => {}
            _ => lacking.push(chunk.clone()),
        }
        lacking
    }

    /// Where nobody tells before: whether so many bytes were cached, as the thread that brought them in did not wait, or for
    /// no longer than memory takes.
    pub fn was_cached(self, bytes: u64, took: Duration, has_waited: bool) -> bool {
        self == Self::Unknown && (!has_waited || bytes as f64 > OF_MEMORY * took.as_secs_f64())
    }

    /// What of a part that was cached is not any more, where that can be asked without a request for what is missing.
    pub fn evicted(self, file: &File, part: &Range<u64>, piece: u64) -> Vec<Range<u64>> {
        if self == Self::CacheStat { self.missing(file, part, piece) } else { Vec::new() }
    }

    /// What of a part that was dropped is not cached any more, in pieces of so many bytes. Where nobody tells, all of it.
    pub fn missing(self, file: &File, part: &Range<u64>, piece: u64) -> Vec<Range<u64>> {
        let is_gone = |part: &Range<u64>| match self {
            // A page more or less may be part of a larger folio that reaches beyond.
            Self::CacheStat => cached_pages(file, part.clone()).is_ok_and(|cached| cached <= pages(part) / 2),
            // To ask for a page that is missing costs a request: two stand for all.
            Self::NoWait => [part.start, part.end - 1].into_iter().all(|at| !matches!(no_wait(file, at), Ok(1))),
            Self::Unknown => true,
        };
        let all = cached_pages(file, part.clone());
        if self == Self::CacheStat && all.as_ref().is_ok_and(|&cached| cached >= pages(part)) {
            return Vec::new();
        }
        if self != Self::CacheStat || all.is_ok_and(|cached| cached == 0) {
            return Some(part.clone()).filter(is_gone).into_iter().collect();
        }
        let starts = std::iter::successors(Some(part.start), |start| Some((start / piece + 1) * piece));
        let pieces =
            starts.take_while(|start| *start < part.end).map(|start| start..part.end.min((start / piece + 1) * piece));
        pieces.filter(is_gone).collect()
    }
}

/// How often this thread has waited for something (getrusage(2)): storage is always waited for, and a thread whose turn
/// it is not does not count.
pub fn waits() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.voluntary_context_switches())
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

/// Pages that a range touches.
fn pages(range: &Range<u64>) -> u64 {
    range.end.div_ceil(PAGE) - range.start / PAGE
}

/// Halves a range until each part is cached as a whole or not at all, and appends those that are not.
fn find_lacking(file: &File, range: Range<u64>, lacking: &mut Vec<Range<u64>>) {
    match cached_pages(file, range.clone()).unwrap_or(0) {
        cached if cached >= pages(&range) => {}
        0 => match lacking.last_mut() {
            Some(before) if before.end == range.start => before.end = range.end,
            _ => lacking.push(range),
        },
        _ => {
            let middle = (range.start / PAGE + pages(&range) / 2) * PAGE;
            find_lacking(file, range.start..middle, lacking);
            find_lacking(file, middle..range.end, lacking);
        }
    }
}

/// Pages of the range that are in the page cache.
fn cached_pages(file: &File, range: Range<u64>) -> std::io::Result<u64> {
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
