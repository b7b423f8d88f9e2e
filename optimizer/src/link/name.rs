//! The socket's name: one optimizer for each user, limited memory cgroup, and mount, PID and user namespace, and for each build of the
//! library.

use crate::memory::Memory;
use nix::unistd::Uid;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

/// The page cache is charged to the memory cgroup of whoever fills it, and bounded by the limit above that; paths mean what they
/// mean in one mount namespace: readers share an optimizer that shares both with them. In another PID namespace it has no number by
/// which it could watch a reader, and in another user namespace the same number may be another user.
pub fn of_this_place(user: Uid) -> String {
    let mut place = DefaultHasher::new();
    Memory::here().domain().hash(&mut place);
    for namespace in ["mnt", "pid", "user"] {
        fs::metadata(format!("/proc/self/ns/{namespace}")).map_or(0, |namespace| namespace.ino()).hash(&mut place);
    }
    let build = env!("PRECACHE_LIBRARY_HASH");
    format!("precache-{build}-{user}-{:016x}", place.finish())
}

/// A random word.
pub fn random() -> u64 {
    // A hasher's keys are random per process and differ from one to the next (std::hash::RandomState).
    let mut hasher = std::hash::BuildHasher::build_hasher(&std::hash::RandomState::new());
    std::process::id().hash(&mut hasher);
    hasher.finish()
}
