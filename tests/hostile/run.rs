//! The ways in which a case is run, and what a run leaves behind.
//!
//! Half-way, a program comes to the rendezvous: it writes a byte to the FIFO `reached` in the folder that
//! `HOSTILE_RENDEZVOUS` names, and reads one from the FIFO `go`. That is when something happens to the optimizer.
//!
//! Whoever must be served under its own number writes that to the file `served` there, and how often it trips at least.
//!
//! A long run sets `HOSTILE_ROUNDS`, how many rounds those cases go that count them, and `HOSTILE_PATIENCE`, in seconds.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use precache_tests::detector::watched;
use precache_tests::methods::{GUARD, MPROTECT};
use precache_tests::optimizer::{apart, beside, must_end};
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{lacking, scratch};
use precache_tests::traps::Traps;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What does not end within this time hangs: two minutes, or as many seconds as `HOSTILE_PATIENCE` says.
fn patience() -> Duration {
    let wanted = std::env::var("HOSTILE_PATIENCE").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(wanted.unwrap_or(120))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Native,
    Guard,
    Mprotect,
    OptimizerKilled,
    OptimizerStopped,
    /// With guards, and with the detector of what signal context may not do preloaded behind our library.
    Detected,
}

impl Way {
    pub const INJECTED: [Self; 5] =
        [Self::Guard, Self::Mprotect, Self::OptimizerKilled, Self::OptimizerStopped, Self::Detected];

    pub fn option(self) -> &'static str {
        if self == Self::Mprotect { MPROTECT } else { GUARD }
    }

    fn harms_optimizer(self) -> bool {
        matches!(self, Self::OptimizerKilled | Self::OptimizerStopped)
    }
}

/// What anybody can see of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    /// Exit status, or the signal that it died of.
    pub status: (Option<i32>, Option<i32>),
    pub stdout: String,
    pub stderr: String,
}

impl fmt::Display for Left {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let (code, signal) = self.status;
        write!(to, "exit {code:?}, signal {signal:?}\n-- stdout\n{}\n-- stderr\n{}", self.stdout, self.stderr)
    }
}

/// A run, and what is known of it.
pub struct Run {
    pub left: Left,
    /// Of the last optimizer; null without one.
    pub report: Report,
    /// Checkpoints that were hit; `None`: nobody may look.
    pub hit: Option<u64>,
    /// The processes that must be served, with their trips at least; empty: nobody said.
    pub served: BTreeMap<u64, u64>,
}

/// Runs the program; `None`: this machine lacks what it takes.
pub fn run(words: &[OsString], way: Way, options: &[&str]) -> Result<Option<Run>, String> {
    let folder = tempfile::tempdir_in(scratch()).map_err(|error| error.to_string())?;
    let (mut command, report) = match way {
        Way::Native => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            (command, None)
        }
        _ => {
            let options: Vec<&str> = [way.option()].into_iter().chain(options.iter().copied()).collect();
            let words = if way == Way::Detected { watched(words)? } else { words.to_vec() };
            let (command, report) = Program(words).command(&options);
            (command, Some(report))
        }
    };
    if way.harms_optimizer() {
        let Some(apart) = apart(&command) else { return Ok(None) };
        command = apart;
    }
    let rendezvous = Rendezvous::prepare(folder.path()).map_err(|error| error.to_string())?;
    let output = |name| File::create(folder.path().join(name)).map_err(|error| error.to_string());
    command.env("HOSTILE_RENDEZVOUS", folder.path()).stdin(Stdio::null());
    command.stdout(output("stdout")?).stderr(output("stderr")?);
    let cwd = folder.path().join("cwd");
    std::fs::create_dir(&cwd).map_err(|error| error.to_string())?;
    command.current_dir(cwd).process_group(0);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let status = rendezvous.attend(&mut child, way);
    if status.is_err() {
        // The whole group: natively the program has no supervisor that takes it along.
        let _ = nix::sys::signal::killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        let _ = child.wait();
    }
    let text = |name| std::fs::read(folder.path().join(name)).map(|text| String::from_utf8_lossy(&text).into_owned());
    let (stdout, stderr) = (text("stdout").unwrap_or_default(), text("stderr").unwrap_or_default());
    let (status, harmed) = status.map_err(|what| format!("{what}\n-- stdout\n{stdout}\n-- stderr\n{stderr}"))?;
    let stderr = without_addresses(&stderr);
    let left = Left { status: (status.code(), status.signal()), stdout, stderr };
    let report = report.map_or(Report(serde_json::Value::Null), |report| report.read());
    // Whoever went over to a successor counts anew there.
    let before = harmed.map_or(Some(0), |harmed| harmed.traps.as_ref().map(Traps::hit));
    let hit = before.map(|before| before + report.trips());
    let numbers = std::fs::read_to_string(folder.path().join("served")).unwrap_or_default();
    let pair =
        |line: &str| line.split_once(' ').and_then(|(pid, least)| Some((pid.parse().ok()?, least.parse().ok()?)));
    let served = numbers.lines().map(pair).collect::<Option<_>>().ok_or(format!("served: {numbers:?}"))?;
    Ok(Some(Run { left, report, hit, served }))
}

