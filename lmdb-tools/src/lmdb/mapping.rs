//! The mapping that liblmdb made of the data file: addresses in it are offsets in the file.

use std::collections::HashSet;
use std::fs;

use nix::sys::mman::{MmapAdvise, madvise};
use std::ptr::NonNull;

/// A shared read-only mapping of a file from its first byte.
#[derive(Debug)]
pub(super) struct Mapping {
    start: usize,
    length: usize,
}

impl Mapping {
    /// The addresses at which mappings start now.
    pub fn snapshot() -> HashSet<usize> {
        regions().map(|region| region.start).collect()
    }

    /// The mapping of `length` bytes that was not there at `before`.
    ///
    /// liblmdb keeps its address to itself, and device and inode numbers in /proc/self/maps are not those of fstat on
    /// every file system; what is new, shared, read-only, from offset 0 and just as long, is it.
    pub fn appeared_since(before: &HashSet<usize>, length: u64) -> Option<Self> {
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()?? as u64;
        let length = usize::try_from(length.checked_next_multiple_of(page)?).ok()?;
        regions()
            .find(|region| !before.contains(&region.start) && region.shared_read_only && region.length == length)
            .map(|region| Self { start: region.start, length })
    }

    /// In bytes.
    pub fn len(&self) -> u64 {
        self.length as u64
    }

    /// The offset in the file of the byte at `address`.
    pub fn offset_of(&self, address: *const u8) -> Option<u64> {
        let offset = address.addr().checked_sub(self.start)?;
        (offset < self.length).then_some(offset as u64)
    }

    /// Where the byte at `offset` is mapped.
    pub fn address_of(&self, offset: u64) -> *const u8 {
        std::ptr::with_exposed_provenance(self.start + offset as usize)
    }

    /// Lets go of the pages that are mapped, so that a walk's memory does not grow with the file.
    ///
    /// Nothing is lost: the mapping is shared and read-only, the next touch maps the page cache's page again.
    pub fn let_go(&self) {
        let Some(start) = NonNull::new(std::ptr::with_exposed_provenance_mut(self.start)) else { return };
        // SAFETY: the range is liblmdb's mapping, which lives as long as the environment that owns `self`; dropping
        // pages of a shared file mapping keeps their content (madvise(2), MADV_DONTNEED).
        let _ = unsafe { madvise(start, self.length, MmapAdvise::MADV_DONTNEED) };
    }
}

struct Region {
    start: usize,
    length: usize,
    shared_read_only: bool,
}

/// The lines of /proc/self/maps: `start-end perms offset device inode path` (proc(5)).
fn regions() -> impl Iterator<Item = Region> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let regions: Vec<_> = maps.lines().filter_map(region).collect();
    regions.into_iter()
}

fn region(line: &str) -> Option<Region> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let (permissions, offset) = (fields.next()?, fields.next()?);
    let from_first_byte = u64::from_str_radix(offset, 16).ok()? == 0;
    Some(Region { start, length: end - start, shared_read_only: permissions == "r--s" && from_first_byte })
}
