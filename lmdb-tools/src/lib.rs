//! What LMDB needs on shared storage: stripe advice, lock file replicas, record maps.
//!
//! The three subjects are the three findings of the paper's section 2.3: a stripe that holds what a node reads at a time
//! ([`stripe`]), a lock file for each reader ([`lockfile`]), and a contiguous part of the database for each process
//! ([`lmdb`]). `docs/lmdb.md` explains them to users.
//!
//! Databases are only ever opened for reading, without registering in their lock file, which is never written.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

mod child;
mod filesystem;
pub mod lmdb;
pub mod lockfile;
mod memory;
mod patience;
mod shell;
mod size;
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
/// The exit code is 0, 1 when the answer is "no" (`lockfile check` saw a writer), 2 for bad usage that only shows after
/// parsing, or 3 when `lockfile check` has no answer. Everything else that goes wrong is an error.
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
            complain(&error);
            Ok(ExitCode::from(2))
        }
        result => result,
    }
}

/// Whether whoever read our stdout has seen enough (`... | head`).
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error
        .downcast_ref::<io::Error>()
        .map(io::Error::kind)
        .or_else(|| error.downcast_ref::<serde_json::Error>()?.io_error_kind());
    kind == Some(io::ErrorKind::BrokenPipe)
}

/// What the machine lacks for a test; under PRECACHE_TESTS_COMPLETE, which a machine with everything sets, that is a
/// failure.
#[cfg(test)]
fn lacking(what: &str) {
    assert!(env::var_os("PRECACHE_TESTS_COMPLETE").is_none(), "this machine should have {what}");
    eprintln!("not all is tested: there is no {what} here");
}

/// A message in the form in which the program that mounts these commands gives its own: its name, and what is wrong.
fn complain(error: &anyhow::Error) {
    let program = env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default().display();
    // Nobody is left to tell that stderr is closed.
    let _ = writeln!(io::stderr(), "{name}: {error:#}");
}
