//! `madvise(MADV_POPULATE_READ)` (Linux 5.14): takes the way of a mapping's own faults, so whatever the file system
//! does for these is done.
//!
//! With `MADV_HUGEPAGE`, a fault reads the aligned 2 MiB around it at once, whatever the read-ahead of the mount is, and with
//! `MADV_RANDOM` not the next 2 MiB as well (`do_sync_mmap_readahead` in mm/filemap.c). FUSE sends that in requests of
//! 1 MiB instead of 128 KiB, so the few that may be in flight carry eight times as much. Without `MADV_HUGEPAGE`, where the
//! kernel does not read ahead, a fault reads its page, and FUSE counts that among no background requests (`fuse_read_folio`
//! in fs/fuse/file.c): as many may be in flight as there are threads.
//!
//! What is populated counts as touched (`FOLL_TOUCH` in mm/gup.c), and the reader's unmapping touches it again: moving pages to the
//! list of active ones then keeps the reader waiting, for a tenth of a second where it has read 4 GiB in pages of 4 KiB.
//! `MADV_COLD` takes the first touch back. What was there before may be in use by others and is left as it is; and of a large
//! folio that is only partly in the range it would make small ones, so it is for large pieces, which no folio exceeds.

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
        let is_new = file.residency.counts() && traffic.lacked(chunk) == std::slice::from_ref(chunk);
        one_by_one(chunk, traffic, |chunk| populate(file, chunk, is_new));
    }
}

/// Has faults bring in what is missing of the chunk: all of it, if it `is_new`.
fn populate(file: &DataFile, chunk: &Range<u64>, is_new: bool) -> Result<(), Failure> {
    let Some(&(ref mapping, is_large)) = file.mapping() else { return Err(Failure::Ineffective) };
    let start = chunk.start / PAGE * PAGE;
    // Inside the mapping, which is as long as the file was; wrapping_add needs no more than that.
    let address = mapping.as_mut_ptr().wrapping_add(start as usize).cast();
    let length = (chunk.end - start) as usize;
    // SAFETY: advice on a range of our own read-only mapping, whose content nobody here reads.
    let populated = unsafe { libc::madvise(address, length, libc::MADV_POPULATE_READ) };
    let result = Errno::result(populated);
    // What the reader has mapped by now stays as it is.
    if is_large && is_new {
        // SAFETY: as above.
        unsafe { libc::madvise(address, length, libc::MADV_COLD) };
    }
    // SAFETY: as above. What is mapped cannot be reclaimed as easily, and it is not for us.
    unsafe { libc::madvise(address, length, libc::MADV_DONTNEED) };
    match result {
        Ok(_) => Ok(()),
        Err(Errno::EINVAL | Errno::EPERM | Errno::ENOSYS) => Err(Failure::Ineffective),
        Err(error) => Err(Failure::Storage(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ways::Way;
    use crate::engine::{LARGE_PIECE, SentFile};
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    const SIZE: usize = 8 << 20;
    const PIECE: usize = LARGE_PIECE as usize;

    /// The kernel's flags of each page of the file, or nothing where they are told to nobody (Documentation/admin-guide/mm/pagemap.rst).
    fn page_flags(file: &File) -> Option<Vec<u64>> {
        let mapping = memmap2::MmapOptions::new().len(SIZE).map_raw_read_only(file).unwrap();
        // Unmapped with this advice, pages are not touched.
        // SAFETY: advice on our own mapping.
        unsafe { libc::madvise(mapping.as_mut_ptr().cast(), SIZE, libc::MADV_RANDOM) };
        let word = |of: &str, index: u64| {
            let mut bytes = [0; 8];
            File::open(of).ok()?.read_exact_at(&mut bytes, index * 8).ok()?;
            Some(u64::from_ne_bytes(bytes))
        };
        let flags = |page: usize| {
            // SAFETY: inside the mapping, and the file keeps its length.
            let address = unsafe { mapping.as_mut_ptr().add(page * PAGE as usize) };
            // SAFETY: as above.
            unsafe { address.read_volatile() };
            let number = word("/proc/self/pagemap", address as u64 / PAGE)? & ((1 << 55) - 1);
            (number > 0).then(|| word("/proc/kpageflags", number))?
        };
        (0..SIZE / PAGE as usize).map(flags).collect()
    }

    /// Large pieces are left as read-ahead leaves them: neither referenced nor active.
    #[test]
    fn what_is_brought_in_counts_as_untouched() {
        const REFERENCED: u64 = 1 << 2;
        const ACTIVE: u64 = 1 << 6;
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(SIZE as u64).unwrap();
        // Where a page is there already, the kernel makes no huge folio, whose pages have no flags of their own.
        nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_RANDOM).unwrap();
        (0..SIZE).step_by(PIECE).for_each(|piece| file.read_exact_at(&mut [0], piece as u64).unwrap());
        let sent = SentFile::new(file.try_clone().unwrap());
        let data = DataFile::new(sent, None, Some(Way::Populate), &Arc::default()).unwrap();
        let Some(&(_, is_large)) = data.mapping() else { panic!("it can be mapped") };
        populate(&data, &(0..SIZE as u64), true).unwrap();
        let touched = page_flags(&file).map(|flags| {
            let of_pieces = flags.chunks(PIECE / PAGE as usize).flat_map(|pages| &pages[1..]);
            of_pieces.filter(|&&flags| flags & (REFERENCED | ACTIVE) != 0).count()
        });
        assert!(!is_large || touched.is_none_or(|touched| touched == 0), "{touched:?} pages");
    }
}
