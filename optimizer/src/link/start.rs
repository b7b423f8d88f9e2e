//! Starts the optimizer as a service: a process of its own, in a session of its own, nobody's child.

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::unistd::pipe2;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts the optimizer that listens under `name`, and returns when it does, or when another one was faster.
pub fn optimizer(name: &str) -> Result<()> {
    let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
    // Fewer descriptors than this are taken by standard streams; the service closes all others but this.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("precache").args(["service", "--name", name, "--ready-fd", &theirs.as_raw_fd().to_string()]);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let kept: OwnedFd = theirs.try_clone()?;
    // SAFETY: fcntl and setsid are async-signal-safe (signal-safety(7)) and allocate nothing.
    unsafe {
        command.pre_exec(move || {
            fcntl(&kept, FcntlArg::F_GETFD)?;
            fcntl(&theirs, FcntlArg::F_SETFD(FdFlag::empty()))?;
            nix::unistd::setsid()?;
            Ok(())
        });
    }
    // The service forks once more and lets this child end, so that init is its parent.
    let mut child = command.spawn()?;
    drop(command);
    child.wait()?;
    let mut word = String::new();
    File::from(ours).read_to_string(&mut word)?;
    match word.as_str() {
        "ready" | "taken" => Ok(()),
        "" => Err(Error::new(ErrorKind::UnexpectedEof, "it ended before it was ready")),
        why => Err(Error::other(why.to_owned())),
    }
}
