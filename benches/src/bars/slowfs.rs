//! The storage that everything here is measured on is never what is slow without being asked to be.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::Bar;
use crate::bench::Bench;
use crate::data;
use crate::statistics::Spread;
use crate::storage::Storage;
use crate::verdict::Verdict;

/// Bytes per second, on two cores.
const BAR: f64 = 1.5e9;

/// A lone reader waits for each of its two read-aheads of 128 KiB, so it sees round trips; several see what the file
/// system can do.
const READERS: u64 = 2;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    if !Storage::can_mount() {
        return Ok(Vec::new());
    }
    let size = bench.settings.pairs_size.expect("defaults are filled in");
    let storage = Storage::without_limits(bench, &data::lmdb(bench, size)?)?;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..bench.settings.repetitions {
        for (readers, rates) in [(1, &mut alone), (READERS, &mut together)] {
            storage.make_cold()?;
            rates.push(rate(&storage.file(), readers)?);
        }
    }
    let (Some(alone), Some(together)) = (Spread::of(alone), Spread::of(together)) else { return Ok(Vec::new()) };
    Ok(vec![Bar::new(
        format!("slowfs without latency serves {} readers at {:.1} GB/s or more", READERS, BAR / 1e9),
        format!(
            "{:.2} GB/s ({:.2} to {:.2}); a single one behind a read-ahead of 128 KiB {:.2} GB/s",
            together.median / 1e9,
            together.least / 1e9,
            together.most / 1e9,
            alone.median / 1e9
        ),
        Verdict::is(together.median >= BAR),
    )])
}

/// Bytes per second at which this many threads read the file, each a part of it.
fn rate(path: &Path, readers: u64) -> anyhow::Result<f64> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let start = Instant::now();
    thread::scope(|scope| {
        let parts: Vec<_> = (0..readers)
            .map(|reader| (size * reader / readers, size * (reader + 1) / readers))
            .map(|(from, to)| {
                scope.spawn({
                    let file = &file;
                    move || read(file, from, to)
                })
            })
            .collect();
        parts.into_iter().try_for_each(|part| part.join().expect("reading does not panic"))
    })?;
    Ok(size as f64 / start.elapsed().as_secs_f64())
}

fn read(file: &File, from: u64, to: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut at = from;
    while at < to {
        let wanted = buffer.len().min((to - at) as usize);
        match file.read_at(&mut buffer[..wanted], at)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => at += count as u64,
        }
    }
    Ok(())
}
