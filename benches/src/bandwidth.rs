//! What a storage delivers when nothing but the storage itself, and the way to it, holds it up.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use memmap2::MmapMut;

use crate::storage::Storage;

/// Bytes asked for in one read: the largest request that FUSE sends.
const READ: u64 = 1 << 20;
/// Readers tried for the best bandwidth: slowfs serves 64 requests at a time, disks want fewer.
const READERS: [u64; 2] = [16, 64];
/// Share of the file that is read to measure it, and the least: until all requests are in flight, and when the last ones are,
/// less is delivered.
const SHARE: u64 = 4;
const LEAST: u64 = 256 << 20;

/// How it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through the page cache, as readers do: at most so many requests in flight as the mount lets background requests be.
    PageCache,
    /// Past it (O_DIRECT).
    Direct,
}

/// Bytes per second at which this many threads read the first bytes of the file, each a part of them.
pub fn rate(path: &Path, readers: u64, most: u64, way: Way) -> anyhow::Result<f64> {
    let flags = if way == Way::Direct { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    let size = file.metadata()?.len().min(most);
    // Parts begin at whole reads: direct I/O wants blocks.
    let cut = |reader: u64| if reader == readers { size } else { size * reader / readers / READ * READ };
    let start = Instant::now();
    thread::scope(|scope| {
        let file = &file;
        let parts: Vec<_> =
            (0..readers).map(|reader| scope.spawn(move || read(file, cut(reader), cut(reader + 1)))).collect();
        parts.into_iter().try_for_each(|part| part.join().expect("reading does not panic"))
    })
    .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(size as f64 / start.elapsed().as_secs_f64())
}

fn read(file: &File, from: u64, to: u64) -> io::Result<()> {
    // Aligned, as direct I/O wants it (open(2)).
    let mut buffer = MmapMut::map_anon(READ as usize)?;
    let mut at = from;
    while at < to {
        match file.read_at(&mut buffer, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => at += count as u64,
        }
    }
    Ok(())
}

/// The least time in which a cold file can be read.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Bytes per second: the best that was measured.
    pub bandwidth: f64,
    /// Seconds for the reads that depend on each other before the stream can start.
    start: f64,
}

impl Limit {
    /// Measures the storage, cold, by the best of several ways. `dependent` requests of this latency come first.
    pub fn measure(storage: &Storage, latency: Duration, dependent: u32) -> anyhow::Result<Self> {
        let (mut bandwidth, sample) = (0f64, LEAST.max(storage.file_size()? / SHARE));
        for readers in READERS {
            for way in [Way::Direct, Way::PageCache] {
                let _memory = storage.make_cold()?;
                bandwidth = bandwidth.max(rate(&storage.file(), readers, sample, way)?);
            }
        }
        eprintln!("{}: {:.0} MB/s at best", storage.file().display(), bandwidth / 1e6);
        Ok(Self { bandwidth, start: (latency * dependent).as_secs_f64() })
    }

    /// For these bytes, read by someone who needs `warm` seconds when they are cached.
    pub fn seconds(&self, bytes: u64, warm: f64) -> f64 {
        warm.max(bytes as f64 / self.bandwidth + self.start)
    }
}
