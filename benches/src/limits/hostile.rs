//! Storage that stalls or fails, memory that shrinks: the right output, and hardly later than without precache.

use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;

use anyhow::bail;

use super::memory::{Cycle, epochs_of};
use super::{Case, remote_ssd};
use crate::bench::Bench;
use crate::cgroup::Cgroup;
use crate::configuration::lmdb_reader;
use crate::data;
use crate::measure::{Failed, Launch, Measurement};
use crate::pairs::{Count, Pairs, times};
use crate::storage::Storage;
use crate::verdict::{Bar, Verdict};

/// Of the plain reader's time.
const BAR: f64 = 1.05;
/// Seconds.
const STALL: f64 = 5.0;
/// Of requests that fail: a few in a run.
const FAILING: f64 = 0.0005;
/// A page that fails twice kills the plain reader too: such runs are repeated.
const ATTEMPTS: u32 = 6;
const EPOCHS: usize = 4;

pub fn cases() -> Vec<Case> {
    let slowfs = remote_ssd().label();
    vec![
        Case::new("stall", format!("storage stalls for 5 s, {slowfs}"), stall),
        Case::new("errors", format!("{FAILING} of the requests fail, {slowfs}"), errors),
        Case::new("halved", format!("memory limit halved in mid-run, {slowfs}"), halved),
    ]
}

fn stall(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let source = data::lmdb(bench, bench.size() / 2)?;
    let middle = source.join("data.mdb").metadata()?.len() / 2;
    let without: Vec<f64> = {
        let storage = Storage::slow(bench, &remote_ssd(), &source)?;
        let ours = Launch::new(lmdb_reader(bench, &storage, &[])).under_precache(&[]);
        let runs = runs(bench).pairs().map(|_| ours.run_cold(bench, &storage));
        times(&runs.collect::<anyhow::Result<Vec<_>>>()?)
    };
    let storage = Storage::slow(bench, &remote_ssd().with_fault(format!("stall:5s@{middle}")), &source)?;
    let reader = Launch::new(lmdb_reader(bench, &storage, &[]));
    let ours = reader.clone().under_precache(&[]);
    let pairs = Pairs::alternate(runs(bench), || ours.run_cold(bench, &storage), || reader.run_cold(bench, &storage))?;
    let requirement = format!("{subject}: time <= {BAR} x (without the stall + 5 s)");
    let longest: Vec<f64> = pairs.our_times().iter().zip(without.iter().cycle()).map(|(_, run)| run + STALL).collect();
    let late = Bar::of_times(requirement, &pairs.our_times(), ("without the stall + 5 s", &longest), BAR);
    Ok(bar(subject, &pairs).into_iter().chain(late).collect())
}

fn errors(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let slow = remote_ssd().with_fault(format!("eio@p={FAILING}"));
    let reader = |storage: &Storage| Launch::new(lmdb_reader(bench, storage, &[]));
    let source = data::lmdb(bench, bench.size() / 2)?;
    let storage = Storage::slow(bench, &slow, &source)?;
    let (plain, ours) = (reader(&storage), reader(&storage).under_precache(&[]));
    let (our_deaths, plain_deaths) = (Cell::new(0), Cell::new(0));
    let pairs = Pairs::alternate(
        runs(bench),
        || surviving(bench, &storage, &ours, &our_deaths),
        || surviving(bench, &storage, &plain, &plain_deaths),
    )?;
    let (ours, plain) = (our_deaths.get(), plain_deaths.get());
    // As many pages fail either way, but for chance: what is fetched ahead in vain is asked for once more.
    let deaths = Bar::new(
        format!("{subject}: deaths by SIGBUS <= plain + 1"),
        format!("{ours}, plain {plain}, of {} runs that did not die", pairs.ours.len()),
        Verdict::is(ours <= plain + 1),
    );
    Ok(bar(subject, &pairs).into_iter().chain([deaths]).collect())
}

/// A run that no bus error ended.
fn surviving(bench: &Bench, storage: &Storage, launch: &Launch, deaths: &Cell<u32>) -> anyhow::Result<Measurement> {
    for _ in 0..ATTEMPTS {
        match launch.run_cold(bench, storage) {
            Err(error) if error.downcast_ref::<Failed>().is_some_and(Failed::is_bus_error) => {
                deaths.set(deaths.get() + 1)
            }
            done => return done,
        }
    }
    bail!("{ATTEMPTS} runs in a row died of SIGBUS: {:?}", launch.reader)
}

impl Failed {
    fn is_bus_error(&self) -> bool {
        self.status.signal() == Some(libc::SIGBUS)
    }
}

fn halved(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let storage = Storage::slow(bench, &remote_ssd(), &data::lmdb(bench, bench.size() / 2)?)?;
    // First everything fits.
    let limit = storage.file_size()? * 5 / 4 + (100 << 20);
    let reader = Launch::new(epochs_of(bench, &storage, EPOCHS));
    let ours = reader.clone().under_precache(&[]);
    let run = |launch: &Launch| {
        let halve = |epoch, group: &Cgroup| if epoch == EPOCHS / 2 { group.set_limit(limit / 2) } else { Ok(()) };
        Ok(Cycle::run(bench, &storage, launch, limit, halve)?.run)
    };
    let pairs = Pairs::alternate(runs(bench), || run(&ours), || run(&reader))?;
    Ok(bar(subject, &pairs))
}

fn runs(bench: &Bench) -> Count {
    bench.count(bench.settings.repetitions.min(3))
}

/// That the outputs are the same is checked pair by pair.
fn bar(subject: &str, pairs: &Pairs) -> Vec<Bar> {
    let requirement = format!("{subject}: right output, time <= {BAR} x plain");
    Bar::of_times(requirement, &pairs.our_times(), ("same output; plain", &pairs.their_times()), BAR)
        .into_iter()
        .collect()
}
