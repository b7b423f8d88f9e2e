//! The first 100 MB of a cold file: how long a program takes to start up.

use std::ffi::OsString;

use anyhow::Context;

use super::{Case, DEPENDENT, remote_ssd};
use crate::bandwidth::Limit;
use crate::bench::Bench;
use crate::configuration::{lmdb_reader, map_reader};
use crate::data;
use crate::measure::Launch;
use crate::pairs::Pairs;
use crate::storage::Storage;
use crate::verdict::Bar;

const BAR: f64 = 1.3;
/// So many records of 196,630 bytes are 100 MB.
const RECORDS: &str = "509";
const BYTES: &str = "100000000";
const LEAST: u64 = 128 << 20;

type Reader = fn(&Bench, &Storage) -> Vec<OsString>;

pub fn cases() -> Vec<Case> {
    let lmdb: Reader = |bench, storage| lmdb_reader(bench, storage, &["--records", RECORDS]);
    let map: Reader = |bench, storage| map_reader(bench, storage, &["--end", BYTES]);
    let case = |(name, what, dependent, reader): (&str, &str, u32, Reader)| {
        let subject = format!("first 100 MB of {what}, cold, {}", remote_ssd().label());
        Case::new(name, subject, move |bench, subject| judge(bench, subject, dependent, reader))
    };
    [("start-lmdb", "an LMDB", DEPENDENT, lmdb), ("start-map", "a mapped file", 1, map)].map(case).into()
}

fn judge(bench: &Bench, subject: &str, dependent: u32, reader: Reader) -> anyhow::Result<Vec<Bar>> {
    let slow = remote_ssd();
    // All of it is read to make it warm, so there is little more than 100 MB.
    let storage = Storage::slow(bench, &slow, &data::lmdb(bench, (bench.size() / 8).max(LEAST))?)?;
    let limit = Limit::measure(&storage, slow.latency, dependent)?;
    let reader = Launch::new(reader(bench, &storage));
    let ours = reader.clone().under_precache(&[]);
    let pairs = Pairs::cold_then_warm(
        // They take less than a second each.
        bench.count(2 * bench.settings.repetitions),
        || ours.run_cold(bench, &storage),
        || reader.run_warm(bench, &storage),
    )?;
    let bytes: u64 = pairs.theirs[0].field("bytes").context("the reader does not say what it read")?.parse()?;
    let limits: Vec<f64> = pairs.their_times().into_iter().map(|warm| limit.seconds(bytes, warm)).collect();
    let requirement = format!("{subject}: time <= {BAR} x limit");
    Ok(Bar::of_times(requirement, &pairs.our_times(), ("limit", &limits), BAR).into_iter().collect())
}
