//! `lmdb doctor`: what will hurt here, and the command that mends it.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use super::info::Info;
use super::{Location, Target, look};
use crate::filesystem::{self, Kind, Locks};
use crate::lockfile::Safety;
use crate::memory;

mod checks;

/// Arguments of `lmdb doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// All that the checks look at.
#[derive(Debug)]
pub struct Facts {
    pub location: Location,
    pub info: Info,
    pub kind: Kind,
    /// Other machines may use the files, too.
    pub shared: bool,
    /// Replicas are made only for a user who vouches that nobody writes the database.
    pub unvouched: bool,
    /// Bytes that one fault on the mapping brings in; none where the system does not say.
    pub read_ahead: Option<u64>,
    pub read_ahead_setting: Option<String>,
    /// None where no lock could be tried.
    pub locks: Option<Locks>,
    pub lock_file: LockFile,
    /// Bytes of memory that page cache may take.
    pub memory: Option<u64>,
}

/// What this user can do with the lock file. Readers open it for writing, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockFile {
    Writable,
    /// It is there and may not be written; why.
    Refused(String),
    Missing {
        may_be_made: bool,
    },
}

/// One line of the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub subject: &'static str,
    pub hurts: bool,
    pub text: String,
    /// The command that mends it.
    pub command: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let findings = look(&args.target.db, |env| Ok(checks::all(&facts(env.location(), Info::gather(env)?)?)))?;
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &findings)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for finding in &findings {
        writeln!(out, "{} {:<14}{}", if finding.hurts { "!!" } else { "ok" }, finding.subject, finding.text)?;
        if let Some(command) = &finding.command {
            writeln!(out, "{:17}$ {command}", "")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn facts(location: &Location, info: Info) -> io::Result<Facts> {
    let data = &location.data;
    let kind = Kind::of(data)?;
    Ok(Facts {
        location: location.clone(),
        info,
        kind,
        shared: kind.shared_by().is_some(),
        unvouched: !matches!(Safety::of(data), Ok(Safety::NoWriter)),
        read_ahead: filesystem::read_ahead(data),
        read_ahead_setting: filesystem::read_ahead_setting(data).map(|path| path.display().to_string()),
        locks: filesystem::locks_of(location).ok(),
        lock_file: lock_file(location),
        memory: memory::available(),
    })
}

/// Asks by access(2): opening for writing would be one more thing to explain to whoever watches the file.
fn lock_file(location: &Location) -> LockFile {
    let readable_and_writable = AccessFlags::R_OK | AccessFlags::W_OK;
    if location.lock.exists() {
        return match access(&location.lock, readable_and_writable) {
            Ok(()) => LockFile::Writable,
            Err(error) => LockFile::Refused(error.desc().into()),
        };
    }
    let directory = location.lock.parent().filter(|parent| !parent.as_os_str().is_empty());
    LockFile::Missing { may_be_made: access(directory.unwrap_or(Path::new(".")), AccessFlags::W_OK).is_ok() }
}
