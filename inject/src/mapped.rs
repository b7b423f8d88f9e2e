//! Which new mappings are to be armed: readable data of a large file that is wanted.

use crate::in_use::watch_calls;
use crate::settings::{self, PATH};
use crate::{past_libc, sys};
use core::ffi::{CStr, c_int};
use precache_contract::PAGE;

/// Mappings shorter than this are over before anything could be fetched ahead.
const SHORTEST: u64 = 1 << 20;

/// A mapping that the program has just made.
pub struct Mapped {
    pub address: usize,
    pub length: usize,
    pub protection: c_int,
    pub flags: c_int,
    pub file: c_int,
    pub offset: u64,
    /// A call may be at work on what it takes the place of.
    pub was_in_use: bool,
}

/// A mapping that is to be armed.
pub struct Candidate {
    /// The part to protect, in bytes from its start.
    pub part: (u64, u64),
    /// All that the mapping has of the file is in it.
    is_whole: bool,
    /// Device and inode number.
    pub file: (u64, u64),
    pub settings: &'static settings::Settings,
}

impl Mapped {
    /// Whether it is readable data of a file, and such mappings are armed.
    #[inline(always)]
    pub fn is_data(&self) -> bool {
        let readable = self.protection & (libc::PROT_READ | libc::PROT_EXEC) == libc::PROT_READ;
        self.file >= 0 && readable && self.flags & libc::MAP_ANONYMOUS == 0 && settings::get().is_some()
    }

    /// Whether the mapping is one of a large data file.
    #[inline(always)]
    pub fn candidate(&self) -> Option<Candidate> {
        if self.is_data() { self.examine() } else { None }
    }

    #[inline(never)] // What it needs of the stack must not weigh on those who map other things.
    fn examine(&self) -> Option<Candidate> {
        let settings = settings::get()?;
        let status = sys::file_status(self.file).ok()?;
        let size = status.st_size as u64;
        if status.st_mode & libc::S_IFMT != libc::S_IFREG || size < settings.min_file {
            return None;
        }
        // Memory that processes share, tensors or a heap, and no data: nobody would want to be told of each.
        if self.is_shared() && self.is_writable() && sys::is_memory(self.file) {
            return None;
        }
        let part = self.wanted_part(size)?;
        let is_whole = part == (0, self.in_file(size));
        Some(Candidate { part, is_whole, file: (status.st_dev, status.st_ino), settings })
    }

    /// The part to protect, in bytes from its start, if the file is wanted by its name.
    #[inline(never)] // Its buffer must not weigh on who maps small files.
    fn wanted_part(&self, size: u64) -> Option<(u64, u64)> {
        let mut buffer = [0u8; PATH + 1];
        // What does not fit is cut.
        let length = sys::path_of(self.file, &mut buffer[..PATH]).unwrap_or(0);
        let path = CStr::from_bytes_until_nul(buffer.get(..=length)?).ok()?;
        if !settings::wants(path) {
            return None;
        }
        protectable(self, size, settings::data_range(path.to_bytes()))
    }

    pub fn is_writable(&self) -> bool {
        self.protection & libc::PROT_WRITE != 0
    }

    pub fn is_shared(&self) -> bool {
        self.flags & libc::MAP_TYPE != libc::MAP_PRIVATE
    }

    /// Bytes of the file that it covers, as whole pages.
    fn in_file(&self, size: u64) -> u64 {
        size.saturating_sub(self.offset).min(self.length as u64).next_multiple_of(PAGE)
    }

    /// Before it is made: whether it takes the place of what a call may be at work on, so that it must not be armed.
    #[inline(always)]
    pub fn takes_what_may_be_in_use(&self) -> bool {
        let end = self.address.saturating_add(self.length);
        self.flags & libc::MAP_FIXED != 0 && self.candidate().is_some() && watch_calls(self.address, end)
    }

    /// Whether the kernel would fetch all of this mapping, serially, before mmap returns, and the optimizer is to do that
    /// instead. Not of what can be written to: populating a private writable mapping copies it.
    #[inline(never)] // One copy is enough for all who call this.
    pub fn is_populated_by_us(&self) -> bool {
        const POPULATING: c_int = libc::MAP_POPULATE | libc::MAP_NONBLOCK | libc::MAP_LOCKED;
        self.flags & POPULATING == libc::MAP_POPULATE
            && self.protection & libc::PROT_WRITE == 0
            && settings::get().is_some_and(|settings| settings.fetches)
            && !past_libc::is_filtered()
            && self.candidate().is_some_and(|candidate| candidate.is_whole)
    }
}

/// The part of the mapping to protect, in bytes from its start: whole pages inside the file and the process data
/// range.
fn protectable(mapped: &Mapped, size: u64, range: (u64, u64)) -> Option<(u64, u64)> {
    let start = range.0.saturating_sub(mapped.offset) / PAGE * PAGE;
    let end = range.1.saturating_sub(mapped.offset).min(mapped.in_file(size)).div_ceil(PAGE) * PAGE;
    (start.saturating_add(SHORTEST) <= end).then_some((start, end))
}
