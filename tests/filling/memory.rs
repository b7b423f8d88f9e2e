//! Data that do not fit: what came first is kept, the rest passes through, and nobody else's pages are touched.

use crate::amounts::read_from;
use precache_tests::programs::{precache_run, program};
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{SlowStorage, flat_file, lacking, scratch};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes: less than one window of the default size.
const TIGHT: u64 = 20 << 20;

/// So that filling is ahead; so many times longer where a machine says that it is slow, as one that is emulated.
fn computing() -> String {
    let factor = std::env::var("PRECACHE_TESTS_SLOWNESS").map_or(1, |factor| factor.parse().expect("a factor"));
    format!("--compute-ms={}", 60 * factor)
}

/// Three epochs of 192 MiB with room for 128: the first fetches everything, each later one what does not fit.
#[test]
fn epochs_keep_what_came_first() {
    for method in ["--protect=mprotect", "--protect=guard"] {
        let options = [method, "--cache-limit=128M", "--size=8M", "--distance=1M"];
        let (share, report) =
            read_from(&["--latency=1ms", "--bandwidth=800M"], &["--epochs=3", &computing()], &options);
        // 64 MiB do not fit; two windows more may stay, in flight or just being passed: 1 + 2 * 48 / 192 at least.
        assert!(share.is_none_or(|share| (1.5..2.1).contains(&share)), "{share:?} of the file in {:#}", report.0);
    }
}

/// The reader's own limit counts, that of the group that it was started in.
#[test]
fn a_memory_group_bounds_the_cache() {
    if let Some(group) = Group::with_limit(128 << 20) {
        is_kept_within(&group);
    }
}

/// A reader that gets on in little memory does so with us beside it: nobody is killed for want of it, us included.
#[test]
fn in_a_tight_group_nothing_is_killed() {
    let Some((fetched, report)) = reads_in_a_group_of(TIGHT) else { return };
    assert!(fetched.is_none_or(|bytes| bytes > TIGHT), "{:#}", report.0);
    assert!(report.of_file("requested") > 0, "{:#}", report.0);
}

/// With room for little more than what is in flight nothing is fetched ahead, and with less we are out of the way altogether.
#[test]
fn where_memory_is_short_the_program_has_it() {
    for (limit, lets_go) in [(14 * MIB, false), (8 * MIB, true)] {
        let Some((_, report)) = reads_in_a_group_of(limit) else { return };
        assert_eq!(report.of_file("requested"), 0, "{:#}", report.0);
        assert!(report.text().contains("for want of memory"), "{:#}", report.0);
        // Who waits for memory has less of it still.
        assert!(!lets_go || report.text().contains("memory too short"), "{:#}", report.0);
    }
}

/// Two epochs, alone and with us, in a group of its own each. The answer is what was fetched from the storage then.
fn reads_in_a_group_of(limit: u64) -> Option<(Option<u64>, Report)> {
    let storage = &["--latency=1ms", "--bandwidth=800M"];
    let words = |file: PathBuf| [program("map-reader").into_os_string(), file.into(), "--epochs=2".into()];
    let group = Group::with_limit(limit)?;
    let (cold, file) = flat_on(storage);
    let [reader, rest @ ..] = words(file);
    let mut plain = Command::new(reader);
    plain.args(rest);
    let alone = group.command(&plain).output().expect("a shell");
    assert!(alone.status.success() && group.kills() == 0, "not even the reader alone gets on: {alone:?}");
    drop((group, cold));

    let group = Group::with_limit(limit)?;
    let (cold, file) = flat_on(storage);
    let (inner, report) = Program::new(words(file)).command(&[]);
    let ours = group.command(&inner).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&ours.stdout), String::from_utf8_lossy(&alone.stdout), "{ours:?}");
    let report = report.read();
    assert_eq!(group.kills(), 0, "{:#}", report.0);
    assert_eq!(report.active_readers(), 1, "{:#}", report.0);
    Some((cold.bytes_of("flat-192M"), report))
}

