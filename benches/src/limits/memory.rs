//! Data that outgrows memory: each epoch reads again what could not be kept, and no more.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::ensure;

use super::Case;
use super::skipping::PATTERN;
use crate::bench::Bench;
use crate::cgroup::Cgroup;
use crate::configuration::lmdb_reader;
use crate::data;
use crate::measure::{Launch, Measurement};
use crate::mount::Slow;
use crate::pairs::WrongOutput;
use crate::results::table::{mebibytes, seconds};
use crate::storage::Storage;
use crate::verdict::{Bar, Verdict};

const EPOCHS: usize = 5;
/// Times the budget.
const DATASET: f64 = 1.4;
const BAR: f64 = 1.15;
/// Two of the default size: the one that is read and the one that is fetched.
const WINDOWS: u64 = 100 << 20;
/// What reader, supervisor and optimizer may need for themselves; what they do need is measured.
const PROCESSES: u64 = 32 << 20;

/// The middle one is told, and all of them must be on one side of the bar.
const RUNS: usize = 3;

/// Smaller data would be dwarfed by the windows.
const LEAST: u64 = 1 << 30;

/// Fast enough that the epochs, not the storage, take the time.
fn slow() -> Slow {
    Slow::new(Duration::from_micros(200), 800_000_000)
}

pub fn cases() -> Vec<Case> {
    let all = format!("dataset {DATASET} x budget, epochs 2 to {EPOCHS}, {}", slow().label());
    let skipping = format!("1 of 4 records of 200 KB, {all}");
    vec![Case::new("memory", all, judge_all), Case::new("memory-skipping", skipping, judge_skipping)]
}

fn judge_all(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let storage = Storage::slow(bench, &slow(), &data::lmdb(bench, (bench.size() / 2).max(LEAST))?)?;
    judge(bench, subject, &storage, storage.file_size()?, epochs_of(bench, &storage, EPOCHS))
}

/// The dataset are the records that are read.
fn judge_skipping(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let storage = Storage::slow(bench, &slow(), &data::lmdb(bench, (2 * bench.size()).max(LEAST))?)?;
    let mut reader = epochs_of(bench, &storage, EPOCHS);
    reader.extend(PATTERN.map(OsString::from));
    judge(bench, subject, &storage, storage.file_size()? / 4, reader)
}

/// `reader` reads `size` bytes in each epoch.
fn judge(
    bench: &Bench,
    subject: &str,
    storage: &Storage,
    size: u64,
    reader: Vec<OsString>,
) -> anyhow::Result<Vec<Bar>> {
    let limit = (size as f64 / DATASET) as u64 + WINDOWS + PROCESSES;
    let reader = Launch::new(reader);
    let plain = Cycle::run(bench, storage, &reader, limit, |_, _| Ok(()))?;
    let reader = reader.under_precache(&[]);
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let ours = Cycle::run(bench, storage, &reader, limit, |_, _| Ok(()))?;
        if ours.run.output != plain.run.output {
            return Err(WrongOutput::new(&ours.run.output, &plain.run.output).into());
        }
        eprintln!("epochs: {}", ours.describe());
        runs.push(ours);
    }
    let share_of = |run: &Cycle| run.mean_of_later_epochs() / size as f64;
    let budget_of = |run: &Cycle| (limit - WINDOWS).saturating_sub(run.anonymous);
    let allowed_to = |run: &Cycle| BAR * (1.0 - budget_of(run) as f64 / size as f64).max(0.0);
    // Each has a budget of its own.
    let of_allowed = |run: &Cycle| share_of(run) / allowed_to(run);
    runs.sort_by(|one, other| of_allowed(one).total_cmp(&of_allowed(other)));
    let all: Vec<String> = runs.iter().map(|run| format!("{:.3}", share_of(run))).collect();
    let ours = &runs[RUNS / 2];
    let (share, budget, allowed) = (share_of(ours), budget_of(ours), allowed_to(ours));
    let measured = format!(
        "{share:.3} (runs: {}), allowed {allowed:.3}, of {} with a budget of {} (epochs: {}), plain {:.3}; {} in all, plain {}",
        all.join(", "),
        mebibytes(size),
        mebibytes(budget),
        ours.describe(),
        share_of(&plain),
        seconds(ours.run.seconds),
        seconds(plain.run.seconds),
    );
    let requirement = format!("{subject}: bytes fetched per epoch <= {BAR} x (1 - budget/dataset) x size");
    let range = (of_allowed(&runs[0]), of_allowed(&runs[RUNS - 1]));
    Ok(vec![Bar::new(requirement, measured, Verdict::at_most(range, 1.0))])
}

/// An LMDB reader that tells when an epoch ends.
pub fn epochs_of(bench: &Bench, storage: &Storage, epochs: usize) -> Vec<OsString> {
    lmdb_reader(bench, storage, &["--epochs", &epochs.to_string(), "--time"])
}

/// One run of several epochs in a memory cgroup.
pub struct Cycle {
    pub run: Measurement,
    /// Bytes fetched in each epoch.
    fetched: Vec<u64>,
    /// The most that was charged at the end of an epoch beside the page cache.
    anonymous: u64,
}

impl Cycle {
    /// Runs it cold; `at_end` is told which epoch has ended, counted from 1.
    pub fn run(
        bench: &Bench,
        storage: &Storage,
        launch: &Launch,
        limit: u64,
        at_end: impl Fn(usize, &Cgroup) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let group = Cgroup::new(limit)?;
        let (mut ends, mut anonymous) = (vec![0], 0);
        let _memory = storage.make_cold()?;
        let run = launch.run_in(bench, storage, Some(&group), |line| {
            if line.contains("\"epoch\"") {
                ends.push(storage.fetched()?.map_or(0, |fetched| fetched.bytes));
                anonymous = anonymous.max(group.anonymous()?);
                at_end(ends.len() - 1, &group)?;
            }
            Ok(())
        })?;
        ensure!(ends.len() > 2, "the reader did not tell when its epochs ended");
        let fetched = ends.windows(2).map(|ends| ends[1] - ends[0]).collect();
        Ok(Self { run, fetched, anonymous })
    }

    /// The windows that are fetched ahead for the next epoch blur the single ones.
    fn mean_of_later_epochs(&self) -> f64 {
        let later = &self.fetched[1..];
        later.iter().sum::<u64>() as f64 / later.len() as f64
    }

    fn describe(&self) -> String {
        self.fetched.iter().map(|bytes| mebibytes(*bytes)).collect::<Vec<_>>().join(", ")
    }
}
