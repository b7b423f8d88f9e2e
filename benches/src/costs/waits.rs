//! How long a program waits for an optimizer that has died, or stands still.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{cost_reader, start, under_precache, warm_file};
use crate::bench::Bench;
use crate::measure::Stopped;
use crate::verdict::{Bar, Verdict};

/// Seconds more than alone, in every run.
const BAR: f64 = 1.0;
const RUNS: usize = 5;

/// What happens to the optimizer, and when.
struct Case {
    what: &'static str,
    signal: Signal,
    /// Before the program starts; else while it has read the half of its file.
    before: bool,
}

const CASES: [Case; 4] = [
    Case { what: "is stopped before the program starts", signal: Signal::SIGSTOP, before: true },
    Case { what: "is stopped while the program reads", signal: Signal::SIGSTOP, before: false },
    Case { what: "is killed before the program starts", signal: Signal::SIGKILL, before: true },
    Case { what: "is killed while the program reads", signal: Signal::SIGKILL, before: false },
];

/// Seconds from the start to the middle, and from there to the end of the program and its supervisor.
#[derive(Clone, Copy)]
struct Times([f64; 2]);

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let alone = cost_reader(bench, "halves", warm_file(bench)?);
    let under = under_precache(bench, &[], alone.clone());
    CASES.iter().map(|case| case.judge(bench, &alone, &under)).collect()
}

impl Case {
    fn judge(&self, bench: &Bench, alone: &[OsString], under: &[OsString]) -> anyhow::Result<Bar> {
        let mut waits = Vec::new();
        for _ in 0..RUNS {
            let Times(least) = run(bench, alone, || Ok(None))?;
            let Times(times) = self.run_under(bench, under)?;
            waits.push(times.iter().zip(least).map(|(time, least)| time - least).fold(f64::NEG_INFINITY, f64::max));
        }
        let requirement =
            format!("an optimizer that {}: program and supervisor wait at no time for more than {BAR} s", self.what);
        let longest = waits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let each: Vec<String> = waits.iter().map(|wait| format!("{wait:.2}")).collect();
        Ok(Bar::new(requirement, format!("{} s", each.join(", ")), Verdict::is(longest <= BAR)))
    }

    fn run_under(&self, bench: &Bench, words: &[OsString]) -> anyhow::Result<Times> {
        // Another program has an optimizer run.
        let _served = start::serving(bench)?;
        if self.before {
            let _struck = self.strike(bench)?;
            run(bench, words, || Ok(None))
        } else {
            run(bench, words, || self.strike(bench).map(Some))
        }
    }

    fn strike(&self, bench: &Bench) -> anyhow::Result<Struck> {
        let optimizers = bench.programs.services()?;
        ensure!(!optimizers.is_empty(), "no optimizer is running");
        let struck = Struck(optimizers.iter().map(|optimizer| Pid::from_raw(optimizer.pid())).collect());
        for optimizer in &struck.0 {
            kill(*optimizer, self.signal)?;
        }
        Ok(struck)
    }
}

/// Optimizers that do not stand still for longer than this lasts.
struct Struck(Vec<Pid>);

impl Drop for Struck {
    fn drop(&mut self) {
        for optimizer in &self.0 {
            // Who was killed is gone.
            let _ = kill(*optimizer, Signal::SIGCONT);
        }
    }
}

/// Runs it, and has `strike` happen in its middle, for as long as it runs.
fn run(
    bench: &Bench,
    words: &[OsString],
    strike: impl Fn() -> anyhow::Result<Option<Struck>>,
) -> anyhow::Result<Times> {
    let mut command = bench.programs.command(words);
    let begin = Instant::now();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = Stopped(child.with_context(|| format!("cannot start {words:?}"))?);
    let mut line = String::new();
    BufReader::new(child.0.stdout.as_mut().context("it was given a pipe")?).read_line(&mut line)?;
    let first = begin.elapsed().as_secs_f64();
    ensure!(line == "half\n", "{words:?} does not read");
    let _struck = strike()?;
    let middle = Instant::now();
    child.0.stdin.take().context("it was given a pipe")?.write_all(b"\n")?;
    let status = child.0.wait()?;
    ensure!(status.success(), "{words:?} failed with {status}");
    Ok(Times([first, middle.elapsed().as_secs_f64()]))
}
