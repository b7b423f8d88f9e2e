//! Looking into a database: what it is like, where its records lie, how to share it out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use crate::child::isolated;

mod catalog;
mod command;
pub(crate) mod doctor;
mod env;
mod error;
pub(crate) mod fetch;
mod handle;
mod header;
pub(crate) mod info;
mod key;
mod location;
pub(crate) mod map;
pub mod map_format;
mod mapping;
mod output;
pub(crate) mod ranges;
mod readers;
pub(crate) mod split;
pub(crate) mod survey;
mod walk;

pub use catalog::Database;
pub use env::{Env, Stat, Tree};
pub use error::Error;
pub use key::Key;
pub use location::Location;
pub use readers::{NoTable, ReaderTable};
pub use walk::Record;

/// Arguments of `lmdb`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sizes, depth, fragmentation, free pages and readers of a database.
    Info(info::Args),
    /// Where every record lies: key, offset and length of its value.
    Map(map::Args),
    /// Split a database into contiguous key ranges of equal bytes, one for each process.
    Ranges(ranges::Args),
    /// One screen: what will hurt here, and the command that mends it.
    Doctor(doctor::Args),
}

/// What every command on a database needs to know.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// The database: its directory, or its data file.
    #[arg(value_name = "DB")]
    pub db: PathBuf,
}

/// Runs one of the commands, in a child process: liblmdb trusts the file that it walks.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Info(args) => isolated(&args.target.db, || info::run(&args)),
        Command::Map(args) => map::run(&args),
        Command::Ranges(args) => isolated(&args.target.db, || ranges::run(&args)),
        Command::Doctor(args) => isolated(&args.target.db, || doctor::run(&args)),
    }
}

/// Opens a database and looks into it.
///
/// Says so on stderr when a writer committed meanwhile: what was found is then a mixture, and what looks like damage may be
/// none.
pub(crate) fn look<T>(db: &Path, work: impl FnOnce(&Env) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let env = Env::open(Location::of(db)?)?;
    let found = work(&env);
    let newest = env.newest_transaction();
    if newest != env.transaction {
        eprintln!(
            "warning: {}: a writer committed transaction {newest} while transaction {} was being read without locks; \
             the result may be wrong: run it again when nothing writes",
            env.location().path.display(),
            env.transaction
        );
    }
    found
}
