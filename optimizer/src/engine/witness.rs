//! A mapping that tells which pages the kernel has evicted, where nobody else does.
//!
//! `cachestat` and `mincore` refuse an ordinary user of another one's file, and `preadv2(RWF_NOWAIT)` is not there on FUSE. But a
//! page that is mapped leaves the page cache only once it has been unmapped everywhere (`shrink_folio_list` in mm/vmscan.c,
//! `unmap_mapping_folio` in mm/memory.c), and everybody may ask which pages of his own mappings are there
//! (proc_pid_pagemap(5), bit 63). So what has been fetched is mapped here, too, and asked for before it is read again.
//!
//! That takes 8 bytes of page tables for each page, and a page that is mapped is not dropped by who asks for that
//! (`mapping_try_invalidate` in mm/truncate.c). So it is done only of data that outgrow memory, and what is to be dropped is let go of
//! before. Page tables go with their mapping alone: the file is mapped in stretches, as long as something of them is cached.

use super::counting;
use super::held::Held;
use super::ranges::Ranges;
use memmap2::{MmapOptions, MmapRaw};
use precache_contract::PAGE;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};

/// `/proc/self/pagemap`, a word for each page of the address space; `None` where it cannot be opened.
static PAGE_MAP: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/self/pagemap").ok());

/// The page is there; or it is on its way from one place in memory to another, for which files have no other use of this bit.
const PRESENT: u64 = 1 << 63;
const MOVING: u64 = 1 << 62;

/// Pages that are asked for at once.
const ASKED: usize = 512;

/// Bytes of the file in one mapping, half a megabyte of page tables: of memory there is room for so many.
const STRETCH: u64 = 256 << 20;

#[derive(Default)]
pub struct Witness {
    is_watching: AtomicBool,
    seen: Mutex<Seen>,
    /// What has been seen counts there.
    held: Weak<Held>,
}

#[derive(Default)]
struct Seen {
    /// What has been mapped, and not been let go of since.
    parts: Ranges,
    /// The stretches of these, by number.
    mappings: HashMap<u64, Arc<MmapRaw>>,
}

impl Witness {
    pub fn new(held: &Arc<Held>) -> Self {
        Self { is_watching: AtomicBool::default(), seen: Mutex::default(), held: Arc::downgrade(held) }
    }

    fn count_in(&self, change: impl Fn(&AtomicU64) -> u64) {
        self.held.upgrade().iter().for_each(|held| _ = change(&held.witnessed));
    }

