//! The optimizer of one run, and waiting for it to come and go.

use crate::storage::lacking;
use crate::traps::Traps;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The mount namespace that a process is in.
fn namespace(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/mnt")).map(|namespace| namespace.ino()).ok()
}

/// The optimizer that runs in the same mount namespace.
pub fn beside(process: u32) -> Option<Pid> {
    all_beside(process).into_iter().next()
}

/// All that do.
pub fn all_beside(process: u32) -> Vec<Pid> {
    let Some(ours) = namespace(&process.to_string()) else { return Vec::new() };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let is_optimizer = |pid: &String| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"precache\0service"))
    };
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()) && namespace(pid) == Some(ours))
        .filter(is_optimizer)
        .filter_map(|pid| pid.parse().ok().map(Pid::from_raw))
        .collect()
}

/// Name of an optimizer's socket in the abstract namespace.
pub fn socket_of(optimizer: Pid) -> std::io::Result<Vec<u8>> {
    let line = fs::read(format!("/proc/{optimizer}/cmdline"))?;
    let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
    let name = words.windows(2).find(|pair| pair[0] == b"--name").map(|pair| pair[1].to_vec());
    name.ok_or_else(|| std::io::Error::other("its command line does not name its socket"))
}

/// The command in a mount namespace of its own, and so with an optimizer of its own, which nobody else misses. `None`, said:
/// there is no right to make one.
pub fn apart(inner: &Command) -> Option<Command> {
    let can = Command::new("unshare").args(["--mount", "--", "true"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        lacking("right to make a mount namespace");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--"]).arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(command)
}

/// Kills the optimizer of a supervisor that is started [`apart`] as soon as a reader of it has hit a checkpoint; `false`: that
/// was not seen before `is_over`. The error: nobody may look.
pub fn kill_at_first_trip(supervisor: u32, is_over: impl Fn() -> bool) -> std::io::Result<bool> {
    let is_apart = || namespace(&supervisor.to_string()) != namespace("self");
    let mut optimizer = None;
    while !is_over() {
        // Until it has a namespace of its own, the one beside it is everybody's.
        if optimizer.is_none() && is_apart() {
            optimizer = beside(supervisor);
        }
        if let Some(found) = optimizer {
            match Traps::of(found) {
                Ok(traps) if traps.hit() > 0 => return Ok(kill(found, Signal::SIGKILL).is_ok()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
                // The one that started it, by the same words.
                Err(_) => optimizer = None,
            }
        }
        // Whoever looks all the time takes a processor from the program.
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(false)
}

/// Waits until it is so; what does not come about is a failure.
pub fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Waits for the end of a process that is nobody's zombie.
pub fn must_end(process: Pid) {
    wait_for(&format!("the end of process {process}"), || !Path::new(&format!("/proc/{process}")).exists());
}
