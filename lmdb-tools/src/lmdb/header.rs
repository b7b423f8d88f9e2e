//! The first look at a data file, before liblmdb gets to see it: a refusal that says what the file is instead.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::Error;

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;

/// The magic number follows the page header: 16 bytes in 0.9, 24 in 1.0 (which added a transaction number to each page), 12
/// where words have 32 bits.
const MAGIC_AT: usize = 16;
const MAGIC_AT_1_0: usize = 24;
const MAGIC_AT_32_BITS: usize = 12;
/// Where other fields of the meta page are (mdb.c, `MDB_meta` on 64 bits, behind the page header); the last ends it.
const PAGE_SIZE_AT: usize = 40;
const LAST_PAGE_AT: usize = 136;
const TRANSACTION_AT: usize = 144;
const META: usize = 152;

/// All that comes before the version: page 0, whose only flag is that of a meta page (`P_META`, 8), and the magic number.
const BEGINNING: [u8; MAGIC_AT + 4] = {
    let mut bytes = [0; MAGIC_AT + 4];
    [bytes[10], bytes[11]] = 8_u16.to_ne_bytes();
    [bytes[16], bytes[17], bytes[18], bytes[19]] = MAGIC.to_ne_bytes();
    bytes
};

/// Refuses what is not an LMDB 0.9 data file of this machine's byte order.
pub(super) fn check(path: &Path) -> Result<(), Error> {
    let read = |error| Error::Read { path: path.into(), error };
    // Opening a FIFO or a device could wait or act; the type is asked by name first.
    if !path.metadata().map_err(read)?.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    let (file, length) = open(path).map_err(read)?;
    let page = beginning(&file, 0).map_err(read)?;
    classify(&page, length, path)
}

/// Bytes of the file and bytes that its header counts; none where it lacks nothing, or its header cannot be read.
pub(super) fn shortfall(path: &Path) -> Option<(u64, u64)> {
    check(path).ok()?;
    let (file, length) = open(path).ok()?;
    let first = beginning(&file, 0).ok()?;
    let page_size = u64::from(word(&first, PAGE_SIZE_AT)?);
    let second = beginning(&file, page_size).ok()?;
    let newest = [first, second].into_iter().max_by_key(|meta| long(meta, TRANSACTION_AT))?;
    let counted = long(&newest, LAST_PAGE_AT)?.checked_add(1)?.checked_mul(page_size)?;
    (length < counted).then_some((length, counted))
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    // One page is wanted; without this the first read of a file brings in more.
    let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The beginning of the page at `offset`, as far as it is there.
fn beginning(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut page = vec![0; META];
    let length = file.read_at(&mut page, offset)?;
    page.truncate(length);
    Ok(page)
}

/// What a file of `length` bytes is that begins with `page`.
fn classify(page: &[u8], length: u64, path: &Path) -> Result<(), Error> {
    let path = || path.into();
    if length == 0 {
        return Err(Error::Empty { path: path() });
    }
    match (word(page, MAGIC_AT), word(page, MAGIC_AT_1_0)) {
        (Some(MAGIC), _) => match word(page, MAGIC_AT + 4) {
            Some(version) if version != VERSION => return Err(Error::Version { path: path(), version }),
            _ => {}
        },
        (_, Some(MAGIC)) => {
            let version = word(page, MAGIC_AT_1_0 + 4).unwrap_or_default();
            return Err(Error::Version { path: path(), version });
        }
        (Some(_), _) if word(page, MAGIC_AT_32_BITS) == Some(MAGIC) => return Err(Error::WordSize { path: path() }),
        (Some(magic), _) if magic == MAGIC.swap_bytes() => return Err(Error::ForeignByteOrder { path: path() }),
        (None, _) if BEGINNING.starts_with(page) => {}
        _ => return Err(Error::Foreign { path: path() }),
    }
    let page_size = word(page, PAGE_SIZE_AT).map(u64::from);
    if let Some(size) = page_size.filter(|size| !is_page_size(*size)) {
        return Err(Error::Damaged { path: path(), what: format!("its header has the impossible page size {size}") });
    }
    // Two meta pages, which the program that made the database wrote first of all.
    let least = 2 * page_size.unwrap_or(USUAL_PAGE_SIZE);
    if length < least {
        return Err(Error::Short { path: path(), length, least });
    }
    Ok(())
}

/// That of the machine that made the database, unless it was told otherwise.
const USUAL_PAGE_SIZE: u64 = 4096;

/// liblmdb makes pages of 256 bytes to 32 KiB (mdb.c, `MAX_PAGESIZE`).
pub(super) fn is_page_size(size: u64) -> bool {
    size.is_power_of_two() && (256..=1 << 15).contains(&size)
}

fn word(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(page.get(at..at + 4)?.try_into().ok()?))
}

fn long(page: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(page.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A meta page of 4096 bytes, as far as it is looked at.
    fn page(at: usize, magic: u32, version: u32) -> [u8; META] {
        let mut page = [0; META];
        page[at..at + 4].copy_from_slice(&magic.to_ne_bytes());
        page[at + 4..at + 8].copy_from_slice(&version.to_ne_bytes());
        page[PAGE_SIZE_AT..PAGE_SIZE_AT + 4].copy_from_slice(&4096_u32.to_ne_bytes());
        page
    }

    #[test]
    fn tells_what_a_file_is() {
        let check = |page: [u8; META]| classify(&page, 1 << 20, Path::new("x"));
        assert!(check(page(16, MAGIC, 1)).is_ok());
        assert!(matches!(check(page(16, MAGIC, 999)), Err(Error::Version { version: 999, .. })));
        assert!(matches!(check(page(24, MAGIC, 3)), Err(Error::Version { version: 3, .. })));
        assert!(matches!(check(page(16, MAGIC.swap_bytes(), 1)), Err(Error::ForeignByteOrder { .. })));
        assert!(matches!(check(page(12, MAGIC, 1)), Err(Error::WordSize { .. })));
        assert!(matches!(check([0; META]), Err(Error::Foreign { .. })));
        for size in [0, 3, 128, 5000, 1 << 16] {
            let mut page = page(16, MAGIC, 1);
            page[PAGE_SIZE_AT..PAGE_SIZE_AT + 4].copy_from_slice(&u32::to_ne_bytes(size));
            assert!(matches!(check(page), Err(Error::Damaged { .. })), "{size}");
        }
    }
}
