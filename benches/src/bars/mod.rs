//! What precache must reach, measured and judged.

mod bytes;
mod faults;
mod output;
mod overhead;
mod slowfs;
mod speed;
mod vast;

use serde::Serialize;

use crate::bench::Bench;
use crate::machine::Machine;
use crate::results::publish;
use crate::results::table::Table;
use crate::verdict::Verdict;

/// One requirement and how it was met.
#[derive(Debug, Serialize)]
struct Bar {
    requirement: String,
    measured: String,
    verdict: Verdict,
}

impl Bar {
    fn new(requirement: impl Into<String>, measured: impl Into<String>, verdict: Verdict) -> Self {
        let bar = Self { requirement: requirement.into(), measured: measured.into(), verdict };
        eprintln!("{}: {}: {}", bar.verdict, bar.requirement, bar.measured);
        bar
    }
}

pub fn run(bench: &Bench) -> anyhow::Result<()> {
    let machine = Machine::here(bench.scratch());
    let subjects =
        [slowfs::judge, faults::judge, bytes::judge, vast::judge, output::judge, speed::judge, overhead::judge];
    let mut bars = Vec::new();
    for judge in subjects {
        bars.extend(judge(bench)?);
    }
    let mut table = Table::new(["requirement", "measured ", "verdict "]);
    for bar in &bars {
        table.row([bar.requirement.clone(), bar.measured.clone(), bar.verdict.to_string()]);
    }
    publish(bench, &machine, "bars", "What it must reach", &table.to_string(), &bars)
}
