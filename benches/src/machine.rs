//! Where and when something was measured.

use std::fs;
use std::process::Command;

use procfs::{CpuInfo, Current, LoadAverage, Meminfo};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    /// Read-ahead of the disk that the scratch folder is on, in KiB.
    pub disk_read_ahead: Option<u64>,
    /// Who measures, and who reads.
    pub user: String,
    pub date: String,
    /// What else kept the machine busy when the measurement began.
    pub load_average: f32,
    /// The state of the sources, if they are a git repository.
    pub commit: Option<String>,
}

impl Machine {
    /// With the scratch folder on this disk, and readers that run as this user instead of our own.
    pub fn here(scratch: &std::path::Path, as_user: Option<&str>) -> Self {
        let cpus = CpuInfo::current().ok();
        let model = cpus.as_ref().and_then(|cpus| cpus.model_name(0)).unwrap_or("unknown");
        let user = if nix::unistd::geteuid().is_root() { "root user" } else { "ordinary user" };
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: model.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: Meminfo::current().map_or(0, |memory| memory.mem_total),
            kernel: format!("Linux {}", release.trim()),
            disk_read_ahead: read_ahead(scratch),
            user: as_user.map_or(user.to_owned(), |reader| format!("{user}, readers as {reader}")),
            date: told_by("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_default(),
            load_average: LoadAverage::current().map_or(0.0, |load| load.one),
            commit: told_by("git", &["rev-parse", "--short", "HEAD"]),
        }
    }

    /// What figures depend on, whoever measures.
    pub fn hardware(&self) -> String {
        let memory = self.memory_bytes as f64 / f64::from(1 << 30);
        format!("{}, {} cores, {memory:.0} GiB memory, {}", self.cpu, self.cores, self.kernel)
    }

    /// One line for people.
    pub fn line(&self) -> String {
        format!(
            "{}, disk read-ahead {} KiB, {}, load {:.1} at the start, {}{}",
            self.hardware(),
            self.disk_read_ahead.map_or("unknown".to_owned(), |kilobytes| kilobytes.to_string()),
            self.user,
            self.load_average,
            self.date,
            self.commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}")),
        )
    }
}

fn read_ahead(path: &std::path::Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let device = path.metadata().ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).ok()?.trim().parse().ok()
}

fn told_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
