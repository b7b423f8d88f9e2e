//! Brings a file into the page cache, as fast as it can and by one simple way: what precache's readers are compared with where
//! a bar is not met. It reads nothing itself and follows no reader.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use memmap2::{Advice, Mmap, MmapOptions};

/// Pieces are taken in order, each by the next thread that has nothing to do.
#[derive(Parser)]
struct Options {
    file: PathBuf,
    #[arg(long)]
    way: Way,
    /// Pieces that are fetched at the same time, a thread for each.
    #[arg(long)]
    depth: usize,
    #[arg(long)]
    kilobytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// pread(2).
    Read,
    /// readahead(2).
    Readahead,
    /// MADV_POPULATE_READ.
    Populate,
    /// The same after MADV_HUGEPAGE, which lets the kernel read as much at a time as the storage takes.
    PopulateHuge,
    /// The same without the kernel's own read-ahead (MADV_RANDOM).
    PopulateHugeRandom,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let name = || options.file.display().to_string();
    let file = File::open(&options.file).with_context(name)?;
    let size = file.metadata().with_context(name)?.len();
    let map = options.way.map(&file).with_context(name)?;
    let (next, piece) = (AtomicU64::new(0), options.kilobytes << 10);
    thread::scope(|scope| {
        let fill = || -> io::Result<()> {
            let mut buffer = vec![0; if options.way == Way::Read { piece as usize } else { 0 }];
            loop {
                let at = next.fetch_add(piece, Relaxed);
                if at >= size {
                    return Ok(());
                }
                options.way.fetch(&file, map.as_ref(), at, piece.min(size - at), &mut buffer)?;
            }
        };
        let threads: Vec<_> = (0..options.depth).map(|_| scope.spawn(fill)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("filling does not panic"))
    })
    .with_context(name)
}

impl Way {
    fn map(self, file: &File) -> io::Result<Option<Mmap>> {
        if matches!(self, Self::Read | Self::Readahead) {
            return Ok(None);
        }
        // SAFETY: the file belongs to the measurement, which does not change it.
        let map = unsafe { MmapOptions::new().map(file) }?;
        if self != Self::Populate {
            map.advise(Advice::HugePage)?;
        }
        if self == Self::PopulateHugeRandom {
            map.advise(Advice::Random)?;
        }
        Ok(Some(map))
    }

    fn fetch(self, file: &File, map: Option<&Mmap>, at: u64, length: u64, buffer: &mut [u8]) -> io::Result<()> {
        match map {
            Some(map) => map.advise_range(Advice::PopulateRead, at as usize, length as usize),
            None if self == Self::Read => file.read_exact_at(&mut buffer[..length as usize], at),
            None => {
                // SAFETY: takes a descriptor that is open, and two numbers (readahead(2)).
                let result = unsafe { libc::readahead(file.as_raw_fd(), at as libc::off64_t, length as usize) };
                if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
            }
        }
    }
}
