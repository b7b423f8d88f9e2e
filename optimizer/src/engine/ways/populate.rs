//! `madvise(MADV_POPULATE_READ)` (Linux 5.14): takes the way of a mapping's own faults, so whatever the file system
//! does for these is done.
//!
//! With `MADV_HUGEPAGE`, a fault reads the aligned 2 MiB around it at once, whatever the read-ahead of the mount is, and with
//! `MADV_RANDOM` not the next 2 MiB as well (`do_sync_mmap_readahead` in mm/filemap.c). FUSE sends that in requests of
//! 1 MiB instead of 128 KiB, so the few that may be in flight carry eight times as much. Without `MADV_HUGEPAGE`, where the
//! kernel does not read ahead, a fault reads its page, and FUSE counts that among no background requests (`fuse_read_folio`
//! in fs/fuse/file.c): as many may be in flight as there are threads.

use super::{DataFile, Engine, Failure, Traffic, one_by_one};
use nix::errno::Errno;
use precache_contract::PAGE;
use std::ops::Range;

/// Whether the kernel knows the advice.
pub fn is_known() -> bool {
    // SAFETY: advice on nothing; of what it does not know the kernel says so all the same (`do_madvise` in mm/madvise.c).
    unsafe { libc::madvise(std::ptr::null_mut(), 0, libc::MADV_POPULATE_READ) == 0 }
}

#[derive(Default)]
pub struct Populate;

impl Engine for Populate {
    fn fill(&mut self, file: &DataFile, chunk: &Range<u64>, traffic: &mut dyn Traffic) {
        one_by_one(chunk, traffic, |chunk| populate(file, chunk));
    }
}

/// Has faults bring in what is missing of the chunk.
fn populate(file: &DataFile, chunk: &Range<u64>) -> Result<(), Failure> {
    let Some((mapping, _)) = file.mapping() else { return Err(Failure::Ineffective) };
    let start = chunk.start / PAGE * PAGE;
    // Inside the mapping, which is as long as the file was; wrapping_add needs no more than that.
    let address = mapping.as_mut_ptr().wrapping_add(start as usize).cast();
    let length = (chunk.end - start) as usize;
    // SAFETY: advice on a range of our own read-only mapping, whose content nobody here reads.
    let populated = unsafe { libc::madvise(address, length, libc::MADV_POPULATE_READ) };
    let result = Errno::result(populated);
    // SAFETY: as above. What is mapped cannot be reclaimed as easily, and it is not for us.
    unsafe { libc::madvise(address, length, libc::MADV_DONTNEED) };
    match result {
        Ok(_) => Ok(()),
        Err(Errno::EINVAL | Errno::EPERM | Errno::ENOSYS) => Err(Failure::Ineffective),
        Err(error) => Err(Failure::Storage(error.into())),
    }
}
