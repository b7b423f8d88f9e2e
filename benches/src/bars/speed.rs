//! Pre-caching takes little longer than what the storage, or the reader itself, makes unavoidable.

use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::pairs::{Count, Pairs};
use crate::storage::{Kind, Storage};
use crate::verdict::Bar;

/// The share of the limit's speed that must be reached.
const EFFICIENCY: f64 = 0.90;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    if !Storage::can_mount() {
        return Ok(Vec::new());
    }
    let kind = Kind::RemoteSsd;
    let storage = bench.storage(kind, bench.size())?;
    let pairs = Pairs::cold_then_warm(
        Count::exactly(bench.settings.repetitions),
        || Configuration::PrefetchOn.run(bench, &storage),
        || Configuration::Warm.run(bench, &storage),
    )?;
    let size = storage.file_size()?;
    let limits: Vec<f64> = pairs.their_times().into_iter().filter_map(|warm| kind.limit(size, warm)).collect();
    let requirement =
        format!("prefetch-on takes at most limit / {EFFICIENCY:.2} ({:.3} of the limit)", 1.0 / EFFICIENCY);
    Ok(Bar::of_times(requirement, &pairs.our_times(), ("limit", &limits), 1.0 / EFFICIENCY).into_iter().collect())
}
