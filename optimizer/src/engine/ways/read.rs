//! `pread(2)`.

use super::{DataFile, Engine, Failure, Traffic, one_by_one, shorter};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;

#[derive(Default)]
pub struct Read {
    buffer: Vec<u8>,
}

impl Read {
    pub fn bring_in(&mut self, file: &DataFile, chunk: &Range<u64>) -> Result<(), Failure> {
        self.buffer.resize((chunk.end - chunk.start) as usize, 0);
        let mut done = 0;
        while done < self.buffer.len() {
            match file.file.read_at(&mut self.buffer[done..], chunk.start + done as u64) {
                Ok(0) => return Err(shorter().into()),
                Ok(n) => done += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
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
