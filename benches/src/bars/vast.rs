//! A file of 240 GiB costs its reader next to nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, ensure};
use nix::time::{ClockId, clock_gettime};
use precache::supervisor::RunReport;
use serde::Deserialize;

use crate::bench::Bench;
use crate::data;
use crate::measure::Stopped;
use crate::statistics::Median;
use crate::verdict::{Bar, Verdict};

const LENGTH: u64 = 240 << 30;

/// What vast-reader tells of itself.
#[derive(Deserialize)]
struct Told {
    /// On the monotonic clock.
    first_byte_at: f64,
    maps: u64,
    page_table_kilobytes: u64,
    fork_seconds: f64,
}

/// What one run of it showed.
struct Seen {
    ready: f64,
    told: Told,
    optimizer_kilobytes: u64,
}

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let file = data::sparse(bench, LENGTH)?.join("vast");
    let ways = [None, Some("guard"), Some("mprotect")];
    let mut seen = ways.map(|_| Vec::new());
    for _ in 0..bench.settings.repetitions {
        for (way, seen) in ways.iter().zip(&mut seen) {
            seen.push(look(bench, &file, *way)?);
        }
    }
    let median =
        |runs: &[Seen], value: fn(&Seen) -> f64| Median::of(runs.iter().map(value)).context("it ran at least once");
    let mut bars = Vec::new();
    for (way, injected) in ways.iter().zip(&seen).filter_map(|(way, runs)| Some(((*way)?, runs))) {
        let gain = |value: fn(&Seen) -> f64| anyhow::Ok(median(injected, value)?.less(median(&seen[0], value)?));
        let mut judge = |what: &str, value: Median, bar: f64, unit: &str| {
            let requirement = format!("240 GiB, {way}: {what} under {bar} {unit}");
            let measured =
                format!("{:.2} {unit} ({:.2} to {:.2}, {} runs)", value.median, value.low, value.high, value.count);
            bars.push(Bar::new(requirement, measured, Verdict::at_most(value.interval(), bar)));
        };
        judge("first byte later by", gain(|run| run.ready * 1e3)?, 100.0, "ms");
        judge("optimizer resident", median(injected, |run| run.optimizer_kilobytes as f64 / 1024.0)?, 32.0, "MiB");
        judge("map count gained", gain(|run| run.told.maps as f64)?, 256.0, "VMAs");
        judge("page tables gained", gain(|run| run.told.page_table_kilobytes as f64 / 1024.0)?, 16.0, "MiB");
        judge("a fork longer by", gain(|run| run.told.fork_seconds * 1e3)?, 2.0, "ms");
    }
    Ok(bars)
}

fn look(bench: &Bench, file: &Path, protect: Option<&str>) -> anyhow::Result<Seen> {
    let report = bench.programs.home().join("vast.json");
    let mut words = Vec::new();
    if let Some(method) = protect {
        words.push(bench.programs.path("precache-run").into_os_string());
        words.extend(["-q", "--distance", "8M", "--protect", method, "--report"].map(Into::into));
        words.extend([report.clone().into(), "--".into()]);
    }
    words.extend([bench.programs.path("vast-reader").into(), file.into()]);
    let start = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    let mut command = bench.programs.command(&words);
    let mut reader = Stopped(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start it")?);
    let mut line = String::new();
    BufReader::new(reader.0.stdout.as_mut().context("it was given a pipe")?).read_line(&mut line)?;
    let told: Told = serde_json::from_str(&line).context("vast-reader says above what went wrong")?;
    let optimizer_kilobytes = if protect.is_some() { most_resident(bench)? } else { 0 };
    drop(reader.0.stdin.take());
    let status = reader.0.wait()?;
    ensure!(status.success(), "vast-reader failed with {status}");
    if protect.is_some() {
        let report: RunReport = serde_json::from_slice(&fs::read(&report)?)?;
        let trips = report.session.iter().flat_map(|session| &session.readers).map(|reader| reader.trips).sum::<u64>();
        ensure!(trips > 0, "nothing was protected, so nothing was measured: {:?}", report.reasons);
    }
    let started = start.tv_sec() as f64 + start.tv_nsec() as f64 / 1e9;
    Ok(Seen { ready: told.first_byte_at - started, told, optimizer_kilobytes })
}

/// The most that the service was ever resident with.
fn most_resident(bench: &Bench) -> anyhow::Result<u64> {
    let most = bench.programs.services()?.into_iter().filter_map(|service| service.status().ok()?.vmhwm).max();
    most.context("no optimizer is running")
}
