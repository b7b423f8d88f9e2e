//! What LMDB needs on shared storage: stripe advice, lock file replicas, record maps.
//!
//! The three subjects are the three findings of the paper's section 2.3: a stripe that holds what a node reads at a time
//! ([`stripe`]), a lock file for each reader ([`lockfile`]), and a contiguous part of the database for each process
//! ([`lmdb`]). `docs/lmdb.md` explains them to users.
//!
//! Databases are only ever opened for reading, without touching their lock file.

use std::io;
use std::process::ExitCode;

use clap::Subcommand;

mod child;
mod filesystem;
pub mod lmdb;
pub mod lockfile;
mod memory;
mod shell;
pub mod size;
pub mod stripe;
mod usage;

pub use usage::Usage;

/// The commands that the `precache` program mounts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say how a file should be striped over the storage targets of a parallel file system.
    StripeAdvise(stripe::Args),
    /// Give every reader of a database a lock file of its own.
    Lockfile(lockfile::Args),
    /// Look into a database without reading its values.
    Lmdb(lmdb::Args),
}

/// Runs one command: results on stdout, diagnostics on stderr.
///
/// The exit code is 0, 1 when the answer is "no" (a check that failed, a record that could not be placed), or 2 for bad
/// usage that only shows after parsing. Everything else that goes wrong is an error.
///
/// Commands that walk a database start the running executable anew, with the same arguments, and walk in that child: the
/// caller must reach this function again when it is given the same command line.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    let result = match command {
        Command::StripeAdvise(args) => stripe::run(&args),
        Command::Lockfile(args) => lockfile::run(args),
        Command::Lmdb(args) => lmdb::run(args),
    };
    match result {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        Err(error) if error.is::<Usage>() => {
            eprintln!("error: {error:#}");
            Ok(ExitCode::from(2))
        }
        result => result,
    }
}

/// Whether whoever read our stdout has seen enough (`... | head`).
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
