//! The demonstration: one reader in four ways, and one table.

use anyhow::ensure;

use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::measure::Measurement;
use crate::results::table::{Table, mebibytes, megabytes_per_second, seconds};
use crate::storage::{Kind, Storage};

pub fn run(bench: &Bench) -> anyhow::Result<()> {
    let kind = if Storage::can_mount() { Kind::RemoteSsd } else { Kind::Local };
    if kind == Kind::Local {
        eprintln!("so the demonstration reads from the local disk with a cold page cache: expect less of a difference");
    }
    let storage = bench.storage(kind, bench.size())?;
    let size = storage.file_size()?;

    let mut runs = Vec::new();
    for configuration in Configuration::PAPER {
        eprintln!("running: {}", configuration.label());
        runs.push((configuration, configuration.run(bench, &storage)?));
    }
    let warm = runs.iter().find(|(configuration, _)| *configuration == Configuration::Warm);
    let limit = warm.and_then(|(_, warm)| kind.limit(size, warm.seconds));

    println!("\nlmdb-reader on an LMDB of {} on {}", mebibytes(size), kind.label());
    println!("{}", table(&runs, size, limit));
    println!("limit: the longer of the warm run and what the storage needs to deliver all bytes once.");
    let first = &runs[0].1.output;
    ensure!(runs.iter().all(|(_, run)| run.output == *first), "the outputs differ: precache changed what was read");
    Ok(())
}

fn table(runs: &[(Configuration, Measurement)], size: u64, limit: Option<f64>) -> Table {
    let mut table = Table::new(["", "time", "MB/s", "fetched", "requests", "checksum "]);
    for (configuration, run) in runs {
        let fetched = run.fetched.as_ref();
        table.row([
            configuration.label().to_owned(),
            seconds(run.seconds),
            megabytes_per_second(size, run.seconds),
            fetched.map_or("not counted".into(), |fetched| mebibytes(fetched.bytes)),
            fetched.map_or("not counted".into(), |fetched| fetched.requests.to_string()),
            run.field("checksum").unwrap_or("none").to_owned(),
        ]);
    }
    if let Some(limit) = limit {
        let rate = megabytes_per_second(size, limit);
        table.row(["limit".to_owned(), seconds(limit), rate, mebibytes(size), String::new(), String::new()]);
    }
    table
}