    /// From now on what is read is seen.
    pub fn begin(&self) {
        self.is_watching.store(true, Relaxed);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// This part of the file, which is so many bytes long, has just been read.
    pub fn see(&self, file: &File, size: u64, part: &Range<u64>) {
        if !self.is_watching.load(Relaxed) || PAGE_MAP.is_none() {
            return;
        }
        for part in in_stretches(part) {
            let Some(mapping) = self.mapping(file, size, part.start / STRETCH) else { return };
            // What was evicted at once is read page by page: hardly ever any.
            let is_mapped = advise(&mapping, &part, libc::MADV_POPULATE_READ);
            let mut seen = self.seen();
            // All of the stretch may have been let go of meanwhile.
            let is_current = seen.mappings.get(&(part.start / STRETCH)).is_some_and(|now| Arc::ptr_eq(now, &mapping));
            if is_mapped && is_current {
                let added = seen.parts.add(part);
                self.count_in(|bytes| bytes.fetch_add(added, Relaxed));
            } else {
                advise(&mapping, &part, libc::MADV_DONTNEED);
            }
        }
    }

    fn mapping(&self, file: &File, size: u64, number: u64) -> Option<Arc<MmapRaw>> {
        let mut seen = self.seen();
        if let Some(mapping) = seen.mappings.get(&number) {
            return Some(Arc::clone(mapping));
        }
        let mapping = Arc::new(map(file, number * STRETCH..((number + 1) * STRETCH).min(size))?);
        seen.mappings.insert(number, Arc::clone(&mapping));
        Some(mapping)
    }

    /// Nothing of the part is mapped here any more. Whether anything was.
    pub fn let_go(&self, part: &Range<u64>) -> bool {
        let mut seen = self.seen();
        let removed = seen.parts.remove(part);
        if removed > 0 {
            self.count_in(|bytes| bytes.fetch_sub(removed, Relaxed));
            for part in in_stretches(part) {
                let number = part.start / STRETCH;
                if seen.parts.within(&(number * STRETCH..(number + 1) * STRETCH)).is_empty() {
                    seen.mappings.remove(&number);
                } else if let Some(mapping) = seen.mappings.get(&number) {
                    advise(mapping, &part, libc::MADV_DONTNEED);
                }
            }
        }
        removed > 0
    }

    /// Whether all of it has been seen and is cached still.
    pub fn is_cached(&self, part: &Range<u64>) -> bool {
        counting::is_cached(&|part| Some(self.count(part)), part)
    }

    /// The parts of a chunk of which that is not known.
    pub fn lacking(&self, chunk: &Range<u64>) -> Vec<Range<u64>> {
        counting::lacking(&|part| Some(self.count(part)), chunk.clone())
    }

    /// What was seen of a part and is not cached any more, in pieces of so many bytes. It is told again as long as it has not been
    /// [`Self::let_go`] of.
    pub fn evicted(&self, part: &Range<u64>, piece: u64) -> Vec<Range<u64>> {
        let seen = self.seen().parts.within(part).into_iter();
        seen.flat_map(|seen| counting::missing(&|part| Some(self.count(part)), &seen, piece)).collect()
    }

    /// Pages of the range that were seen, and are cached still.
    pub fn count(&self, range: &Range<u64>) -> u64 {
        let seen = self.seen();
        let parts = seen.parts.within(range).into_iter();
        let count = |part: Range<u64>| count_mapped(seen.mappings.get(&(part.start / STRETCH))?, &part);
        parts.flat_map(|part| in_stretches(&part)).filter_map(count).sum()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let seen = self.seen().parts.bytes();
        self.count_in(|bytes| bytes.fetch_sub(seen, Relaxed));
    }
}

/// The parts of a range that lie in one stretch each.
fn in_stretches(range: &Range<u64>) -> Vec<Range<u64>> {
    let numbers = range.start / STRETCH..range.end.div_ceil(STRETCH);
    numbers.map(|number| range.start.max(number * STRETCH)..range.end.min((number + 1) * STRETCH)).collect()
}

/// A mapping of a part of the file, none of whose faults reads ahead.
fn map(file: &File, part: Range<u64>) -> Option<MmapRaw> {
    let length = usize::try_from(part.end.checked_sub(part.start)?).ok()?;
    let mapping = MmapOptions::new().offset(part.start).len(length).map_raw_read_only(file).ok()?;
    advise(&mapping, &part, libc::MADV_RANDOM).then_some(mapping)
}

/// Advice on the pages of a part of the file that lies in the stretch of this mapping; whether the kernel took it.
fn advise(mapping: &MmapRaw, part: &Range<u64>, advice: libc::c_int) -> bool {
    let start = part.start % STRETCH / PAGE * PAGE;
    let end = (part.start % STRETCH + part.end - part.start).min(mapping.len() as u64);
    if start >= end {
        return false;
    }
    // Inside the mapping, as it is; wrapping_add needs no more than that.
    let address = mapping.as_mut_ptr().wrapping_add(start as usize).cast();
    // SAFETY: advice on a range of our own read-only mapping, whose content nobody here reads.
    unsafe { libc::madvise(address, (end - start) as usize, advice) == 0 }
}

/// Pages of a part of the file that are mapped, in the stretch of this mapping.
fn count_mapped(mapping: &MmapRaw, part: &Range<u64>) -> Option<u64> {
    let page_map = PAGE_MAP.as_ref()?;
    let mut words = [0u8; ASKED * 8];
    let first = mapping.as_ptr().addr() as u64 / PAGE + part.start % STRETCH / PAGE;
    let (pages, mut mapped) = (counting::pages(part), 0);
    for at in (0..pages).step_by(ASKED) {
        let words = words.get_mut(..(pages - at).min(ASKED as u64) as usize * 8)?;
        page_map.read_exact_at(words, (first + at) * 8).ok()?;
        let is_mapped = |word: &&[u8; 8]| u64::from_ne_bytes(**word) & (PRESENT | MOVING) != 0;
        mapped += words.as_chunks().0.iter().filter(is_mapped).count() as u64;
    }
    Some(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::io::Write;

    const SIZE: u64 = 1 << 20;

    fn file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; SIZE as usize]).unwrap();
        file.sync_all().unwrap();
        file
    }

    /// What is seen counts until it is let go of.
    #[test]
    fn what_is_seen_counts() {
        let (file, held) = (file(), Arc::new(Held::default()));
        let witness = Witness::new(&held);
        witness.begin();
        (0..2).for_each(|_| witness.see(&file, SIZE, &(0..SIZE / 2)));
        assert_eq!(held.witnessed(), SIZE / 2);
        (0..2).for_each(|_| _ = witness.let_go(&(0..SIZE / 4)));
        assert_eq!(held.witnessed(), SIZE / 4);
        drop(witness);
        assert_eq!(held.witnessed(), 0);
    }

    /// Before it begins, it sees nothing.
    #[test]
    fn only_what_was_seen_is_known() {
        let (file, witness) = (file(), Witness::default());
        witness.see(&file, SIZE, &(0..SIZE));
        assert_eq!(witness.lacking(&(0..SIZE)), std::slice::from_ref(&(0..SIZE)));
        witness.begin();
        witness.see(&file, SIZE, &(0..SIZE / 4));
        witness.see(&file, SIZE, &(SIZE / 2..SIZE));
        assert!(witness.is_cached(&(0..SIZE / 4)) && !witness.is_cached(&(0..SIZE / 2)));
        assert_eq!(witness.lacking(&(0..SIZE)), std::slice::from_ref(&(SIZE / 4..SIZE / 2)));
        assert_eq!(witness.count(&(0..SIZE)), SIZE / PAGE * 3 / 4);
        assert!(witness.evicted(&(0..SIZE), SIZE).is_empty());
        witness.let_go(&(SIZE / 2..SIZE));
        assert_eq!(witness.lacking(&(0..SIZE)), std::slice::from_ref(&(SIZE / 4..SIZE)));
    }

    /// The last byte of one stretch, and the first of the next.
    #[test]
    fn stretches_are_one_file() {
        let (file, witness) = (tempfile::tempfile().unwrap(), Witness::default());
        let (size, part) = (STRETCH + SIZE, STRETCH - 3 * PAGE..STRETCH + 2 * PAGE);
        file.set_len(size).unwrap();
        witness.begin();
        witness.see(&file, size, &part);
        assert!(witness.is_cached(&part) && witness.count(&(0..size)) == 5);
        assert!(witness.let_go(&(0..STRETCH)));
        assert_eq!((witness.count(&(0..size)), witness.seen().mappings.len()), (2, 1));
        assert!(witness.let_go(&(STRETCH..size)) && !witness.let_go(&(0..size)));
        assert!(witness.seen().mappings.is_empty(), "page tables are kept");
    }

    /// What has been let go of and is read again is seen again.
    #[test]
    fn what_comes_again_is_seen_again() {
        let (file, witness) = (file(), Witness::default());
        witness.begin();
        for _ in 0..3 {
            witness.see(&file, SIZE, &(0..SIZE));
            assert!(witness.is_cached(&(0..SIZE)));
            witness.let_go(&(PAGE..SIZE / 2));
            assert_eq!(witness.lacking(&(0..SIZE)), std::slice::from_ref(&(PAGE..SIZE / 2)));
            assert!(witness.evicted(&(0..SIZE), SIZE).is_empty());
        }
    }

    /// What is mapped cannot be dropped: it is let go of before.
    #[test]
    fn what_has_been_let_go_of_can_be_dropped() {
        let (file, witness) = (file(), Witness::default());
        witness.begin();
        witness.see(&file, SIZE, &(0..SIZE));
        let drop_all = || posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
        drop_all();
        assert!(witness.is_cached(&(0..SIZE)));
        witness.let_go(&(0..SIZE / 2));
        drop_all();
        let before = super::super::residency::waits();
        file.read_at(&mut [0], SIZE / 2).unwrap();
        assert_eq!(super::super::residency::waits(), before, "it is cached");
    }

    /// The kernel unmaps what it takes out of the page cache, here because the file ends before.
    #[test]
    fn what_the_kernel_takes_is_missed() {
        // Of single pages: of a large one that is split, all is unmapped.
        let file = File::from(memfd_create("witness", MFdFlags::empty()).unwrap());
        let witness = Witness::default();
        file.set_len(SIZE).unwrap();
        witness.begin();
        witness.see(&file, SIZE, &(0..SIZE));
        file.set_len(SIZE / 2).unwrap();
        assert_eq!(witness.evicted(&(0..SIZE), SIZE / 4), [SIZE / 2..SIZE * 3 / 4, SIZE * 3 / 4..SIZE]);
        assert_eq!(witness.lacking(&(0..SIZE)), std::slice::from_ref(&(SIZE / 2..SIZE)));
    }
}
