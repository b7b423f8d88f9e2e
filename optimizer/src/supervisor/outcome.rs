//! The end of a run: what is reported of it, and the status it leaves to our parent.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::ptr;

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use serde::{Deserialize, Serialize};

use super::message;
use super::watch::End;
use crate::options::{Mode, RunOptions};
use crate::report::SessionReport;

#[derive(Debug, Serialize, Deserialize)]
pub struct RunReport {
    pub version: String,
    pub command: Vec<String>,
    pub mode: Mode,
    /// The exit status, if the program exited.
    pub exit: Option<i32>,
    /// The name of the signal that killed it, if one did.
    pub signal: Option<String>,
    pub wall_seconds: f64,
    pub injected: bool,
    /// Why it was not accelerated, or not all the time.
    pub reasons: Vec<String>,
    pub optimizer_restarts: u32,
    pub session: Option<SessionReport>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write the report to {file:?}: {why}; its summary is below")]
struct Unwritable {
    file: PathBuf,
    why: io::Error,
}

impl RunReport {
    pub fn new(options: &RunOptions, command: &[OsString], end: End) -> Self {
        let (exit, signal) = match end {
            End::Exited(status) => (Some(status), None),
            End::Killed(signal) => (None, Some(name(signal))),
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            mode: options.mode,
            exit,
            signal,
            wall_seconds: 0.0,
            injected: false,
            reasons: Vec::new(),
            optimizer_restarts: 0,
            session: None,
        }
    }

    /// To the file that was asked for, or else, or if that fails, to stderr.
    pub fn publish(&self, options: &RunOptions) {
        let written = match &options.report {
            Some(file) => self.write(file).map(|()| true),
            None => Ok(false),
        };
        if options.quiet {
            return;
        }
        if let Err(error) = &written {
            message::line(&error.to_string());
        }
        if options.verbose || !written.unwrap_or(false) {
            self.summarize();
        }
    }

    fn summarize(&self) {
        // The reasons against have been told when they arose.
        let Some(session) = &self.session else { return };
        for line in session.summary().lines() {
            message::line(line);
        }
    }

    /// Under another name first: whoever waits for the file finds all of it.
    fn write(&self, file: &Path) -> Result<(), Unwritable> {
        let write = || -> io::Result<()> {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            // A pipe or a device is written to; replacing it is nobody's wish.
            if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
                return fs::write(file, text);
            }
            let folder = file.parent().unwrap_or(Path::new("/"));
            let mut temporary =
                tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
            temporary.write_all(&text)?;
            temporary.persist(file)?;
            Ok(())
        };
        write().map_err(|why| Unwritable { file: file.to_owned(), why })
    }
}

fn name(signal: i32) -> String {
    match signal_hook::low_level::signal_name(signal) {
        Some(name) => name.to_owned(),
        None => format!("signal {signal}"),
    }
}

/// Leaves the program's status to our parent as if it were ours.
pub fn pass_on(end: End) -> ExitCode {
    match end {
        End::Exited(status) => process::exit(status),
        End::Killed(signal) => die_of(signal),
    }
}

/// The parent sees the same signal; the core is the program's alone.
fn die_of(signal: i32) -> ExitCode {
    // A core limit of 0 does not keep one from a core_pattern that is a pipe, this does. If it fails, there are two.
    let _ = prctl::set_dumpable(false);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let mut only = MaybeUninit::uninit();
    // SAFETY: sigemptyset(3) fills the set before anything reads it; the default disposition runs no code; kill(2) only
    // sends. Sent before it is unblocked, the signal comes before any that arrived too late for the program.
    unsafe {
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, only.as_ptr(), ptr::null_mut());
    }
    // What a shell makes of it, should we have survived what killed the program.
    ExitCode::from(128u8.wrapping_add(signal as u8))
}
