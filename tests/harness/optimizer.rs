//! The optimizer of one run, and waiting for it to come and go.

use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The optimizer that runs in the same mount namespace.
pub fn beside(process: u32) -> Option<Pid> {
    let namespace = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/mnt")).map(|m| m.ino()).ok();
    let ours = namespace(&process.to_string())?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()) && namespace(pid) == Some(ours))
        .find(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"precache\0service")))
        .and_then(|pid| pid.parse().ok())
        .map(Pid::from_raw)
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
