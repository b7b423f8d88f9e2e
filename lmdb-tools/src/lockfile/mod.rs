//! A lock file for each reader: directories that hold a real lock file and a symbolic link to the shared data file.
//!
//! liblmdb keeps its readers in the lock file, which every reader must therefore be able to write and lock, and which has
//! room for 126 of them. Where nobody writes the database, each reader may as well have one to itself.

use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::child::isolated;

mod check;
mod error;
mod opened;
mod permissions;
mod processes;
pub(crate) mod rank;
mod remove;
mod replica;
mod replicate;

pub use check::Report;
pub use error::Error;
pub use processes::{Process, Scan, scan};
pub use remove::remove;
pub use replica::Replica;
pub use replicate::{Safety, replicate};

/// Exit code of a check that could not be made: 1 is "a writer was seen", 2 bad usage.
const NO_ANSWER: u8 = 3;

/// Arguments of `lockfile`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make OUT/rank-0000 ..., each with a lock file of its own and a link to the shared data file.
    ///
    /// For read-only use: readers that do not share a lock file do not protect the pages they read from being reused by a
    /// writer. Run it as the user who runs the readers; any number of processes may run it at once.
    Replicate {
        /// The database: its directory, or its data file.
        db: PathBuf,
        /// The directory to hold the replicas, on a file system that has locks.
        out: PathBuf,
        /// Number of replicas: one for each process that reads.
        #[arg(short = 'n', long = "count", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        count: u32,
        /// Go ahead where it cannot be known whether anybody writes the database: you know that nobody does.
        #[arg(long)]
        assume_read_only: bool,
    },
    /// Print what this process should open: its replica in OUT.
    RankDir {
        out: PathBuf,
        /// Default: OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID.
        #[arg(long, value_name = "RANK")]
        rank: Option<u32>,
    },
    /// Say what can be known about writers, readers and locks.
    ///
    /// Exit code 0 when no writer was seen, 1 when one was, 3 when there is no answer (the database cannot be opened).
    Check {
        /// The database: its directory, or its data file.
        db: PathBuf,
        /// How long to watch whether a transaction is committed, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
        watch: f64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete the replicas in OUT, and nothing that replicate did not make.
    Remove { out: PathBuf },
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds, from 0 to 86400".into()),
    }
}

/// Runs one of the commands.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Replicate { db, out, count, assume_read_only } => {
            replicate(&db, &out, count, assume_read_only)?;
        }
        Command::RankDir { out, rank } => {
            let rank = rank.map_or_else(|| rank::rank(rank::environment), Ok)?;
            let mut line = Replica::find(&out, rank)?.to_open().into_os_string().into_vec();
            line.push(b'\n');
            io::stdout().write_all(&line)?;
        }
        Command::Check { db, watch, json } => {
            return match isolated(&db, || check::run(&db, watch, json)) {
                Err(error) if !crate::is_broken_pipe(&error) => {
                    crate::complain(&error);
                    Ok(ExitCode::from(NO_ANSWER))
                }
                answer => answer,
            };
        }
        Command::Remove { out } => {
            let removed = remove(&out)?;
            let _ = writeln!(io::stderr(), "removed {removed} replicas from {}", out.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
