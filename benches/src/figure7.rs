//! Figure 7: the reader alone, with detection, with pre-caching and from a warm cache, on each storage, and beside them
//! what else one could do.

use serde::Serialize;

use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::machine::Machine;
use crate::measure::Measurement;
use crate::results::bars::{self, Group, Panel};
use crate::results::publish;
use crate::results::table::{Table, mebibytes, megabytes_per_second, seconds};
use crate::statistics::{Ratio, Spread};
use crate::storage::Kind;

/// One storage.
#[derive(Serialize)]
struct Part {
    storage: Kind,
    bytes: u64,
    limit_seconds: Option<f64>,
    rows: Vec<Row>,
    left_out: Vec<String>,
}

/// One configuration on one storage.
#[derive(Serialize)]
struct Row {
    configuration: Configuration,
    seconds: Vec<f64>,
    spread: Spread,
    /// Of its time to the baseline's.
    to_baseline: Option<Ratio>,
    fetched_bytes: Option<u64>,
    requests: Option<u64>,
}

pub fn run(bench: &Bench) -> anyhow::Result<()> {
    let machine = Machine::here(bench.scratch(), bench.settings.as_user.as_deref());
    let parts = bench.storages().into_iter().map(|kind| measure(bench, kind)).collect::<anyhow::Result<Vec<_>>>()?;
    let text: String = parts.iter().map(describe).collect();
    publish(bench, &machine, "figure7", "Figure 7: the reader in all configurations", &text, &parts)?;
    let panels: Vec<Panel> = parts.iter().map(panel).collect();
    bars::draw(&bench.settings.results.join("figure7.svg"), &panels, &[])
}

fn measure(bench: &Bench, kind: Kind) -> anyhow::Result<Part> {
    let storage = bench.storage(kind, bench.size_for(kind))?;
    let bytes = storage.file_size()?;
    let mut left_out = Vec::new();
    let mut runs: Vec<(Configuration, Vec<Measurement>)> = Vec::new();
    for configuration in [&Configuration::PAPER[..], &Configuration::PEERS].concat() {
        match configuration.obstacle(&storage) {
            Some(why) => left_out.push(format!("{}: {why}", configuration.label())),
            None => runs.push((configuration, Vec::new())),
        }
    }
    for repetition in 1..=bench.settings.repetitions {
        for (configuration, measured) in &mut runs {
            let run = configuration.run(bench, &storage)?;
            eprintln!("{} {repetition}: {}: {}", kind.label(), configuration.label(), seconds(run.seconds));
            measured.push(run);
        }
    }

    let times = |wanted: Configuration| -> Vec<f64> {
        let found = runs.iter().find(|(configuration, _)| *configuration == wanted);
        found.map_or(Vec::new(), |(_, measured)| measured.iter().map(|run| run.seconds).collect())
    };
    let baseline = times(Configuration::Baseline);
    let warm = Spread::of(times(Configuration::Warm));
    let limit_seconds = warm.and_then(|warm| kind.limit(bytes, warm.median));
    let rows = runs.iter().filter_map(|(configuration, measured)| {
        let seconds = times(*configuration);
        let counted = |what: fn(&crate::storage::Fetched) -> u64| {
            Spread::of(measured.iter().filter_map(|run| run.fetched.as_ref()).map(|f| what(f) as f64))
                .map(|spread| spread.median as u64)
        };
        Some(Row {
            configuration: *configuration,
            spread: Spread::of(seconds.iter().copied())?,
            to_baseline: Ratio::of(&seconds, &baseline),
            seconds,
            fetched_bytes: counted(|fetched| fetched.bytes),
            requests: counted(|fetched| fetched.requests),
        })
    });
    Ok(Part { storage: kind, bytes, limit_seconds, rows: rows.collect(), left_out })
}

fn describe(part: &Part) -> String {
    let mut table = Table::new([
        "configuration",
        "median",
        "least to most",
        "MB/s",
        "time to baseline (95 %)",
        "fetched",
        "requests",
    ]);
    let counted = |number: Option<u64>| number.map_or("not counted".to_owned(), |number| number.to_string());
    for row in &part.rows {
        table.row([
            row.configuration.label().to_owned(),
            seconds(row.spread.median),
            format!("{} to {}", seconds(row.spread.least), seconds(row.spread.most)),
            megabytes_per_second(part.bytes, row.spread.median),
            row.to_baseline.map_or(String::new(), |r| format!("{:.3} ({:.3} to {:.3})", r.median, r.low, r.high)),
            row.fetched_bytes.map_or("not counted".to_owned(), mebibytes),
            counted(row.requests),
        ]);
    }
    let limit = part.limit_seconds.map_or(String::new(), |limit| {
        format!("Limit: {}, the longer of the warm run and what the storage needs for all bytes.\n", seconds(limit))
    });
    let left_out: String = part.left_out.iter().map(|why| format!("Left out: {why}.\n")).collect();
    let runs = part.rows.first().map_or(0, |row| row.spread.count);
    format!(
        "## {}, {} LMDB, {runs} runs each\n\n{table}\n{limit}{left_out}\n",
        part.storage.label(),
        mebibytes(part.bytes)
    )
}

fn panel(part: &Part) -> Panel {
    let group = |row: &Row| Group { name: row.configuration.label().to_owned(), bars: vec![Some(row.spread)] };
    Panel {
        title: format!("{}, {}", part.storage.label(), mebibytes(part.bytes)),
        groups: part.rows.iter().map(group).collect(),
        limit: part.limit_seconds,
    }
}
