//! Reads through io_uring (io_uring(7)): one thread keeps several in flight.

use super::{DataFile, Engine, Failure, Traffic, scrap, shorter};
use io_uring::{IoUring, opcode, types};
use std::io::Error;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Reads in flight of one thread.
const ENTRIES: u32 = 8;

#[derive(Default)]
pub struct Ring {
    /// None as long as it has not been needed; an error where it may not be used.
    ring: Option<Result<IoUring, Error>>,
    slots: [Slot; ENTRIES as usize],
}

/// A read in flight.
#[derive(Default)]
struct Slot {
    chunk: Option<Range<u64>>,
    done: u64,
}

impl Engine for Ring {
    fn fill(&mut self, file: &DataFile, chunk: &Range<u64>, traffic: &mut dyn Traffic) {
        let Ok(ring) = self.ring.get_or_insert_with(|| IoUring::new(ENTRIES)) else {
            return traffic.done(chunk, Err(Failure::Ineffective));
        };
        let mut next = Some(chunk.clone());
        let mut flying = 0;
        loop {
            while let Some((index, slot)) = self.slots.iter_mut().enumerate().find(|(_, slot)| slot.chunk.is_none())
                && let Some(chunk) = next.take().or_else(|| traffic.more())
            {
                (slot.chunk, slot.done) = (Some(chunk), 0);
                slot.send(index, file, ring);
                flying += 1;
            }
            if flying == 0 {
                return;
            }
            if let Err(error) = ring.submit_and_wait(1)
                && error.kind() != std::io::ErrorKind::Interrupted
            {
                return self.abandon(error, traffic);
            }
            let answers: Vec<_> = ring.completion().map(|answer| (answer.user_data(), answer.result())).collect();
            for (index, result) in answers {
                let Some(slot) = self.slots.get_mut(index as usize) else { continue };
                let Some(chunk) = slot.chunk.clone() else { continue };
                let result = match result {
                    n if n > 0 && slot.done + (n as u64) < chunk.end - chunk.start => {
                        slot.done += n as u64;
                        slot.send(index as usize, file, ring);
                        continue;
                    }
                    n if n > 0 => Ok(()),
                    0 => Err(Failure::Storage(shorter())),
                    n if n == -libc::EINTR || n == -libc::EAGAIN => {
                        slot.send(index as usize, file, ring);
                        continue;
                    }
                    n if [-libc::EINVAL, -libc::EOPNOTSUPP, -libc::EPERM].contains(&n) => Err(Failure::Ineffective),
                    n => Err(Failure::Storage(Error::from_raw_os_error(-n))),
                };
                slot.chunk = None;
                flying -= 1;
                traffic.done(&chunk, result);
            }
        }
    }
}

impl Slot {
    /// Queues the read of what is left of the slot's chunk.
    fn send(&mut self, index: usize, file: &DataFile, ring: &mut IoUring) {
        let Some(chunk) = &self.chunk else { return };
        let (scrap, most) = scrap::area();
        let at = chunk.start + self.done;
        let length = (chunk.end - at).min(most as u64);
        let read = opcode::Read::new(types::Fd(file.file.as_raw_fd()), scrap, length as u32)
            .offset(at)
            .build()
            .user_data(index as u64);
        // SAFETY: what is at `scrap` is static and nobody reads it; IORING_OP_READ writes at most `length` bytes, no more
        // than there are (io_uring_enter(2)). The kernel takes a reference to the file when the read is submitted.
        let pushed = unsafe { ring.submission().push(&read) };
        debug_assert!(pushed.is_ok(), "there are as many entries as slots");
    }
}

impl Ring {
    /// The ring failed with reads in flight: it is kept, as they are.
    fn abandon(&mut self, error: Error, traffic: &mut dyn Traffic) {
        let ring = self.ring.replace(Err(error));
        std::mem::forget(ring);
        for slot in std::mem::take(&mut self.slots) {
            if let Some(chunk) = &slot.chunk {
                traffic.done(chunk, Err(Failure::Ineffective));
            }
        }
    }
}
