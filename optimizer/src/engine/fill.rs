//! The ways to bring a chunk into the page cache.

use super::file::DataFile;
use super::residency::Residency;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// How chunks of one file are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `pread` into a buffer that is thrown away: works everywhere, and costs a copy.
    Read,
    /// `readahead(2)`, then a byte read at each end to wait for it: no copy. Does nothing where the file system's read-ahead is
    /// off (Lustre).
    ReadAhead,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "pread",
            Self::ReadAhead => "readahead",
        }
    }

    /// Brings the chunk in. The first chunk of a file decides the engine: if `readahead` is seen to bring in what it
    /// was asked for, it is used, else `pread`.
    pub fn fill(file: &DataFile, chunk: &Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
        match file.engine.get() {
            Some(Self::Read) => read(file, chunk, buffer),
            // What it did not bring in, because the kernel had no room for the request or the storage failed, is read.
            Some(Self::ReadAhead) => match read_ahead(file, chunk) {
                Ok(()) if file.is_cached(chunk) => Ok(()),
                _ => read(file, chunk, buffer),
            },
            None => {
                let works = file.residency != Residency::Unknown
                    && chunk.end - chunk.start > 2 * 4096
                    && read_ahead(file, chunk).is_ok()
                    && file.is_cached(&(chunk.start..chunk.end - 4096));
                let _ = file.engine.set(if works { Self::ReadAhead } else { Self::Read });
                if works { Ok(()) } else { read(file, chunk, buffer) }
            }
        }
    }
}

fn read(file: &DataFile, chunk: &Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.resize((chunk.end - chunk.start) as usize, 0);
    let mut done = 0;
    while done < buffer.len() {
        match file.file.read_at(&mut buffer[done..], chunk.start + done as u64) {
            Ok(0) => return Err(Error::new(ErrorKind::UnexpectedEof, "the file is shorter than it was")),
            Ok(n) => done += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_ahead(file: &DataFile, chunk: &Range<u64>) -> Result<()> {
    // SAFETY: takes numbers only.
    let asked = unsafe {
        libc::readahead(file.file.as_raw_fd(), chunk.start as libc::off64_t, (chunk.end - chunk.start) as usize)
    };
    if asked != 0 {
        return Err(Error::last_os_error());
    }
    // Both ends: a request that failed leaves pages that are in the cache but must be read again, and fail again.
    for offset in [chunk.start, chunk.end - 1] {
        if file.file.read_at(&mut [0u8], offset)? == 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, "the file is shorter than it was"));
        }
    }
    Ok(())
}
