//! `readahead(2)`, then a byte read at each end to wait for it. Does nothing where the file system's read-ahead is off
//! (Lustre).

use super::{DataFile, Engine, Failure, Traffic, one_by_one, shorter};
use std::io::Error;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

#[derive(Default)]
pub struct ReadAhead;

impl Engine for ReadAhead {
    fn fill(&mut self, file: &DataFile, chunk: &Range<u64>, traffic: &mut dyn Traffic) {
        one_by_one(chunk, traffic, |chunk| {
            // Not an error if the storage failed or the kernel had no room for the request: it will be read, and tell.
            let came = read_ahead(file, chunk).is_ok_and(|()| file.is_cached(chunk));
            // Failed requests leave pages in the cache that must be read again, and fail again.
            if came && touch(file, chunk.start).is_ok() { Ok(()) } else { Err(Failure::Ineffective) }
        });
    }
}

/// Waits for the last byte alone: a client that reads ahead by itself would bring in the chunk after its first.
fn read_ahead(file: &DataFile, chunk: &Range<u64>) -> Result<(), Error> {
    // SAFETY: takes numbers only.
    let asked = unsafe {
        libc::readahead(file.file.as_raw_fd(), chunk.start as libc::off64_t, (chunk.end - chunk.start) as usize)
    };
    if asked != 0 {
        return Err(Error::last_os_error());
    }
    touch(file, chunk.end - 1)
}

fn touch(file: &DataFile, offset: u64) -> Result<(), Error> {
    match file.file.read_at(&mut [0u8], offset)? {
        0 => Err(shorter()),
        _ => Ok(()),
    }
}
