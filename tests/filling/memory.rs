//! Data that do not fit: what came first is kept, the rest passes through, and nobody else's pages are touched.

use crate::amounts::read_from;
use precache_tests::programs::program;
use precache_tests::runs::Program;
use precache_tests::storage::{SlowStorage, flat_file, lacking, scratch};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// So that filling is ahead.
const COMPUTING: &str = "--compute-ms=60";

/// Three epochs of 192 MiB with room for 128: the first fetches everything, each later one what does not fit.
#[test]
fn epochs_keep_what_came_first() {
    for method in ["--protect=mprotect", "--protect=guard"] {
        let options = [method, "--cache-limit=128M", "--size=8M", "--distance=1M"];
        let (share, report) = read_from(&["--latency=1ms", "--bandwidth=800M"], &["--epochs=3", COMPUTING], &options);
        // 64 MiB do not fit; two windows more may stay, in flight or just being passed: 1 + 2 * 48 / 192 at least.
        assert!(share.is_none_or(|share| (1.5..2.1).contains(&share)), "{share:?} of the file in {:#}", report.0);
    }
}

/// The reader's own limit counts, that of the group that it was started in.
#[test]
fn a_memory_group_bounds_the_cache() {
    let Some(group) = Group::with_limit(128 << 20) else { return };
    let storage = SlowStorage::mount(&precache_tests::storage::lmdb(192), &["--latency=1ms", "--bandwidth=800M"]);
    let words = [program("lmdb-reader").into_os_string(), storage.path().into(), "--epochs=3".into(), COMPUTING.into()];
    let (inner, report) = Program::new(words).command(&["--size=8M", "--distance=1M"]);
    let mut command = group.command(&inner);
    assert!(command.status().expect("a shell").success());
    let bytes = storage.bytes_of("data.mdb").map(|bytes| bytes as f64 / (192 << 20) as f64);
    assert!(bytes.is_none_or(|share| share < 2.4), "{bytes:?} of the file in {:#}", report.read().0);
}

/// Pages that were cached before are somebody's: they stay, whatever the limit.
#[test]
fn only_what_was_fetched_is_dropped() {
    let storage = SlowStorage::mount(scratch(), &["--latency=1ms"]);
    flat_file(64);
    let file = storage.path().join("flat-64M");
    fs::read(&file).unwrap();
    let before = storage.bytes_of("flat-64M");
    let reader = Program::new([program("map-reader").into_os_string(), file.clone().into_os_string()]);
    let (left, report) = reader.under(&["--cache-limit=1M", "--size=8M", "--distance=1M"]);
    assert!(left.status.success());
    assert!(report.of_file("cached") > 32 << 20, "{:#}", report.0);
    fs::read(&file).unwrap();
    assert_eq!(storage.bytes_of("flat-64M"), before);
}

/// A memory cgroup of version 1, gone when this drops.
struct Group(PathBuf);

impl Group {
    fn with_limit(bytes: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").expect("the kernel tells");
        let path = own.lines().find_map(|line| line.split_once(":memory:/"))?.1.to_owned();
        let root = PathBuf::from("/sys/fs/cgroup/memory");
        let parent = if root.join(&path).is_dir() { root.join(&path) } else { root };
        let folder = parent.join(format!("precache-test-{}", std::process::id()));
        if fs::create_dir(&folder).is_err()
            || fs::write(folder.join("memory.limit_in_bytes"), bytes.to_string()).is_err()
        {
            lacking("right to make a memory cgroup of version 1");
            return None;
        }
        Some(Self(folder))
    }

    /// The same command, in this group.
    fn command(&self, inner: &Command) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        command.arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its optimizer may live for a second more; then the group stays until the machine ends, empty.
        precache_tests::optimizer::wait_for("the group to be left", || fs::remove_dir(&self.0).is_ok());
    }
}