/// Who exceeds this limit is throttled and nothing is killed, so it may be exceeded for long (cgroup-v2.rst). It is not:
/// hardly anybody waits for memory.
#[test]
fn a_group_that_would_be_throttled_is_not() {
    let Some(group) = Group::throttled_at(128 << 20) else { return };
    is_kept_within(&group);
    let told = fs::read_to_string(group.0.join("memory.pressure")).expect("the kernel tells");
    let ten = told.split_whitespace().find_map(|field| field.strip_prefix("avg10="));
    let percent: f64 = ten.expect("a share of ten seconds").parse().expect("a number");
    assert!(percent < 10.0, "{told}");
}

/// Three epochs of 192 MiB in a group with room for 128 MiB and for less than that of files. In the kernel's order all of it is
/// fetched three times; what is kept makes it less than twice, and somewhat more where an emulated machine is behind.
fn is_kept_within(group: &Group) {
    let storage = SlowStorage::mount(&precache_tests::storage::lmdb(192), &["--latency=1ms", "--bandwidth=800M"]);
    let words =
        [program("lmdb-reader").into_os_string(), storage.path().into(), "--epochs=3".into(), computing().into()];
    let (inner, report) = Program::new(words).command(&["--size=8M", "--distance=1M"]);
    let mut command = group.command(&inner);
    assert!(command.status().expect("a shell").success());
    assert_eq!(group.kills(), 0);
    let bytes = storage.bytes_of("data.mdb").map(|bytes| bytes as f64 / (192 << 20) as f64);
    assert!(bytes.is_none_or(|share| share < 2.4), "{bytes:?} of the file in {:#}", report.read().0);
}

/// Four epochs of every fourth record, 128 MiB, in a group with room for less. Without us each epoch brings in gaps, too, for the
/// kernel reads ahead: 2.6 times what is read.
#[test]
fn what_skips_is_kept_without_the_gaps() {
    for method in ["--protect=mprotect", "--protect=guard"] {
        let Some(group) = Group::with_limit(112 << 20) else { return };
        let storage = SlowStorage::mount(&precache_tests::storage::lmdb(512), &["--latency=1ms", "--bandwidth=800M"]);
        let pattern = ["--pattern=skipping", "--processes=4", "--rank=0", "--epochs=4", "--compute-ms=20"];
        let words = [program("lmdb-reader").into_os_string(), storage.path().into()];
        let words = words.into_iter().chain(pattern.map(Into::into));
        let (inner, report) = Program::new(words).command(&[method]);
        assert!(group.command(&inner).status().expect("a shell").success());
        let share = storage.bytes_of("data.mdb").map(|bytes| bytes as f64 / (128 << 20) as f64);
        assert!(share.is_none_or(|share| share < 3.8), "{share:?} of what is read in {:#}", report.read().0);
    }
}

/// Two processes side by side, each with all of it mapped: what one of them drops leaves once the other has let go of it
/// too, and nothing counts as dropped before.
#[test]
fn two_readers_of_one_file_keep_within_the_limit() {
    let (storage, file) = flat_on(&["--latency=1ms", "--bandwidth=800M"]);
    let reader =
        format!("'{}' '{}' --epochs=3 --compute-us-per-mb=4000", program("map-reader").display(), file.display());
    let both = Program::new(["sh", "-c", &format!("{reader} & {reader}; wait")]);
    let (left, report) = both.under(&["--cache-limit=128M", "--size=8M", "--distance=1M"]);
    assert!(left.status.success());
    assert_eq!(report.active_readers(), 2, "{:#}", report.0);
    assert_holds_what_it_tells(&file, &report);
    assert!(cached(&file) <= 160 * MIB, "{} MiB are cached, {:#}", cached(&file) / MIB, report.0);
    let share = storage.bytes_of("flat-192M").map(|bytes| bytes as f64 / (192 * MIB) as f64);
    // If one falls far behind the other, each fetches what does not fit by itself.
    assert!(share.is_none_or(|share| (1.3..3.4).contains(&share)), "{share:?} of the file in {:#}", report.0);
}

