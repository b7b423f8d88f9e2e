//! With `--populate`, a reader of warm data is faster than the page cache is without it.

use super::{Case, remote_ssd};
use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::data;
use crate::measure::Launch;
use crate::pairs::Pairs;
use crate::storage::Storage;
use crate::verdict::Bar;

/// Times as fast.
const FASTER: f64 = 1.3;
const OPTION: &str = "--populate";

/// Runs the reader four times: a second pass over the same mapping takes no faults in either case.
const REPEATED: [&str; 4] = ["/bin/sh", "-c", r#"for pass in 1 2 3 4; do "$@" || exit; done"#, "sh"];

pub fn cases() -> Vec<Case> {
    let subject = format!("{OPTION}, warm, {}: at least {FASTER} x as fast as plain warm", remote_ssd().label());
    vec![Case::new("populate", subject, judge)]
}

fn judge(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let storage = Storage::slow(bench, &remote_ssd(), &data::lmdb(bench, bench.size())?)?;
    let words = REPEATED.map(Into::into).into_iter().chain(lmdb_reader(bench, &storage, &[]));
    let reader = Launch::new(words.collect());
    let ours = reader.clone().under_precache(&[OPTION]);
    let pairs = Pairs::alternate(
        bench.count(2 * bench.settings.repetitions),
        || ours.run_warm(bench, &storage),
        || reader.run_warm(bench, &storage),
    )?;
    Ok(Bar::of_times(subject, &pairs.our_times(), ("plain", &pairs.their_times()), 1.0 / FASTER).into_iter().collect())
}
