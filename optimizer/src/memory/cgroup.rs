//! Memory cgroups, of version 1 and 2 (cgroups(7); Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst).

use super::DataPages;
use std::fs;
use std::path::{Path, PathBuf};

/// Of what page cache may take, at most one part of so many is left to files that are not data files.
const OTHERS: u64 = 8;

/// One group on the way from this process to the root.
pub struct Group {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The groups that this process is in, innermost first, as far as they can be seen from here; and the path of its own where that
/// cannot.
pub fn groups(root: &Path) -> (Vec<Group>, Option<PathBuf>) {
    let nothing = (Vec::new(), None);
    let Ok(membership) = fs::read_to_string(root.join("proc/self/cgroup")) else { return nothing };
    let path_in = |is_wanted: &dyn Fn(&str) -> bool| {
        membership.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            is_wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let one = path_in(&|controllers| controllers.split(',').any(|name| name == "memory"));
    let (mount, path, version) = match one {
        Some(path) => (root.join("sys/fs/cgroup/memory"), path, Version::One),
        None => match path_in(&str::is_empty) {
            Some(path) => (root.join("sys/fs/cgroup"), path, Version::Two),
            None => return nothing,
        },
    };
    // In a container the mount shows the group itself as its root, and the path leads nowhere: then that root is it.
    let (own, unseen) = match mount.join(&path) {
        own if own.is_dir() => (own, None),
        _ => (mount.clone(), Some(path.into())),
    };
    let groups = own.ancestors().take_while(|folder| folder.starts_with(&mount));
    (groups.map(|folder| Group { folder: folder.to_owned(), version }).collect(), unseen)
}

impl Group {
    /// Its limit in bytes, if it has one of its own.
    fn limit(&self) -> Option<u64> {
        let limit = match self.version {
            Version::One => self.number("memory.limit_in_bytes"),
            Version::Two => [self.number("memory.max"), self.number("memory.high")].into_iter().flatten().min(),
        };
        // The largest number that fits a whole number of pages stands for no limit in version 1.
        limit.filter(|&limit| limit < i64::MAX as u64 / 4096 * 4096)
    }

    pub fn is_limited(&self) -> bool {
        self.limit().is_some()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes that the page cache of data files may take in this group: its limit without what cannot be reclaimed, and without
    /// active pages of other files that are mapped, as far as the kernel has evicted data lately, and up to an eighth. Programs and
    /// their libraries are such: where they do not fit as well, the kernel makes room, from what came first. `None` without a limit.
    pub fn room(&self, data: DataPages) -> Option<u64> {
        let limit = self.limit()?;
        let used = self.number(match self.version {
            Version::One => "memory.usage_in_bytes",
            Version::Two => "memory.current",
        })?;
        let stat = fs::read_to_string(self.folder.join("memory.stat")).ok()?;
        let field = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let [cache, shmem, active, mapped] = match self.version {
            // With the groups below it, as the limit has it.
            Version::One => ["total_cache", "total_shmem", "total_active_file", "total_mapped_file"],
            Version::Two => ["file", "shmem", "active_file", "file_mapped"],
        }
        .map(field);
        let files = cache.saturating_sub(shmem);
        let room = limit.saturating_sub(used.saturating_sub(files));
        // What is written or read once does not get active, and leaves first; what a fault brings in may be at once. What it brings
        // in beside, of data that nobody comes to, is not mapped for long, if ever. Shared memory is among what is mapped.
        let mapped = mapped.saturating_sub(data.mapped).min(active);
        let others = files.saturating_sub(data.cached).min(mapped).min(data.displaced).min(room / OTHERS);
        Some(room - others)
    }

    /// A file of the group.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file that holds one number; `None` where it says `max` or is not there.
    fn number(&self, name: &str) -> Option<u64> {
        fs::read_to_string(self.folder.join(name)).ok()?.trim().parse().ok()
    }
}
