//! Reads a cached file through maps in several ways, and tells how long each takes: as it is mapped; with pages mapped ahead
//! by the reader's own calls (MADV_POPULATE_READ), a piece at a time; and where everything is mapped before.
//!
//! What no call can undercut is the last of these, for it takes no fault at all.

use std::fmt;
use std::fs::File;
use std::time::Instant;

use anyhow::{Context, ensure};
use memmap2::{Advice, Mmap};
use precache_demos::checksum::Checksum;

/// Bytes mapped by one call.
const PIECES: [usize; 3] = [256 << 10, 2 << 20, 32 << 20];
/// Bytes read at once, as records are.
const RECORD: usize = 64 << 10;

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).context("name the file to map")?;
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let map = || {
        // SAFETY: the file belongs to the measurement, which does not change it.
        unsafe { Mmap::map(&file) }.with_context(|| format!("cannot map {}", path.display()))
    };
    let whole = map()?;
    let expected = Way::Plain.read(&whole)?.sum;
    for way in [Way::Plain].into_iter().chain(PIECES.map(Way::Ahead)) {
        let taken = way.read(&map()?)?;
        ensure!(taken.sum == expected, "{way} has read something else");
        println!("{way}={}", taken.seconds);
    }
    // It is still mapped, from the first pass.
    println!("mapped={}", Way::Plain.read(&whole)?.seconds);
    Ok(())
}

#[derive(Clone, Copy)]
enum Way {
    Plain,
    /// In pieces of so many bytes.
    Ahead(usize),
}

struct Taken {
    seconds: f64,
    sum: u64,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain"),
            Self::Ahead(piece) => write!(f, "ahead-{}K", piece >> 10),
        }
    }
}

impl Way {
    fn read(self, map: &Mmap) -> anyhow::Result<Taken> {
        let start = Instant::now();
        let mut checksum = Checksum::default();
        for begin in (0..map.len()).step_by(RECORD) {
            let end = (begin + RECORD).min(map.len());
            if let Self::Ahead(piece) = self
                && begin.is_multiple_of(piece)
            {
                let length = piece.min(map.len() - begin);
                map.advise_range(Advice::PopulateRead, begin, length).context("MADV_POPULATE_READ")?;
            }
            checksum.add(&map[begin..end]);
        }
        Ok(Taken { seconds: start.elapsed().as_secs_f64(), sum: checksum.value() })
    }
}
