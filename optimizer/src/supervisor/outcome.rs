//! The end of a run: what is reported of it, and the status it leaves to our parent.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::ptr;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::message;
use super::publish::{Access, publish};
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

/// Where the report goes.
pub enum Destination {
    /// A pipe or a device, opened before the program has its descriptors: `/dev/stdout`, `/dev/fd/63`.
    Open(PathBuf, File),
    /// A file that one of our descriptors stands for: what others wrote into it stays.
    Descriptor(PathBuf, File),
    /// A file that will be replaced as a whole.
    Place(PathBuf),
}

impl Destination {
    pub fn open(path: &Path) -> Self {
        let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        if is_file && let Some(file) = descriptor(path) {
            return Self::Descriptor(path.into(), file);
        }
        // A pipe without a reader opens when the report is written, and waits for one then.
        let now = || File::options().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
        match fs::metadata(path) {
            Ok(_) if !is_file => now().map_or_else(|_| Self::Place(path.into()), |file| Self::Open(path.into(), file)),
            _ => Self::Place(path.into()),
        }
    }

    fn write(self, text: &[u8]) -> Result<(), Unwritable> {
        let written = match &self {
            Self::Open(_, file) => write_open(file, text),
            Self::Descriptor(_, file) => { file }.write_all(text),
            Self::Place(path) => write_whole(path, text),
        };
        let (Self::Open(file, _) | Self::Descriptor(file, _) | Self::Place(file)) = self;
        written.map_err(|why| Unwritable { file, why })
    }
}

/// The descriptor that the path leads to, such as `/dev/stdout` or `/proc/self/fd/5`, once more.
fn descriptor(path: &Path) -> Option<File> {
    /// As many links as the kernel follows (path_resolution(7)).
    const LINKS: usize = 40;
    let own = PathBuf::from(format!("/proc/{}/fd", process::id()));
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let folder = fs::canonicalize(path.parent()?).ok()?;
        if folder == own {
            let number = path.file_name()?.to_str()?.parse().ok()?;
            // SAFETY: /proc lists it as open, and nothing closes it meanwhile: there is one thread so far.
            return unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned().ok().map(File::from);
        }
        path = folder.join(fs::read_link(folder.join(path.file_name()?)).ok()?);
    }
    None
}

fn write_open(mut file: &File, text: &[u8]) -> io::Result<()> {
    // Whoever reads the pipe may be slow.
    fcntl(file, FcntlArg::F_SETFL(OFlag::empty()))?;
    file.write_all(text)
}

/// Whoever waits for the file finds all of it.
fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    // What a link points to is meant, not the link; a pipe that nobody read from at the start is written to.
    let path = fs::canonicalize(path).unwrap_or(path.to_owned());
    if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, text);
    }
    // In place of another file: as accessible as that was.
    let access = fs::metadata(&path).map_or(Access::Masked(0o666), |old| Access::Exactly(old.mode() & 0o777));
    publish(&path, text, access)
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write the report to {file:?}: {why}")]
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

    /// To where it was asked for, and what was not accelerated to stderr; all of it, if nothing was asked for or that
    /// fails.
    pub fn publish(&self, destination: Option<Destination>, options: &RunOptions) {
        let written = destination.map(|destination| destination.write(&self.json()));
        // Whoever asked for it, and for silence, has nothing else to go by.
        if let Some(Err(error)) = &written {
            message::line(&format!("{error}{}", if options.quiet { "" } else { "; its summary is below" }));
        }
        if options.quiet {
            return;
        }
        // The reasons against all of it have been told when they arose.
        let Some(session) = &self.session else { return };
        let is_short = matches!(written, Some(Ok(()))) && !options.verbose;
        let lines = if is_short { session.shortcomings() } else { session.summary() };
        lines.iter().for_each(|line| message::line(line));
    }

    fn json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// What is to be said of a program that a fault ended while precache's handler was at work in it.
pub fn crash_in_handler(end: End, program: Pid, session: &SessionReport) -> Option<&'static str> {
    let is_fault = matches!(end, End::Killed(libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE));
    let was_inside = || session.readers.iter().any(|reader| reader.pid == program.as_raw() && reader.in_handler > 0);
    (is_fault && was_inside()).then_some(
        "the program crashed while precache's handler was at work in it, which may be a fault of precache: run it with \
         PRECACHE=off, and report what you find",
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReaderReport;

    #[test]
    fn only_a_fault_of_the_program_itself_is_laid_to_the_handler() {
        let program = Pid::from_raw(7);
        let told = |end, pid, in_handler| {
            let readers = vec![ReaderReport { pid, in_handler, ..Default::default() }];
            crash_in_handler(end, program, &SessionReport { readers, ..Default::default() }).is_some()
        };
        assert!(told(End::Killed(libc::SIGSEGV), 7, 1));
        assert!(!told(End::Killed(libc::SIGSEGV), 7, 0));
        assert!(!told(End::Killed(libc::SIGSEGV), 8, 1));
        assert!(!told(End::Killed(libc::SIGKILL), 7, 1));
        assert!(!told(End::Exited(0), 7, 1));
    }
}
