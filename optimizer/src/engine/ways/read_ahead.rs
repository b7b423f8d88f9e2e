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
            let asked = read_ahead(file, chunk);
            if asked.is_ok() && file.is_cached(chunk) { Ok(()) } else { Err(Failure::Ineffective) }
        });
    }
}

fn read_ahead(file: &DataFile, chunk: &Range<u64>) -> Result<(), Error> {
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
            return Err(shorter());
        }
    }
    Ok(())
}