/// Our ends of the two FIFOs.
struct Rendezvous {
    reached: File,
    go: File,
}

impl Rendezvous {
    fn prepare(folder: &Path) -> std::io::Result<Self> {
        let fifo = |name: &str| {
            let path = folder.join(name);
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o666))?;
            // For both: then no open on either side waits for the other.
            OpenOptions::new().read(true).write(true).open(path)
        };
        Ok(Self { reached: fifo("reached")?, go: fifo("go")? })
    }

    /// Answers whoever comes, until the program has ended.
    fn attend(mut self, child: &mut Child, way: Way) -> Result<(ExitStatus, Option<Harmed>), String> {
        let ended = process_descriptor(child.id()).map_err(|error| error.to_string())?;
        let patience = patience();
        let deadline = Instant::now() + patience;
        let mut harmed = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut wanted =
                [PollFd::new(self.reached.as_fd(), PollFlags::POLLIN), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wanted, timeout) {
                Ok(0) => return Err(format!("has not ended after {patience:?}")),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.to_string()),
                Ok(_) => {}
            }
            let [reached, over] = wanted.map(|one| one.any() == Some(true));
            if reached {
                self.reached.read_exact(&mut [0]).map_err(|error| error.to_string())?;
                if harmed.is_none() {
                    harmed = Harmed::by(way, child.id())?;
                }
                self.go.write_all(&[0]).map_err(|error| error.to_string())?;
            } else if over {
                let status = child.wait().map_err(|error| error.to_string())?;
                return match harmed {
                    None if way.harms_optimizer() => Err(format!("never came to the rendezvous ({status})")),
                    harmed => Ok((status, harmed)),
                };
            }
        }
    }
}

/// An optimizer that was killed or stands still; the latter goes on when this drops.
struct Harmed {
    optimizer: Pid,
    stopped: bool,
    /// Of those whom it served.
    traps: Option<Traps>,
}

impl Harmed {
    fn by(way: Way, supervisor: u32) -> Result<Option<Self>, String> {
        if !way.harms_optimizer() {
            return Ok(None);
        }
        let optimizer = beside(supervisor).ok_or("no optimizer serves")?;
        let traps = match Traps::of_all_who_asked(optimizer) {
            Ok(traps) => Some(traps),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                lacking("right to look at what an optimizer has mapped");
                None
            }
            Err(error) => return Err(error.to_string()),
        };
        let signal = if way == Way::OptimizerKilled { Signal::SIGKILL } else { Signal::SIGSTOP };
        kill(optimizer, signal).map_err(|error| error.to_string())?;
        if way == Way::OptimizerKilled {
            must_end(optimizer);
        }
        Ok(Some(Self { optimizer, stopped: way == Way::OptimizerStopped, traps }))
    }
}

impl Drop for Harmed {
    fn drop(&mut self) {
        if self.stopped {
            let _ = kill(self.optimizer, Signal::SIGCONT);
        }
    }
}

fn process_descriptor(process: u32) -> std::io::Result<OwnedFd> {
    // SAFETY: two integers as arguments (pidfd_open(2)).
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    if number < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}

/// The text with every hexadecimal number as `0x`: addresses differ from run to run.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "0x" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}
