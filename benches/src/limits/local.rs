//! On the local disk, which needs little help, precache does no harm, and helps where the kernel reads ahead little.

use super::Case;
use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::pairs::{Count, Pairs};
use crate::readahead::ReadAhead;
use crate::storage::Kind;
use crate::verdict::Bar;

/// KiB of read-ahead, and the share of the plain reader's time that must not be exceeded.
const BARS: [(u32, &str, f64); 2] =
    [(128, "at least 1.2 x as fast as plain", 1.0 / 1.2), (8192, "no slower than plain", 1.0)];

/// So many times as many pairs as elsewhere: a disk that is shared with others delivers twice as much in one run as in the next.
const PAIRS: u32 = 4;

pub fn cases() -> Vec<Case> {
    let case = |(kilobytes, what, bar): (u32, &'static str, f64)| {
        let subject = format!("sequential, cold, local disk, read-ahead {kilobytes} KiB: {what}");
        Case::new(format!("local-{kilobytes}K"), subject, move |bench, subject| judge(bench, subject, kilobytes, bar))
    };
    BARS.map(case).into()
}

fn judge(bench: &Bench, subject: &str, kilobytes: u32, bar: f64) -> anyhow::Result<Vec<Bar>> {
    let storage = bench.storage(Kind::Local, 2 * bench.size())?;
    let _read_ahead = ReadAhead::set(kilobytes, storage.folder())?;
    let count = bench.count(PAIRS * bench.settings.repetitions);
    let pairs = Pairs::alternate(
        Count { patience: PAIRS * count.patience, ..count },
        || Configuration::PrefetchOn.run(bench, &storage),
        || Configuration::Baseline.run(bench, &storage),
    )?;
    Ok(Bar::of_times(subject, &pairs.our_times(), ("plain", &pairs.their_times()), bar).into_iter().collect())
}
