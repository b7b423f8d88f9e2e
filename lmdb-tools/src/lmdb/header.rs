//! The first look at a data file, before liblmdb gets to see it: a refusal that says what the file is instead.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::Error;

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;

/// The magic number follows the page header: 16 bytes in 0.9, 24 in 1.0 (which added a transaction number to each page).
const MAGIC_AT: usize = 16;
const MAGIC_AT_1_0: usize = 24;

/// Refuses what is not an LMDB 0.9 data file of this machine's byte order.
pub(super) fn check(path: &Path) -> Result<(), Error> {
    let read = |error| Error::Read { path: path.into(), error };
    // Opening a FIFO or a device could wait or act; the type is asked by name first.
    if !path.metadata().map_err(read)?.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    let file = File::open(path).map_err(read)?;
    // One page is wanted; without this the first read of a file brings in more.
    let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
    let mut page = [0; MAGIC_AT_1_0 + 8];
    match file.read_at(&mut page, 0).map_err(read)? {
        0 => Err(Error::Empty { path: path.into() }),
        _ => classify(&page, path),
    }
}

fn classify(page: &[u8; MAGIC_AT_1_0 + 8], path: &Path) -> Result<(), Error> {
    let word = |at: usize| u32::from_ne_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    match (word(MAGIC_AT), word(MAGIC_AT_1_0)) {
        (MAGIC, _) if word(MAGIC_AT + 4) == VERSION => Ok(()),
        (MAGIC, _) => Err(Error::Version { path: path.into(), version: word(MAGIC_AT + 4) }),
        (_, MAGIC) => Err(Error::Version { path: path.into(), version: word(MAGIC_AT_1_0 + 4) }),
        (magic, _) if magic == MAGIC.swap_bytes() => Err(Error::ForeignByteOrder { path: path.into() }),
        _ => Err(Error::Foreign { path: path.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(at: usize, magic: u32, version: u32) -> [u8; 32] {
        let mut page = [0; 32];
        page[at..at + 4].copy_from_slice(&magic.to_ne_bytes());
        if at + 8 <= page.len() {
            page[at + 4..at + 8].copy_from_slice(&version.to_ne_bytes());
        }
        page
    }

    #[test]
    fn tells_what_a_file_is() {
        let check = |page: [u8; 32]| classify(&page, Path::new("x"));
        assert!(check(page(16, MAGIC, 1)).is_ok());
        assert!(matches!(check(page(16, MAGIC, 999)), Err(Error::Version { version: 999, .. })));
        assert!(matches!(check(page(24, MAGIC, 3)), Err(Error::Version { version: 3, .. })));
        assert!(matches!(check(page(16, MAGIC.swap_bytes(), 1)), Err(Error::ForeignByteOrder { .. })));
        assert!(matches!(check([0; 32]), Err(Error::Foreign { .. })));
    }
}
