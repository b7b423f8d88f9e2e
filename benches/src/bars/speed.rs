//! Pre-caching takes little longer than what the storage, or the reader itself, makes unavoidable.

use super::Bar;
use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::results::table::seconds;
use crate::statistics::{Ratio, Spread};
use crate::storage::{Kind, Storage};
use crate::verdict::Verdict;

/// The share of the limit's speed that must be reached.
const EFFICIENCY: f64 = 0.90;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    if !Storage::can_mount() {
        return Ok(Vec::new());
    }
    let kind = Kind::RemoteSsd;
    let storage = bench.storage(kind, bench.size())?;
    let (mut on, mut limits) = (Vec::new(), Vec::new());
    for _ in 0..bench.settings.repetitions {
        let warm = Configuration::Warm.run(bench, &storage)?.seconds;
        limits.extend(kind.limit(storage.file_size()?, warm));
        on.push(Configuration::PrefetchOn.run(bench, &storage)?.seconds);
    }
    let (Some(ratio), Some(time), Some(limit)) = (Ratio::of(&on, &limits), Spread::of(on), Spread::of(limits)) else {
        return Ok(Vec::new());
    };
    Ok(vec![Bar::new(
        format!("prefetch-on takes at most limit / {EFFICIENCY:.2} ({:.3} of the limit)", 1.0 / EFFICIENCY),
        format!(
            "{} where the limit is {}: {:.3} ({:.3} to {:.3}, {} pairs)",
            seconds(time.median),
            seconds(limit.median),
            ratio.median,
            ratio.low,
            ratio.high,
            ratio.pairs
        ),
        Verdict::at_most(ratio, 1.0 / EFFICIENCY),
    )])
}
