//! Reads an LMDB the way MPI-Caffe does, and prints a checksum of what it read.

mod options;
mod reader;

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::Parser;
use precache_demos::timing::Timing;

use crate::options::Options;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    match options.rank {
        None if options.processes > 1 => spawn_ranks(options.processes),
        rank => {
            let timing = Timing::start();
            let rank = rank.unwrap_or(0);
            println!("rank {rank}: {}", reader::read(&options, rank, &timing)?);
            if options.time {
                timing.print(rank);
            }
            Ok(())
        }
    }
}

/// Runs one process per rank, with the same arguments, and prints their lines in the order of the ranks.
fn spawn_ranks(processes: usize) -> anyhow::Result<()> {
    let program = env::current_exe().context("cannot find this program to start the ranks")?;
    let spawn = |rank: usize| {
        Command::new(&program)
            .args(env::args_os().skip(1))
            .args(["--rank", &rank.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start rank {rank}"))
    };
    let ranks = (0..processes).map(spawn).collect::<anyhow::Result<Vec<_>>>()?;
    for (number, rank) in ranks.into_iter().enumerate() {
        let output = rank.wait_with_output()?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        ensure!(output.status.success(), "rank {number} failed: {}", output.status);
    }
    Ok(())
}
