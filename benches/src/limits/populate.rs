//! With `--populate`, a reader of warm data is faster than the page cache is without it.

use anyhow::Context;

use super::{Case, remote_ssd};
use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::data;
use crate::measure::{Launch, Measurement};
use crate::pairs::Pairs;
use crate::statistics::Ratio;
use crate::storage::Storage;
use crate::verdict::{Bar, Verdict};

/// Times as fast.
const FASTER: f64 = 1.3;
const OPTION: &str = "--populate";

const PROBE: &str =
    "a reader that maps pieces ahead by its own calls, and one that finds all mapped: times as fast as plain";

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
    let time = Bar::of_times(subject, &pairs.our_times(), ("plain", &pairs.their_times()), 1.0 / FASTER);
    let probe = match probe(bench, &storage) {
        Ok(measured) => Bar::new(PROBE, measured, Verdict::NoBar),
        Err(why) => Bar::not_measured(PROBE, format!("{why:#}")),
    };
    Ok(time.into_iter().chain([probe]).collect())
}

/// What mapping ahead can gain here at all.
fn probe(bench: &Bench, storage: &Storage) -> anyhow::Result<String> {
    let reader = Launch::new(vec![bench.programs.path("ahead-reader").into(), storage.file().into()]);
    let mut runs = Vec::new();
    for _ in bench.count(2 * bench.settings.repetitions).pairs() {
        runs.push(reader.run_warm(bench, storage)?);
    }
    let seconds = |name: &str| {
        let of = |run: &Measurement| run.field(name).and_then(|text| text.parse().ok());
        runs.iter().map(of).collect::<Option<Vec<f64>>>().with_context(|| format!("ahead-reader tells no {name}"))
    };
    let plain = seconds("plain")?;
    let measured = ["ahead-256K", "ahead-2048K", "ahead-32768K", "mapped"].into_iter().map(|name| {
        let faster = Ratio::of(&plain, &seconds(name)?).context("it did not run")?;
        anyhow::Ok(format!("{name} {faster}"))
    });
    Ok(measured.collect::<anyhow::Result<Vec<_>>>()?.join(", "))
}
