//! `precache-lmdb`: the commands of this crate on their own, without the rest of precache.

use std::process::ExitCode;

use clap::Parser;

/// LMDB on shared storage: stripe advice, lock file replicas, record maps.
#[derive(Parser)]
#[command(name = "precache-lmdb", version)]
struct Cli {
    #[command(subcommand)]
    command: precache_lmdb_tools::Command,
}

fn main() -> ExitCode {
    match precache_lmdb_tools::run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("precache-lmdb: {error:#}");
            ExitCode::FAILURE
        }
    }
}
