//! The socket's name: one optimizer for each user, memory cgroup and mount namespace, and for each build.

use nix::unistd::geteuid;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

/// The page cache is charged to the memory cgroup of whoever fills it, and paths mean what they mean in one mount
/// namespace: readers share an optimizer that shares both with them.
pub fn of_this_place() -> String {
    let mut place = DefaultHasher::new();
    memory_cgroup().hash(&mut place);
    fs::metadata("/proc/self/ns/mnt").map(|namespace| namespace.ino()).unwrap_or(0).hash(&mut place);
    let build = env!("PRECACHE_LIBRARY_HASH");
    format!("precache-{build}-{}-{:016x}", geteuid(), place.finish())
}

/// The path of the memory cgroup: the line of the memory controller (v1), else the one without controllers (v2).
fn memory_cgroup() -> String {
    let lines = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path_of = |controller: &str| {
        lines.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            let path = parts.next()?;
            controllers.split(',').any(|c| c == controller).then(|| path.to_owned())
        })
    };
    path_of("memory").or_else(|| path_of("")).unwrap_or_default()
}

/// A random word.
pub fn random() -> u64 {
    // A hasher's keys are random per process and differ from one to the next (std::hash::RandomState).
    let mut hasher = std::hash::BuildHasher::build_hasher(&std::hash::RandomState::new());
    std::process::id().hash(&mut hasher);
    hasher.finish()
}
