//! A memory cgroup for one run: a limit, and what is charged to it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long processes that were killed may take to leave.
const LEAVE: Duration = Duration::from_secs(10);
/// Writing a limit below what is in use reclaims, and may have to be asked for again.
const ATTEMPTS: u32 = 20;

/// Of version 1, below that of this process; gone with this value, and with it the processes in it.
pub struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    pub fn new(limit: u64) -> anyhow::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("precache-bench-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let folder = own_folder().context("there is no memory cgroup of version 1")?.join(name);
        fs::create_dir(&folder).with_context(|| format!("cannot make the memory cgroup {}", folder.display()))?;
        let group = Self { folder };
        group.set_limit(limit)?;
        Ok(group)
    }

    /// Sets the bytes that may be charged to it, page cache included.
    pub fn set_limit(&self, bytes: u64) -> anyhow::Result<()> {
        let knob = self.folder.join("memory.limit_in_bytes");
        let mut written = Ok(());
        for _ in 0..ATTEMPTS {
            written = fs::write(&knob, bytes.to_string());
            if !matches!(&written, Err(error) if error.raw_os_error() == Some(libc::EBUSY)) {
                break;
            }
        }
        written.with_context(|| format!("cannot write {bytes} to {}", knob.display()))
    }

    /// Whoever writes `0` there joins.
    pub fn door(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join("cgroup.procs"))
    }

    /// Bytes charged to it that are not page cache: anonymous memory, and the kernel's own.
    pub fn anonymous(&self) -> anyhow::Result<u64> {
        let text = fs::read_to_string(self.folder.join("memory.stat"))?;
        let rss =
            text.lines().find_map(|line| line.strip_prefix("total_rss ")).context("memory.stat has no total_rss")?;
        let kernel = fs::read_to_string(self.folder.join("memory.kmem.usage_in_bytes")).unwrap_or_default();
        Ok(rss.trim().parse::<u64>()? + kernel.trim().parse::<u64>().unwrap_or(0))
    }

    fn processes(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn remove(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() && fs::remove_dir(&self.folder).is_ok() {
                return Ok(());
            }
            ensure!(start.elapsed() < LEAVE, "{} does not empty: {left:?}", self.folder.display());
            // The optimizer waits a while for other readers. Whoever is in here was started for this run.
            for pid in left {
                // It may have ended by itself.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("a memory cgroup is left behind: {error:#}");
        }
    }
}

/// Where the memory cgroup of this process lies.
fn own_folder() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|controller| controller == "memory").then_some(path)
    })?;
    let folder = Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/'));
    folder.is_dir().then_some(folder)
}
