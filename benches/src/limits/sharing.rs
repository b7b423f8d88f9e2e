//! Several supervisors on one file, as MPI starts them: they fetch as one, and the death of the optimizer passes.

use std::ffi::OsString;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Case, remote_ssd};
use crate::bench::Bench;
use crate::data;
use crate::measure::{Launch, Stopped};
use crate::mount::Slow;
use crate::pairs::WrongOutput;
use crate::results::table::mebibytes;
use crate::storage::Storage;
use crate::verdict::{Bar, Verdict};

const SUPERVISORS: usize = 8;
const OPTION: &str = "--max-inflight";
const MOST_IN_FLIGHT: u64 = 16;
/// Of the file.
const BYTES_BAR: f64 = 1.01;
/// Of the bandwidth before the optimizer died: it is filling again. Without one the readers get less.
const FILLING: f64 = 0.8;
/// Slower than elsewhere and never small, so that there is time to die in.
const KILLED_BANDWIDTH: u64 = 200_000_000;
const KILLED_SIZE: u64 = 1 << 30;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for keep_cache in [true, false] {
        let slow = if keep_cache { remote_ssd() } else { remote_ssd().forgetful() };
        let (end, what) =
            if keep_cache { ("", "") } else { ("-no-keep-cache", ", no --keep-cache, a file 4 x as long") };
        let subject = format!("{SUPERVISORS} supervisors on one file, {}{what}", slow.label());
        cases.push(Case::new(format!("sharing{end}"), subject, move |bench, subject| judge(bench, subject, &slow)));
    }
    let subject = format!("{SUPERVISORS} supervisors on one file, optimizer killed: filling goes on within 1 s");
    cases.push(Case::new("killed", subject, killed));
    cases
}

fn judge(bench: &Bench, subject: &str, slow: &Slow) -> anyhow::Result<Vec<Bar>> {
    // Where each open drops what is cached, a start costs what was fetched until the last one opens: as much for any file.
    let size = if slow.keep_cache { bench.size() / 2 } else { 2 * bench.size() };
    let storage = Storage::slow(bench, slow, &data::lmdb(bench, size)?)?;
    let size = storage.file_size()?;
    let options = [OPTION, &MOST_IN_FLIGHT.to_string()];
    let (mut bytes, mut in_flight) = (0, 0);
    for _ in bench.count(bench.settings.repetitions.min(3)).pairs() {
        let _memory = storage.make_cold()?;
        Team::start(bench, &storage, &options)?.finish(bench, &storage)?;
        let fetched = storage.fetched()?.context("slowfs counts")?;
        (bytes, in_flight) = (bytes.max(fetched.bytes), in_flight.max(fetched.max_in_flight));
    }
    let share = bytes as f64 / size as f64;
    let requirement = format!("{subject}: bytes fetched <= {BYTES_BAR} x file");
    let twice = mebibytes(bytes.saturating_sub(size));
    let measured = format!("{} of {}: {share:.4}, {twice} more than once", mebibytes(bytes), mebibytes(size));
    let fetched = Bar::new(requirement, measured, Verdict::is(share <= BYTES_BAR));
    let requirement = format!("{subject}: requests in flight at the storage <= {OPTION} {MOST_IN_FLIGHT}");
    let flight = Bar::new(requirement, format!("at most {in_flight}"), Verdict::is(in_flight <= MOST_IN_FLIGHT));
    Ok(vec![fetched, flight])
}

fn killed(bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
    let slow = Slow { bandwidth: KILLED_BANDWIDTH, ..remote_ssd() };
    let storage = Storage::slow(bench, &slow, &data::lmdb(bench, (bench.size() / 2).max(KILLED_SIZE))?)?;
    let mut shares = Vec::new();
    for _ in bench.count(bench.settings.repetitions.min(3)).pairs() {
        let _memory = storage.make_cold()?;
        let team = Team::start(bench, &storage, &[])?;
        let share = share_after_death(bench, &storage)?;
        team.finish(bench, &storage)?;
        shares.push(share);
    }
    let list: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
    let measured = format!("in the second second {} of the bandwidth before", list.join(", "));
    Ok(vec![Bar::new(subject, measured, Verdict::is(shares.iter().all(|share| *share >= FILLING)))])
}

/// Kills the optimizer in mid-run, and compares what is fetched in the second second after that with what was before.
fn share_after_death(bench: &Bench, storage: &Storage) -> anyhow::Result<f64> {
    let size = storage.file_size()?;
    let fetched = || anyhow::Ok(storage.fetched()?.context("slowfs counts")?.bytes);
    let (start, first) = reach(size / 8, fetched)?;
    let (end, last) = reach(size / 4, fetched)?;
    let before = (last - first) as f64 / (end - start).as_secs_f64();

    let optimizers = bench.programs.services()?;
    ensure!(!optimizers.is_empty(), "no optimizer is running");
    for optimizer in optimizers {
        kill(Pid::from_raw(optimizer.pid()), Signal::SIGKILL)?;
    }
    thread::sleep(Duration::from_secs(1));
    let (after, start) = (fetched()?, Instant::now());
    thread::sleep(Duration::from_secs(1));
    let last = fetched()?;
    ensure!(last < size, "the readers were through before it could be seen: choose a larger --size");
    Ok((last - after) as f64 / start.elapsed().as_secs_f64() / before)
}

/// When so many bytes had been fetched, and how many they were then.
fn reach(bytes: u64, fetched: impl Fn() -> anyhow::Result<u64>) -> anyhow::Result<(Instant, u64)> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let start = Instant::now();
    loop {
        match fetched()? {
            enough if enough >= bytes => return Ok((Instant::now(), enough)),
            _ => thread::sleep(Duration::from_millis(5)),
        }
        ensure!(start.elapsed() < PATIENCE, "the readers fetched too little in {PATIENCE:?}");
    }
}

/// Readers that run at the same time, each under a supervisor of its own.
struct Team(Vec<Stopped>);

impl Team {
    fn start(bench: &Bench, storage: &Storage, options: &[&str]) -> anyhow::Result<Self> {
        let mut words: Vec<OsString> = vec![bench.programs.path("precache-run").into(), "--quiet".into()];
        words.extend(options.iter().map(Into::into));
        words.extend(["--".into(), bench.programs.path("lmdb-reader").into(), storage.folder().into()]);
        let start = |_| {
            let mut command = bench.programs.command(&words);
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            command.spawn().map(Stopped).with_context(|| format!("cannot start {words:?}"))
        };
        Ok(Self((0..SUPERVISORS).map(start).collect::<anyhow::Result<_>>()?))
    }

    /// Waits for them, and compares what they say with what a reader of the source says.
    fn finish(self, bench: &Bench, storage: &Storage) -> anyhow::Result<()> {
        let outputs = self.0.into_iter().map(Stopped::output).collect::<anyhow::Result<Vec<_>>>()?;
        let words = vec![bench.programs.path("lmdb-reader").into(), storage.source().into()];
        let expected = Launch::new(words).run(bench, storage)?.output;
        match outputs.into_iter().find(|output| *output != expected) {
            Some(other) => Err(WrongOutput::new(&other, &expected).into()),
            None => Ok(()),
        }
    }
}