/// What was read of a file that nobody has mapped any more takes no room from the next one.
#[test]
fn a_file_that_is_finished_leaves_its_room() {
    let (storage, file) = flat_on(&["--latency=1ms", "--bandwidth=800M"]);
    flat_file(96);
    let reader = format!("'{}' --compute-us-per-mb=2000", program("map-reader").display());
    let first = format!("{reader} '{}'", storage.path().join("flat-96M").display());
    let both = Program::new(["sh", "-c", &format!("{first} && {reader} '{}' --epochs=3", file.display())]);
    let (left, report) = both.under(&["--cache-limit=160M", "--size=8M", "--distance=1M"]);
    assert!(left.status.success());
    let share = storage.bytes_of("flat-192M").map(|bytes| bytes as f64 / (192 * MIB) as f64);
    // 32 MiB do not fit, and two windows more; with the first file in their way it would be 128 MiB.
    assert!(share.is_none_or(|share| share < 2.2), "{share:?} of the file in {:#}", report.0);
}

/// Of a private mapping that may be written to nothing is let go of, and nothing counts as dropped while it is there.
#[test]
fn what_stays_mapped_is_not_told_to_be_dropped() {
    const READ: &str = "\
import mmap, sys, time
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
for at in range(0, len(data), 1 << 20):
    sum(data[at:at + (1 << 20):4096])
    # It computes.
    time.sleep(0.002)
";
    let (_storage, file) = flat_on(&["--latency=1ms", "--bandwidth=800M"]);
    let reader = Program::new(["python3".as_ref(), "-c".as_ref(), READ.as_ref(), file.as_os_str()]);
    let (left, report) = reader.under(&["--cache-limit=64M", "--size=8M", "--distance=1M"]);
    assert!(left.status.success(), "{left:?}");
    assert!(report.trips() > 0, "{:#}", report.0);
    assert_holds_what_it_tells(&file, &report);
}

const MIB: u64 = 1 << 20;

/// A flat file of 192 MiB on such storage.
fn flat_on(storage: &[&str]) -> (SlowStorage, PathBuf) {
    let storage = SlowStorage::mount(scratch(), storage);
    flat_file(192);
    let file = storage.path().join("flat-192M");
    (storage, file)
}

/// What was fetched and not dropped is there, and no more than that and what the reader brought in by itself where it was
/// ahead.
fn assert_holds_what_it_tells(file: &Path, report: &Report) {
    let told = report.of_file("fetched") - report.of_file("dropped");
    let (there, own) = (cached(file), report.of_file("cached"));
    let allowed = told.saturating_sub(16 * MIB)..told + own + 16 * MIB;
    assert!(allowed.contains(&there), "{} of {} MiB are there: {:#}", there / MIB, told / MIB, report.0);
}

/// Bytes of the file in the page cache.
fn cached(file: &Path) -> u64 {
    let told = Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).arg(file).output();
    let told = String::from_utf8(told.expect("fincore (util-linux)").stdout).expect("a number");
    told.trim().parse().expect("a number")
}

/// Pages that were cached before are somebody's: they stay, whatever the limit, and also those beside a page that was not.
#[test]
fn only_what_was_fetched_is_dropped() {
    let storage = SlowStorage::mount(scratch(), &["--latency=1ms"]);
    flat_file(64);
    let file = storage.path().join("flat-64M");
    fs::read(&file).unwrap();
    let opened = fs::File::open(&file).unwrap();
    for hole in (0..64 * MIB).step_by(256 << 10) {
        let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
        nix::fcntl::posix_fadvise(&opened, hole as i64, 16 << 10, advice).unwrap();
    }
    let holes = 64 * MIB - cached(&file);
    if holes < MIB {
        return lacking("a page cache that drops single pages");
    }
    let before = storage.bytes_of("flat-64M");
    let reader = Program::new([program("map-reader").into_os_string(), file.clone().into_os_string()]);
    let (left, report) = reader.under(&["--cache-limit=1M", "--size=8M", "--distance=1M"]);
    assert!(left.status.success());
    assert!(report.of_file("cached") > 32 << 20, "{:#}", report.0);
    assert!(report.of_file("fetched") <= holes + MIB, "{:#}", report.0);
    fs::read(&file).unwrap();
    // What was missing, once for the reader and, where it was dropped, once more. The kernel may drop some by itself.
    let again = storage.bytes_of("flat-64M").zip(before).map(|(after, before)| after - before);
    assert!(again.is_none_or(|again| again <= 2 * holes + MIB), "{again:?} bytes are fetched again: {:#}", report.0);
}

