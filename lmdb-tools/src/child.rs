//! Walking a database in a child process: liblmdb trusts its file, and a crash there must be an error message here.
//!
//! The child is this executable with the same command line, told by an environment variable that it is the child. So
//! nothing but the exit status has to come back, and it works wherever the commands are mounted.

use std::env;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{self, Command, ExitCode, ExitStatus, Stdio};

use anyhow::Context;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::lmdb::Location;
use crate::patience;

/// Holds the process id of the parent: a child whose parent has gone does nothing, rather than begin as a parent itself.
const PARENT: &str = "PRECACHE_LMDB_PARENT";

/// Runs `work`, which walks `database`, in a child process; the exit code is the child's.
///
/// # Errors
/// When the child cannot be started or dies by a signal, as it does when liblmdb meets a damaged page.
pub fn isolated(database: &Path, work: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    if is_child() {
        // A parent that is killed cannot stop a walk that nobody waits for any more.
        set_pdeathsig(Signal::SIGTERM).context("cannot ask to die with the parent process")?;
        anyhow::ensure!(
            env::var(PARENT).is_ok_and(|parent| parent == getppid().to_string()),
            "the process that wanted this walk is gone (or {PARENT} is set, which only this program sets: unset it)"
        );
        // The crash is reported by the parent; a core file of a database mapping helps nobody.
        setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot turn core files off")?;
        patience::limit().context("cannot ask for an end to walks in circles")?;
        return work();
    }
    start(database, Stdio::inherit())
}

/// The parent's side: runs this program again, as the child that walks `database` and prints to `stdout`.
///
/// # Errors
/// As [`isolated`].
pub fn start(database: &Path, stdout: Stdio) -> anyhow::Result<ExitCode> {
    let mut arguments = env::args_os();
    let status = Command::new("/proc/self/exe")
        // A program that goes by several names acts by the one it was called with.
        .arg0(arguments.next().unwrap_or_default())
        .args(arguments)
        .env(PARENT, process::id().to_string())
        .stdout(stdout)
        .status()
        .context("cannot start this program again to walk the database in a process of its own")?;
    outcome(status, database)
}

/// Whether this process was started as such a child, be its parent alive or not.
pub fn is_child() -> bool {
    env::var_os(PARENT).is_some()
}

fn outcome(status: ExitStatus, database: &Path) -> anyhow::Result<ExitCode> {
    let Some(signal) = status.signal() else {
        // A status without a signal has a code, and codes are 8 bits wide: wait(2).
        return Ok(ExitCode::from(status.code().unwrap_or(1) as u8));
    };
    let name = Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.to_string());
    let database_name = database.display();
    match Signal::try_from(signal) {
        Ok(Signal::SIGBUS) => match Location::of(database).ok().and_then(|location| location.shortfall()) {
            Some((length, counted)) => anyhow::bail!(
                "{database_name}: truncated: {length} bytes, and its header counts {counted}; what was printed so far is \
                 incomplete. Fetch it again from where it came from"
            ),
            None => anyhow::bail!(
                "{database_name}: a page of it could not be read ({name}): the storage fails, or the file was cut off \
                 meanwhile, or is damaged; what was printed so far is incomplete"
            ),
        },
        Ok(Signal::SIGSEGV | Signal::SIGABRT | Signal::SIGFPE | Signal::SIGILL) => anyhow::bail!(
            "{database_name}: liblmdb crashed ({name}) while walking it: the file is damaged, or was rewritten meanwhile; \
             what was printed so far is incomplete. Compare it with its original, or copy what can still be read with \
             mdb_copy or mdb_dump"
        ),
        Ok(patience::SIGNAL) => anyhow::bail!(
            "{database_name}: damaged: liblmdb goes in circles; what was printed so far is incomplete. Compare it with its \
             original"
        ),
        _ => anyhow::bail!("{database_name}: the process that walked it was ended by {name}"),
    }
}
