//! A reader that passes over three records of four has those fetched that it reads, and no others.

use anyhow::Context;

use super::{Case, DEPENDENT, remote_ssd};
use crate::bandwidth::Limit;
use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::data;
use crate::measure::Launch;
use crate::pairs::{Pairs, fetched};
use crate::results::table::mebibytes;
use crate::storage::Storage;
use crate::verdict::{Bar, Verdict};

/// Of the time that the storage needs for the bytes that are read, and of these bytes.
const TIME_BAR: f64 = 1.25;
const BYTES_BAR: f64 = 1.15;
/// The first of four ranks, alone.
pub const PATTERN: [&str; 6] = ["--pattern", "skipping", "--processes", "4", "--rank", "0"];

pub fn cases() -> Vec<Case> {
    let subject = format!("1 of 4 records of 200 KB, cold, {}", remote_ssd().label());
    vec![Case::new("skipping", subject, judge)]
}

fn judge(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let slow = remote_ssd();
    let storage = Storage::slow(bench, &slow, &data::lmdb(bench, bench.size())?)?;
    let limit = Limit::measure(&storage, slow.latency, DEPENDENT)?;
    let reader = Launch::new(lmdb_reader(bench, &storage, &PATTERN));
    let ours = reader.clone().under_precache(&[]);
    let pairs = Pairs::alternate(
        bench.count(bench.settings.repetitions.min(3)),
        || ours.run_cold(bench, &storage),
        || reader.run_cold(bench, &storage),
    )?;
    let wanted: u64 = pairs.theirs[0].field("bytes").context("the reader does not say what it read")?.parse()?;
    let allowed = vec![wanted as f64 / limit.bandwidth; pairs.ours.len()];
    let time = Bar::of_times(
        format!("{subject}: time <= {TIME_BAR} x (bytes it reads / bandwidth)"),
        &pairs.our_times(),
        ("bytes / bandwidth", &allowed),
        TIME_BAR,
    );
    let most = |runs| fetched(runs).map_or(0, |(_, most)| most);
    let (ours, plain) = (most(&pairs.ours), most(&pairs.theirs));
    let share = ours as f64 / wanted as f64;
    let bytes = Bar::new(
        format!("{subject}: bytes fetched <= {BYTES_BAR} x bytes it reads"),
        format!("{} of {}: {share:.3}; plain {}", mebibytes(ours), mebibytes(wanted), mebibytes(plain)),
        Verdict::is(share <= BYTES_BAR),
    );
    Ok(time.into_iter().chain([bytes]).collect())
}
