//! A file's pages in the page cache: brought in, thrown out, and checked, for no figure is better than its cold cache.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapOptions};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

const PAGE: u64 = 4096;
/// Pages asked for one by one where the whole file cannot be asked for.
const SAMPLES: u64 = 512;
/// Others may drop caches, or the kernel reclaim what is idle, while a file is read in.
const ATTEMPTS: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("{file}: {why}", file = .0.display(), why = .1)]
    Io(PathBuf, io::Error),
    #[error(
        "{percent:.1} % of {file} stay in the page cache: end the programs that have it mapped, or run as root",
        percent = .1 * 100.0, file = .0.display()
    )]
    StaysWarm(PathBuf, f64),
    #[error(
        "only {percent:.1} % of {file} stay in the page cache: free memory, or choose a smaller --size",
        percent = .1 * 100.0, file = .0.display()
    )]
    StaysCold(PathBuf, f64),
}

/// Throws the file out of the page cache, and makes sure.
pub fn cool(path: &Path) -> Result<(), CacheError> {
    let failed = |why| CacheError::Io(path.to_owned(), why);
    let file = File::open(path).map_err(failed)?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(|error| failed(error.into()))?;
    if resident(&file).map_err(failed)? == 0.0 {
        return Ok(());
    }
    // Pages may lie in batches that no CPU has handed in yet: dropping everything hands them in. Only root may.
    let _ = std::fs::write("/proc/sys/vm/drop_caches", "1");
    match resident(&file).map_err(failed)? {
        0.0 => Ok(()),
        share => Err(CacheError::StaysWarm(path.to_owned(), share)),
    }
}

/// Reads the whole file into the page cache, unless it is there, and makes sure.
pub fn warm(path: &Path) -> Result<(), CacheError> {
    let failed = |why| CacheError::Io(path.to_owned(), why);
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..ATTEMPTS {
        if resident(&file).map_err(failed)? == 1.0 {
            return Ok(());
        }
        file.rewind().map_err(failed)?;
        while file.read(&mut buffer).map_err(failed)? > 0 {}
    }
    match resident(&file).map_err(failed)? {
        1.0 => Ok(()),
        share => Err(CacheError::StaysCold(path.to_owned(), share)),
    }
}

/// The share of the file that is in the page cache.
fn resident(file: &File) -> io::Result<f64> {
    let metadata = file.metadata()?;
    let me = nix::unistd::geteuid();
    // mincore(2) tells only owners and root the truth; others are told that everything is there.
    if me.is_root() || me.as_raw() == metadata.uid() {
        // SAFETY: the map is never read, so what others do to the file does not matter.
        let map = unsafe { MmapOptions::new().map(file)? };
        share_of_map(&map)
    } else {
        share_of_samples(file, metadata.len())
    }
}

fn share_of_map(map: &Mmap) -> io::Result<f64> {
    let mut pages = vec![0u8; map.len().div_ceil(PAGE as usize)];
    // SAFETY: the range is mapped, and the vector has one byte for each of its pages (mincore(2)).
    let asked = unsafe { libc::mincore(map.as_ptr() as *mut libc::c_void, map.len(), pages.as_mut_ptr()) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() as f64 / pages.len() as f64)
}

/// Reads single bytes if that needs no waiting (RWF_NOWAIT).
fn share_of_samples(file: &File, length: u64) -> io::Result<f64> {
    let samples = SAMPLES.min(length.div_ceil(PAGE)).max(1);
    let mut found = 0;
    for sample in 0..samples {
        let offset = length / samples * sample;
        let mut byte = 0u8;
        let part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        // SAFETY: one part, which points to a byte that lives through the call (preadv2(2)).
        let read = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset as libc::off_t, libc::RWF_NOWAIT) };
        match read {
            1 => found += 1,
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EAGAIN) => {}
                error => return Err(error),
            },
        }
    }
    Ok(found as f64 / samples as f64)
}
