//! Single pages that a chunk lacks, where the rest of it is cached.
//!
//! FUSE drops short read-ahead while many requests are in flight (`fuse_readahead` in fs/fuse/file.c), and a read of a page up to
//! which others are cached looks to the kernel like part of a sequential one, for which it reads up to its read-ahead
//! (`page_cache_sync_ra` in mm/readahead.c). A fault where `MADV_RANDOM` was given reads its page alone.

use super::DataFile;
use crate::engine::residency::populate;
use precache_contract::PAGE;
use std::ops::Range;

/// So many faults one after the other cost less than pages that nobody asked for.
const MOST: usize = 4;

/// The places of the pages that a chunk lacked, if they are few and not all of it.
pub fn lacked(chunk: &Range<u64>, parts: &[Range<u64>]) -> Vec<u64> {
    let pages = |part: &Range<u64>| (part.start / PAGE..part.end.div_ceil(PAGE)).map(|page| page * PAGE);
    let lacked: Vec<_> = parts.iter().flat_map(pages).take(MOST + 1).collect();
    if lacked.len() <= MOST && lacked.len() < pages(chunk).count() { lacked } else { Vec::new() }
}

/// Waits for these pages, and has a fault read each that is not on its way. What cannot be read, a read will tell.
pub fn wait_for(file: &DataFile, pages: &[u64]) {
    pages.iter().for_each(|&page| _ = populate(&file.file, page));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ways::ask_for;
    use crate::engine::ways::tests::cold_file;

    #[test]
    fn few_of_many_are_single() {
        let pages = |start: u64, end: u64| start * PAGE..end * PAGE;
        assert_eq!(lacked(&pages(8, 16), &[pages(8, 9), pages(14, 16)]), [8, 14, 15].map(|page| page * PAGE));
        assert_eq!(lacked(&pages(8, 16), &[pages(8, 13)]), [0; 0]);
        assert_eq!(lacked(&pages(8, 10), &[pages(8, 10)]), [0; 0]);
    }

    /// Behind what is cached already, too.
    #[test]
    fn a_single_page_brings_in_no_other() {
        const SIZE: u64 = 8 << 20;
        let Some(file) = cold_file(SIZE) else { return };
        let (start, page) = (1 << 20, (1 << 20) + (100 << 10));
        ask_for(&file, &(start..page)).unwrap();
        wait_for(&file, &[page]);
        assert_eq!(file.lacking(&(0..SIZE)), [0..start, page + PAGE..SIZE]);
    }
}
