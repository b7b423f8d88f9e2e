//! How much page cache the data files may take: what the memory cgroups above this process and the system leave, followed
//! as it changes.
//!
//! Page cache is charged to the cgroup of whoever fills, and the optimizer is below the same limit as its readers.

mod cgroup;
mod pressure;

use std::fs;
use std::path::{Path, PathBuf};

/// Left free of what is available: the kernel keeps pages in batches for each CPU, and reclaims before it is full.
const SLACK: u64 = 32;

/// The page cache that is known to be of data files, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct DataPages {
    pub cached: u64,
    /// What of it this process has mapped.
    pub mapped: u64,
    /// What the kernel has evicted of it lately, beyond what other data are known to have taken the place of.
    pub displaced: u64,
}

/// Where limits are told.
pub struct Memory {
    root: PathBuf,
    /// Folders of the memory cgroups from our own up to the outermost that can be seen.
    groups: Vec<cgroup::Group>,
    /// The path of our own, where its folder cannot be seen.
    unseen: Option<PathBuf>,
}

impl Memory {
    /// Of this process.
    pub fn here() -> Self {
        Self::at(Path::new("/"))
    }

    /// With `/proc` and `/sys` below this folder.
    fn at(root: &Path) -> Self {
        let (groups, unseen) = cgroup::groups(root);
        Self { root: root.to_owned(), groups, unseen }
    }

    /// Bytes of page cache that the data files may take now, those of `data` included. Without limits that can be read,
    /// nothing is bounded here, and the kernel decides as it does for plain programs.
    pub fn budget(&self, data: DataPages) -> u64 {
        let group = self.groups.iter().filter_map(|group| group.room(data)).min().unwrap_or(u64::MAX);
        let system = self.available().unwrap_or(u64::MAX);
        let least = group.min(system);
        let calm = least - least / SLACK;
        // Others that wait for memory within limits of their own do not wait for ours.
        let waiting = pressure::of_group(self.limited().or(self.groups.first()))
            .or_else(|| (system <= group).then(|| pressure::of_system(&self.root)).flatten());
        (calm as f64 * pressure::share(waiting.unwrap_or(0.0))) as u64
    }

    /// Whose memory it is: the folder of the innermost memory cgroup that has a limit, or of the outermost that can be seen, as what
    /// is charged to any group below it is bounded there. Batch systems give each task a group of its own, and the limit to the job.
    /// Where it cannot be seen, the path of our own group.
    pub fn domain(&self) -> Option<&Path> {
        let seen = self.limited().or(self.groups.last()).map(cgroup::Group::folder);
        self.unseen.as_deref().or(seen)
    }

    /// The innermost group that has a limit.
    fn limited(&self) -> Option<&cgroup::Group> {
        self.groups.iter().find(|group| group.is_limited())
    }

    /// `MemAvailable` (proc_meminfo(5)): it counts what is cached as available, but for a little that the kernel keeps.
    fn available(&self) -> Option<u64> {
        let text = fs::read_to_string(self.root.join("proc/meminfo")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }
}

#[cfg(test)]
mod tests;
