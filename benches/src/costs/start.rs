//! The supervisor's own start, once the optimizer runs.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, ensure};

use super::{output_of, under_precache};
use crate::bench::Bench;
use crate::measure::Stopped;
use crate::statistics::{Median, Spread};
use crate::verdict::{Bar, Verdict};

/// Milliseconds more than the program alone.
const BAR: f64 = 10.0;
const RUNS: usize = 50;

pub fn judge(bench: &Bench) -> anyhow::Result<Bar> {
    let words = vec![OsString::from("/bin/true")];
    let under = under_precache(bench, &[], words.clone());
    let _served = serving(bench)?;
    let time = |words: &[OsString]| -> anyhow::Result<f64> {
        let start = Instant::now();
        output_of(&mut bench.programs.command(words))?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    let (mut over, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let without = time(&words)?;
        over.push(time(&under)? - without);
        alone.push(without);
    }
    let over = Median::of(over).context("there were runs")?;
    let alone = Spread::of(alone).context("there were runs")?;
    let requirement = format!("a run takes at most {BAR} ms more than without precache, from start to end");
    let measured = format!(
        "{:.1} ms ({:.1} to {:.1}, {} pairs), alone {:.1} ms",
        over.median, over.low, over.high, over.count, alone.median
    );
    Ok(Bar::new(requirement, measured, Verdict::at_most(over.interval(), BAR)))
}

/// Another program under precache, so that the optimizer runs.
pub fn serving(bench: &Bench) -> anyhow::Result<Stopped> {
    let words = under_precache(bench, &[], ["sh", "-c", "echo serving; read line"].map(Into::into).to_vec());
    let mut command = bench.programs.command(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("precache-run starts")?;
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().context("it was given a pipe")?).read_line(&mut line)?;
    let served = Stopped(child);
    ensure!(line == "serving\n", "precache-run does not start a shell");
    Ok(served)
}