/// Where nobody tells what is cached, it tells that nothing has to be waited for.
#[test]
fn what_others_cached_stays_also_where_nobody_tells() {
    if !nix::unistd::geteuid().is_root() {
        return lacking("root's rights, to become someone who may not ask what is cached");
    }
    let storage = SlowStorage::mount(scratch(), &["--latency=2ms", "--allow-other"]);
    flat_file(64);
    let file = storage.path().join("flat-64M");
    let read_second_half = || {
        let mut half = vec![0; 32 << 20];
        fs::File::open(&file).unwrap().read_exact_at(&mut half, 32 << 20).unwrap();
        storage.bytes_of("flat-64M")
    };
    if read_second_half().is_none() {
        return;
    }
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (supervisor, reader) = (folder.path().join("precache-run"), folder.path().join("map-reader"));
    fs::copy(precache_run(), &supervisor).unwrap();
    fs::copy(program("map-reader"), &reader).unwrap();
    let report = folder.path().join("report.json");
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    // Threads that populate mappings of one process wait for each other now and then.
    let options = ["-q", "--engine=pread", "--cache-limit=1M", "--size=8M", "--distance=1M", "--report"];
    let mut command = Command::new(as_nobody[0]);
    command.args(&as_nobody[1..]).arg(supervisor).args(options).arg(&report).arg("--").arg(reader).arg(&file);
    assert!(command.status().expect("setpriv").success());
    let report = Report(serde_json::from_slice(&fs::read(report).unwrap()).unwrap());
    assert_eq!(report.file()["residency"], "unknown", "{:#}", report.0);
    assert!(report.of_file("dropped") > 16 * MIB, "{:#}", report.0);
    let before = storage.bytes_of("flat-64M");
    let again = read_second_half().zip(before).map(|(after, before)| after - before);
    // FUSE asks for a file's attributes now and then, in the middle of a read.
    assert!(again.is_none_or(|again| again < 8 * MIB), "{again:?} bytes are fetched again: {:#}", report.0);
}

/// A memory cgroup, gone when this drops.
struct Group(PathBuf);

impl Group {
    fn with_limit(bytes: u64) -> Option<Self> {
        let made = groups().and_then(|(parent, limit)| Self::new(&parent, limit, bytes));
        if made.is_none() {
            lacking("right to make a memory cgroup");
        }
        made
    }

    /// Of version 2, with the limit that throttles. Where groups are of version 1, `make test-machine` boots a kernel with them.
    fn throttled_at(bytes: u64) -> Option<Self> {
        let (parent, _) = groups().filter(|(_, limit)| *limit == "memory.max")?;
        let made = Self::new(&parent, "memory.high", bytes);
        if made.is_none() {
            lacking("right to make a memory cgroup of version 2");
        }
        made
    }

    fn new(parent: &Path, limit: &str, bytes: u64) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let folder = parent.join(format!("precache-test-{}-{number}-{limit}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        // Dropped where it cannot have the limit.
        let group = Self(folder);
        fs::write(group.0.join(limit), bytes.to_string()).ok().map(|()| group)
    }

    /// Processes of the group that the kernel has killed for want of memory.
    fn kills(&self) -> u64 {
        let told = ["memory.oom_control", "memory.events"].map(|file| fs::read_to_string(self.0.join(file)));
        let told = told.into_iter().find_map(Result::ok).expect("the kernel tells");
        let kills = told.lines().find_map(|line| line.strip_prefix("oom_kill ")).expect("it counts them (Linux 4.13)");
        kills.trim().parse().expect("a number")
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

/// The folder that new groups are made in, and the name of their limit: cgroups of version 1, below the own one where that
/// is seen, or of version 2, below the root, for a group that has processes hands nothing on (cgroups(7), "no internal
/// processes").
fn groups() -> Option<(PathBuf, &'static str)> {
    let own = fs::read_to_string("/proc/self/cgroup").expect("the kernel tells");
    if let Some((_, path)) = own.lines().find_map(|line| line.split_once(":memory:/")) {
        let root = PathBuf::from("/sys/fs/cgroup/memory");
        return Some((if root.join(path).is_dir() { root.join(path) } else { root }, "memory.limit_in_bytes"));
    }
    let root = PathBuf::from("/sys/fs/cgroup");
    fs::write(root.join("cgroup.subtree_control"), "+memory").ok()?;
    Some((root, "memory.max"))
}
