//! `readahead(2)`, then a byte read at each end to wait for it, and a fault for each of a few pages that alone are missing. Does nothing where the file system's read-ahead is off
//! (Lustre).

use super::{DataFile, Engine, Failure, Traffic, ask_for, one_by_one, shorter, single};
use std::io::Error;
use std::ops::Range;
use std::os::unix::fs::FileExt;

#[derive(Default)]
pub struct ReadAhead;

impl Engine for ReadAhead {
    fn fill(&mut self, file: &DataFile, chunk: &Range<u64>, traffic: &mut dyn Traffic) {
        let single = single::lacked(chunk, traffic.lacked(chunk));
        one_by_one(chunk, traffic, |chunk| {
            // Not an error if the storage failed or the kernel had no room for the request: it will be read, and tell.
            let came = read_ahead(file, chunk, &single).is_ok_and(|()| file.is_cached(chunk));
            // Failed requests leave pages in the cache that must be read again, and fail again.
            if came && touch(file, chunk.start).is_ok() { Ok(()) } else { Err(Failure::Ineffective) }
        });
    }
}

/// Waits for single pages, and for the last byte: a client that reads ahead by itself would bring in the chunk after its first.
fn read_ahead(file: &DataFile, chunk: &Range<u64>, single: &[u64]) -> Result<(), Error> {
    ask_for(file, chunk)?;
    single::wait_for(file, single);
    touch(file, chunk.end - 1)
}

fn touch(file: &DataFile, offset: u64) -> Result<(), Error> {
    match file.file.read_at(&mut [0u8], offset)? {
        0 => Err(shorter()),
        _ => Ok(()),
    }
}
