//! Starts the optimizer as a service: a process of its own, in a session of its own, nobody's child.

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe2;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a service may take to say that it listens.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts the optimizer that listens under `name`, and returns when it does, or when another one was faster.
pub fn optimizer(name: &str) -> Result<()> {
    let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("precache").args(["service", "--name", name, "--ready-fd", &theirs.as_raw_fd().to_string()]);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It maps data files itself, and is nobody's reader: also where we are injected ourselves.
    command.env_remove("LD_PRELOAD").env_remove("PRECACHE_READER");
    // SAFETY: fcntl and setsid are async-signal-safe (signal-safety(7)) and allocate nothing.
    unsafe {
        command.pre_exec(move || {
            fcntl(&theirs, FcntlArg::F_SETFD(FdFlag::empty()))?;
            nix::unistd::setsid()?;
            Ok(())
        });
    }
    // The service forks once more and lets this child end, so that init is its parent.
    let mut child = command.spawn()?;
    drop(command);
    child.wait()?;
    let word = first_words(ours)?;
    match word.as_str() {
        "ready" | "taken" => Ok(()),
        "" => Err(Error::new(ErrorKind::UnexpectedEof, "it ended before it was ready")),
        why => Err(Error::other(why.to_owned())),
    }
}

/// All that comes through the pipe until its other end is closed.
fn first_words(pipe: OwnedFd) -> Result<String> {
    let late = Instant::now() + PATIENCE;
    let mut pipe = File::from(pipe);
    let mut words = Vec::new();
    loop {
        let left = late.saturating_duration_since(Instant::now()).as_millis() as u16;
        if poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], PollTimeout::from(left))? == 0 {
            return Err(Error::new(ErrorKind::TimedOut, format!("it does not say that it is ready for {PATIENCE:?}")));
        }
        let mut piece = [0; 512];
        match pipe.read(&mut piece)? {
            0 => return Ok(String::from_utf8_lossy(&words).into_owned()),
            length => words.extend_from_slice(piece.get(..length).unwrap_or_default()),
        }
    }
}
