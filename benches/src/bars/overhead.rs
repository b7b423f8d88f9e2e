//! Detecting costs nothing that can be noticed.

use crate::bench::Bench;
use crate::configuration::{Configuration, map_reader};
use crate::measure::{Launch, Measurement};
use crate::pairs::{Count, Pairs};
use crate::storage::{Kind, Storage};
use crate::verdict::{Bar, Verdict};

/// Distance between checkpoints unless the command line says otherwise.
const DISTANCE: u64 = 8 << 20;
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
    let time = Bar::of_times(
        "prefetch-off takes at most 1 % longer than the baseline, cold",
        &pairs.our_times(),
        ("baseline", &pairs.their_times()),
        BAR,
    );
    let stolen = pairs.most_stolen() * 100.0;
    let time = time.map(|bar| Bar { measured: format!("{}, {stolen:.1} % stolen at most", bar.measured), ..bar });
    let distances = storage.file_size()?.div_ceil(DISTANCE);
    let map = Launch::new(map_reader(bench, &storage, &[])).under_precache(&["--mode", "detect"]);
    let maps = [map.run_cold(bench, &storage)?];
    let trips = [trips("map-reader", &maps, distances), trips("lmdb-reader", &pairs.ours, distances)];
    Ok(time.into_iter().chain(trips).collect())
}

/// Of the run with most of them.
fn trips(reader: &str, runs: &[Measurement], allowed: u64) -> Bar {
    let most = runs.iter().flat_map(|run| run.mappings()).map(|mapping| mapping.trips).max().unwrap_or(0);
    Bar::new(
        format!("{reader}: one trip per distance: at most {allowed}"),
        format!("{most} trips"),
        Verdict::is((1..=allowed).contains(&most)),
    )
}
