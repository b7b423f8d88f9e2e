//! What `--engine auto` chooses is as fast as the best of all engines.

use std::time::Duration;

use anyhow::Context;

use super::Case;
use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::data;
use crate::measure::Launch;
use crate::mount::Slow;
use crate::readahead::ReadAhead;
use crate::results::table::seconds;
use crate::statistics::Spread;
use crate::storage::{Kind, Storage};
use crate::verdict::Bar;

const BAR: f64 = 1.05;
const OPTION: &str = "--engine";
const ENGINES: [&str; 4] = ["readahead", "pread", "io_uring", "populate"];
/// Of the best one's time in the first round: who takes longer is not the best, and does not run again.
const RIVAL: f64 = 1.25;
const LATENCY: Duration = Duration::from_millis(2);
const BANDWIDTH: u64 = 400_000_000;
/// KiB, of the local disk: what most have.
const READ_AHEAD: u32 = 128;

pub fn cases() -> Vec<Case> {
    let slow = |name: &str, willneed| {
        let slow = Slow { willneed, ..Slow::new(LATENCY, BANDWIDTH) };
        let subject = format!("sequential, cold, {}", slow.label());
        Case::new(name, subject, move |bench, subject| {
            judge(bench, subject, &Storage::slow(bench, &slow, &data::lmdb(bench, bench.size())?)?)
        })
    };
    let subject = format!("sequential, cold, local disk, read-ahead {READ_AHEAD} KiB");
    let local = Case::new("engines-local", subject, |bench, subject| {
        let storage = bench.storage(Kind::Local, 2 * bench.size())?;
        let _read_ahead = ReadAhead::set(READ_AHEAD, storage.folder())?;
        judge(bench, subject, &storage)
    });
    vec![slow("engines", true), slow("engines-no-willneed", false), local]
}

fn judge(bench: &Bench, subject: &str, storage: &Storage) -> anyhow::Result<Vec<Bar>> {
    let reader = Launch::new(lmdb_reader(bench, storage, &[]));
    let run = |engine: &str| {
        let launch = reader.clone().under_precache(&[OPTION, engine]);
        anyhow::Ok(launch.run_cold(bench, storage)?.seconds)
    };
    let mut own = vec![run("auto")?];
    let mut engines = Vec::new();
    for engine in ENGINES {
        engines.push((engine, vec![run(engine)?]));
    }
    let first = |(_, times): &(&str, Vec<f64>)| times.first().copied().unwrap_or(f64::INFINITY);
    let best = engines.iter().map(first).fold(f64::INFINITY, f64::min);
    for _ in bench.count(bench.settings.repetitions).pairs() {
        own.push(run("auto")?);
        for (engine, times) in engines.iter_mut().filter(|engine| first(engine) <= best * RIVAL) {
            times.push(run(engine)?);
        }
    }
    let median = |times: &[f64]| Spread::of(times.iter().copied()).map_or(f64::NAN, |spread| spread.median);
    engines.sort_by(|(_, one), (_, other)| median(one).total_cmp(&median(other)));
    let list: Vec<String> =
        engines.iter().map(|(engine, times)| format!("{engine} {}", seconds(median(times)))).collect();
    let (engine, times) = engines.first().context("there are engines")?;
    let requirement = format!("{subject}: time of {OPTION} auto <= {BAR} x best engine");
    let what = format!("{engine} (of {})", list.join(", "));
    Ok(Bar::of_times(requirement, &own, (&what, times), BAR).into_iter().collect())
}
