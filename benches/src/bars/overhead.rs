//! Detecting costs nothing that can be noticed.

use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::pairs::{Count, Pairs};
use crate::storage::{Kind, Storage};
use crate::verdict::{Bar, Verdict};

/// Distance between checkpoints unless the command line says otherwise.
const DISTANCE: u64 = 8 << 20;
/// Trips that it takes to find out where a reader starts and how it walks.
const FEW: u64 = 12;
/// Of the baseline's time.
const BAR: f64 = 1.01;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let kind = if Storage::can_mount() { Kind::RemoteSsd } else { Kind::Local };
    let storage = bench.storage(kind, bench.settings.pairs_size.expect("defaults are filled in"))?;
    let pairs = Pairs::alternate(
        Count::exactly(bench.settings.pairs),
        || Configuration::PrefetchOff.run(bench, &storage),
        || Configuration::Baseline.run(bench, &storage),
    )?;
    let most_trips = pairs.ours.iter().flat_map(|run| run.mappings()).map(|mapping| mapping.trips).max().unwrap_or(0);
    let allowed = storage.file_size()?.div_ceil(DISTANCE) + FEW;
    let time = Bar::of_times(
        "prefetch-off takes at most 1 % longer than the baseline, cold",
        &pairs.our_times(),
        ("baseline", &pairs.their_times()),
        BAR,
    );
    let trips = Bar::new(
        format!("one trip per distance and {FEW} to find the start: at most {allowed}"),
        format!("{most_trips} trips"),
        Verdict::is((1..=allowed).contains(&most_trips)),
    );
    Ok(time.into_iter().chain([trips]).collect())
}
