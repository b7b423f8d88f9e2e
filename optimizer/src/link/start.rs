//! Starts the optimizer as a service: a process of its own, in a session of its own, nobody's child.

use super::patience::Deadline;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe2;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts the optimizer that listens under `name`, and returns when it does, or when another one was faster. Of the kind
/// [`ErrorKind::TimedOut`]: it has not said so in time, and may still.
pub fn optimizer(name: &str, deadline: Deadline) -> Result<()> {
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
    let mut child = command.spawn()?;
    drop(command);
    let word = first_words(ours, deadline)?;
    // It forks once more before it says anything, and lets this child end, so that init is its parent.
    match child.wait() {
        // Where SIGCHLD is ignored, as our parent may have left it, the kernel has reaped it (wait(2)).
        Err(error) if error.raw_os_error() != Some(libc::ECHILD) => return Err(error),
        _ => {}
    }
    match word.as_str() {
        "ready" | "taken" => Ok(()),
        "" => Err(Error::new(ErrorKind::UnexpectedEof, "it ended before it was ready")),
        why => Err(Error::other(why.to_owned())),
    }
}

/// All that comes through the pipe until its other end is closed.
fn first_words(pipe: OwnedFd, deadline: Deadline) -> Result<String> {
    let mut pipe = File::from(pipe);
    let mut words = Vec::new();
    loop {
        let left = PollTimeout::from(deadline.left().as_millis() as u16);
        if poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], left)? == 0 {
            return Err(Error::from(ErrorKind::TimedOut));
        }
        let mut piece = [0; 512];
        match pipe.read(&mut piece)? {
            0 => return Ok(String::from_utf8_lossy(&words).into_owned()),
            length => words.extend_from_slice(piece.get(..length).unwrap_or_default()),
        }
    }
}
