//! A reader that computes longer than the storage needs does not notice the storage.

use super::{Case, remote_ssd};
use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::data;
use crate::measure::Launch;
use crate::pairs::Pairs;
use crate::storage::Storage;
use crate::verdict::Bar;

const BAR: f64 = 1.02;
/// Times slower than the storage.
const SLOWER: f64 = 3.0;
/// Records in a batch, and bytes in one: 3 x 256 x 256 and the Datum around them.
const BATCH: f64 = 32.0;
const RECORD: f64 = 196_630.0;

pub fn cases() -> Vec<Case> {
    let subject =
        format!("reader that computes {SLOWER} x as long as the storage needs, cold, {}", remote_ssd().label());
    vec![Case::new("compute", subject, judge)]
}

fn judge(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let slow = remote_ssd();
    let storage = Storage::slow(bench, &slow, &data::lmdb(bench, bench.size() / 2)?)?;
    let milliseconds = SLOWER * BATCH * RECORD / slow.bandwidth as f64 * 1e3;
    let reader = Launch::new(lmdb_reader(bench, &storage, &["--compute-ms", &milliseconds.to_string()]));
    let ours = reader.clone().under_precache(&[]);
    let pairs = Pairs::cold_then_warm(
        bench.count(bench.settings.repetitions.min(3)),
        || ours.run_cold(bench, &storage),
        || reader.run_warm(bench, &storage),
    )?;
    let requirement = format!("{subject}: time <= {BAR} x warm");
    Ok(Bar::of_times(requirement, &pairs.our_times(), ("warm", &pairs.their_times()), BAR).into_iter().collect())
}
