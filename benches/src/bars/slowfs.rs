//! The storage that everything here is measured on is never what is slow without being asked to be.

use crate::bandwidth::{self, Way};
use crate::bench::Bench;
use crate::data;
use crate::mount::Slow;
use crate::statistics::{Median, Spread};
use crate::storage::Storage;
use crate::verdict::{Bar, Verdict};

/// Bytes per second, on two cores.
const BAR: f64 = 1.5e9;

/// A lone reader waits for each of its two read-aheads of 128 KiB, so it sees round trips, as do two that the kernel puts
/// on one processor; four see what the file system can do.
const READERS: u64 = 4;
/// A round takes a second; so many for each repetition make the median sure.
const ROUNDS: u32 = 3;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    if !Storage::can_mount() {
        return Ok(Vec::new());
    }
    let size = bench.settings.pairs_size.expect("defaults are filled in");
    let storage = Storage::slow(bench, &Slow::unlimited(), &data::lmdb(bench, size)?)?;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..bench.settings.repetitions * ROUNDS {
        for (readers, rates) in [(1, &mut alone), (READERS, &mut together)] {
            let _memory = storage.make_cold()?;
            rates.push(bandwidth::rate(&storage.file(), readers, u64::MAX, Way::PageCache)?);
        }
    }
    let (Some(alone), Some(together)) = (Spread::of(alone), Median::of(together)) else { return Ok(Vec::new()) };
    Ok(vec![Bar::new(
        format!("slowfs without latency serves {} readers at {:.1} GB/s or more", READERS, BAR / 1e9),
        format!(
            "{:.2} GB/s ({:.2} to {:.2}); a single one behind a read-ahead of 128 KiB {:.2} GB/s",
            together.median / 1e9,
            together.low / 1e9,
            together.high / 1e9,
            alone.median / 1e9
        ),
        Verdict::at_least(together.interval(), BAR),
    )])
}
