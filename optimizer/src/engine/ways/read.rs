//! `pread(2)`.

use super::{DataFile, Engine, Failure, Traffic, ask_for, one_by_one, scrap, shorter, single};
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
        let single = single::lacked(chunk, traffic.lacked(chunk));
        one_by_one(chunk, traffic, |chunk| {
            if chunk.end - chunk.start < file.request() || !single.is_empty() {
                // A short read that goes on where another ended makes the kernel read on behind it, up to its read-ahead; a
                // request for read-ahead does not. Where that has no effect, the read does all.
                let _ = ask_for(file, chunk);
            }
            single::wait_for(file, &single);
            self.bring_in(file, chunk)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ways::tests::cold_file;

    struct One;

    impl Traffic for One {
        fn more(&mut self) -> Option<Range<u64>> {
            None
        }

        fn lacked(&self, _: &Range<u64>) -> &[Range<u64>] {
            &[]
        }

        fn done(&mut self, _: &Range<u64>, result: Result<(), Failure>) {
            result.unwrap();
        }
    }

    /// What lies behind a record may be a gap.
    #[test]
    fn a_short_read_brings_in_nothing_behind_it() {
        const SIZE: u64 = 8 << 20;
        let Some(file) = cold_file(SIZE) else { return };
        // The second one looks as if the file were read in order.
        let (start, middle, end) = (1 << 20, (1 << 20) + (100 << 10), (1 << 20) + (200 << 10));
        Read.fill(&file, &(start..middle), &mut One);
        Read.fill(&file, &(middle..end), &mut One);
        assert_eq!(file.lacking(&(0..SIZE)), [0..start, end..SIZE]);
    }
}
