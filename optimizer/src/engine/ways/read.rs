//! `pread(2)`.

use super::{DataFile, Engine, Failure, Traffic, one_by_one, scrap, shorter};
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::os::fd::AsRawFd;

#[derive(Default)]
pub struct Read;

impl Read {
    pub fn bring_in(&mut self, file: &DataFile, chunk: &Range<u64>) -> Result<(), Failure> {
        let (scrap, most) = scrap::area();
        let mut at = chunk.start;
        while at < chunk.end {
            let length = usize::try_from(chunk.end - at).map_or(most, |left| left.min(most));
            // SAFETY: pread(2) writes at most `length` bytes, no more than there are at `scrap`, which nobody reads.
            let read = unsafe { libc::pread64(file.file.as_raw_fd(), scrap.cast(), length, at as libc::off64_t) };
            match u64::try_from(read) {
                Ok(0) => return Err(shorter().into()),
                Ok(n) => at += n,
                Err(_) => match Error::last_os_error() {
                    error if error.kind() == ErrorKind::Interrupted => {}
                    error => return Err(error.into()),
                },
            }
        }
        Ok(())
    }
}

impl Engine for Read {
    fn fill(&mut self, file: &DataFile, chunk: &Range<u64>, traffic: &mut dyn Traffic) {
        one_by_one(chunk, traffic, |chunk| {
            self.bring_in(file, chunk)?;
            // Some file systems read into a cache of their own, which mappings do not see.
            if file.filling.is_on_trial() && file.is_missing(chunk) { Err(Failure::Ineffective) } else { Ok(()) }
        });
    }
}
