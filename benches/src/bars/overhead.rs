//! Detecting costs nothing that can be noticed.

use super::Bar;
use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::statistics::Ratio;
use crate::storage::{Kind, Storage};
use crate::verdict::Verdict;

/// Distance between checkpoints unless the command line says otherwise.
const DISTANCE: u64 = 8 << 20;
/// Trips that it takes to find out where a reader starts and how it walks.
const FEW: u64 = 16;
/// Of the baseline's time.
const BAR: f64 = 1.01;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let kind = if Storage::can_mount() { Kind::RemoteSsd } else { Kind::Local };
    let storage = bench.storage(kind, bench.settings.pairs_size.expect("defaults are filled in"))?;
    let (mut alone, mut detected, mut most_trips) = (Vec::new(), Vec::new(), 0);
    for pair in 0..bench.settings.pairs {
        // Who goes first changes, so that neither profits from what the other left behind.
        let mut order = [Configuration::Baseline, Configuration::PrefetchOff];
        if pair % 2 == 1 {
            order.reverse();
        }
        for configuration in order {
            let run = configuration.run(bench, &storage)?;
            most_trips = most_trips.max(run.mappings().map(|mapping| mapping.trips).max().unwrap_or(0));
            if configuration == Configuration::Baseline { &mut alone } else { &mut detected }.push(run.seconds);
        }
    }
    let Some(ratio) = Ratio::of(&detected, &alone) else { return Ok(Vec::new()) };
    let allowed = storage.file_size()?.div_ceil(DISTANCE) + FEW;
    Ok(vec![
        Bar::new(
            "prefetch-off takes at most 1 % longer than the baseline, cold",
            format!("{:.4} of it ({:.4} to {:.4}, {} pairs)", ratio.median, ratio.low, ratio.high, ratio.pairs),
            Verdict::at_most(ratio, BAR),
        ),
        Bar::new(
            format!("one trip per distance and {FEW} to find the start: at most {allowed}"),
            format!("{most_trips} trips"),
            Verdict::is((1..=allowed).contains(&most_trips)),
        ),
    ])
}
