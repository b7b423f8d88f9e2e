//! On files that true kernels have told (recorded/, whose first lines name them), and on some that are made by hand after the
//! kernel's documentation, for what neither of these machines has.

use super::*;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// All that is cached, and nothing of it where much has been evicted.
const ALL: DataPages = DataPages { cached: u64::MAX, mapped: 0, displaced: u64::MAX };
const NONE: DataPages = DataPages { cached: 0, ..ALL };

/// A machine with these files.
fn machine(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

/// In a job's group below a batch system's, limited to 128 MiB, of which the job itself takes 92 and 8 are shared memory.
const RECORDED_ONE: &str = include_str!("recorded/one.txt");
/// The same as a service in a slice, which is throttled from 128 MiB on, and limited to 192.
const RECORDED_TWO: &str = include_str!("recorded/two.txt");

/// The machine as it was then, `calm` or `pressed`.
fn recorded(text: &'static str, state: &str) -> TempDir {
    let states = text.split("==== ").find_map(|part| part.strip_prefix(state));
    let files = states.expect("such a state").split("\n== ").skip(1);
    let files: Vec<_> = files.map(|file| file.split_once('\n').expect("its content")).collect();
    machine(&files)
}

/// The number in this line of a file of the recorded machine.
fn told(root: &TempDir, path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(root.path().join("sys/fs/cgroup").join(path)).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

const MEMINFO: (&str, &str) =
    ("proc/meminfo", "MemTotal:       24684900 kB\nMemFree:        13000000 kB\nMemAvailable:   20000000 kB\n");

/// By hand. A batch system with version 1: a job's group below a user's.
const ONE: [(&str, &str); 9] = [
    MEMINFO,
    ("proc/self/cgroup", "9:name=systemd:/\n4:cpuset,memory:/slurm/job_1\n0::/\n"),
    ("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "536870912\n"),
    ("sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes", "419430400\n"),
    (
        "sys/fs/cgroup/memory/slurm/job_1/memory.stat",
        "cache 0\nrss 11628544\ntotal_cache 335544320\ntotal_rss 83886080\ntotal_shmem 20971520\n",
    ),
    ("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "9223372036854771712\n"),
    ("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "419430400\n"),
    ("sys/fs/cgroup/memory/slurm/memory.stat", "total_cache 0\n"),
    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
];

/// By hand. systemd with version 2: a service in a slice that has the tighter limit.
const TWO: [(&str, &str); 7] = [
    MEMINFO,
    ("proc/self/cgroup", "0::/user.slice/job.service\n"),
    ("sys/fs/cgroup/user.slice/job.service/memory.max", "max\n"),
    ("sys/fs/cgroup/user.slice/job.service/memory.current", "1000000\n"),
    ("sys/fs/cgroup/user.slice/memory.max", "1073741824\n"),
    ("sys/fs/cgroup/user.slice/memory.high", "805306368\n"),
    ("sys/fs/cgroup/user.slice/memory.current", "314572800\n"),
];
const TWO_STAT: (&str, &str) =
    ("sys/fs/cgroup/user.slice/memory.stat", "anon 104857600\nfile 220200960\nshmem 10485760\n");

fn without_slack(bytes: u64) -> u64 {
    bytes - bytes / SLACK
}

/// What files take of the limit, and what is free; the group's tasks that wait say nothing here, as their kernel tells of all
/// tasks together.
#[test]
fn a_recorded_group_of_version_1_is_bounded() {
    for state in ["calm", "pressed"] {
        let root = recorded(RECORDED_ONE, state);
        let told = |file, name| told(&root, &format!("memory/batch/job/{file}"), name);
        let files = told("memory.stat", "total_cache ") - told("memory.stat", "total_shmem ");
        let room = (128 * MIB) - told("memory.usage_in_bytes", "") + files;
        assert!((4..28).contains(&(room / MIB)), "{} MiB", room / MIB);
        assert_eq!(Memory::at(root.path()).budget(ALL), without_slack(room), "{state}");
        let in_use = told("memory.stat", "total_active_file ").min(told("memory.stat", "total_mapped_file "));
        assert!(in_use < room / 8 && (in_use > 0 || state != "calm"));
        assert_eq!(Memory::at(root.path()).budget(NONE), without_slack(room - in_use), "{state}");
    }
}

/// The limit that throttles is the tighter one, and tasks of the group that wait take their share.
#[test]
fn a_recorded_group_of_version_2_is_bounded() {
    for (state, share) in [("calm", 1.0), ("pressed", 0.75)] {
        let root = recorded(RECORDED_TWO, state);
        let told = |file, name| told(&root, &format!("user.slice/{file}"), name);
        let files = told("memory.stat", "file ") - told("memory.stat", "shmem ");
        let room = (128 * MIB) - told("memory.current", "") + files;
        assert!((4..28).contains(&(room / MIB)), "{} MiB", room / MIB);
        let expected = (without_slack(room) as f64 * share) as u64;
        assert_eq!(Memory::at(root.path()).budget(ALL), expected, "{state}");
        let in_use = told("memory.stat", "active_file ").min(told("memory.stat", "file_mapped ")).min(room / 8);
        assert!(in_use > 0);
        let expected = (without_slack(room - in_use) as f64 * share) as u64;
        assert_eq!(Memory::at(root.path()).budget(NONE), expected, "{state}");
    }
}

#[test]
fn version_1_counts_what_cannot_be_reclaimed_against_the_limit() {
    // 400 MiB are used, of which 300 are page cache of files: 412 of 512 are left for it.
    let root = machine(&ONE);
    assert_eq!(Memory::at(root.path()).budget(ALL), without_slack(412 * MIB));
}

#[test]
fn version_2_takes_the_tightest_limit_on_the_way_up() {
    let root = machine(&[&TWO[..], &[TWO_STAT]].concat());
    assert_eq!(Memory::at(root.path()).budget(ALL), without_slack((768 - 100) * MIB));
}

/// Who shares an optimizer: the tasks of a job, of which each has a group of its own without a limit.
#[test]
fn the_limit_above_a_group_tells_whose_memory_it_is() {
    let task = |own: &str, limit: &str| {
        let root = machine(&[
            ("proc/self/cgroup", &format!("0::/job_1/{own}\n")),
            ("sys/fs/cgroup/job_1/memory.max", limit),
            (&format!("sys/fs/cgroup/job_1/{own}/memory.max"), "max\n"),
        ]);
        let domain =
            Memory::at(root.path()).domain().map(|folder| folder.strip_prefix(root.path()).unwrap().to_owned());
        domain.unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(task("task_0", "1073741824\n"), "sys/fs/cgroup/job_1");
    assert_eq!(task("task_1", "1073741824\n"), "sys/fs/cgroup/job_1");
    assert_eq!(task("task_1", "max\n"), "sys/fs/cgroup");
    let own = |files: &[_]| {
        let root = machine(files);
        Memory::at(root.path()).domain().unwrap().strip_prefix(root.path()).unwrap().to_owned()
    };
    let elsewhere = machine(&[("proc/self/cgroup", "0::/job_2\n"), ("sys/fs/cgroup/memory.max", "1073741824\n")]);
    assert_eq!(Memory::at(elsewhere.path()).domain(), Some(Path::new("job_2")));
    assert_eq!(own(&ONE), Path::new("sys/fs/cgroup/memory/slurm/job_1"));
    assert_eq!(own(&TWO), Path::new("sys/fs/cgroup/user.slice"));
}

#[test]
fn a_container_sees_its_own_group_as_the_root() {
    let root = machine(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/kubepods/pod1/container\n"),
        ("sys/fs/cgroup/memory.max", "104857600\n"),
        ("sys/fs/cgroup/memory.current", "0\n"),
        ("sys/fs/cgroup/memory.stat", "file 0\n"),
    ]);
    assert_eq!(Memory::at(root.path()).budget(ALL), without_slack(100 * MIB));
}

#[test]
fn without_limits_the_system_bounds() {
    let root = machine(&[MEMINFO]);
    assert_eq!(Memory::at(root.path()).budget(ALL), without_slack(20_000_000 << 10));
    assert_eq!(Memory::at(Path::new("/nonexistent")).budget(ALL), without_slack(u64::MAX));
}

#[test]
fn pressure_takes_a_share() {
    for (ten, share) in [("0.12", 1.0), ("12.00", 0.75), ("55.40", 0.5)] {
        let pressure = format!("some avg10={ten} avg60=0.00 avg300=0.08 total=2205828\nfull avg10=0.00\n");
        let root = machine(&[MEMINFO, ("proc/pressure/memory", &pressure)]);
        let expected = (without_slack(20_000_000 << 10) as f64 * share) as u64;
        assert_eq!(Memory::at(root.path()).budget(ALL), expected, "{ten}");
    }
}

/// Within a limit that is tighter than what the system has, the system's tasks say nothing; those of the group do.
#[test]
fn pressure_on_others_takes_nothing() {
    const WAITING: &str = "some avg10=55.40 avg60=0.00 avg300=0.08 total=2205828\n";
    let root = machine(&[&ONE[..], &[("proc/pressure/memory", WAITING)]].concat());
    assert_eq!(Memory::at(root.path()).budget(ALL), without_slack(412 * MIB));
    // As the kernel has it, those of the groups below the limit are in it.
    let own = ("sys/fs/cgroup/user.slice/memory.pressure", WAITING);
    let root = machine(&[&TWO[..], &[TWO_STAT, own]].concat());
    assert_eq!(Memory::at(root.path()).budget(ALL), without_slack((768 - 100) * MIB) / 2);
}

/// What is not known to be of data files is in use by programs as far as it is active and mapped, and takes as much as the kernel has
/// evicted, and an eighth at most.
#[test]
fn what_programs_have_in_use_takes_its_room() {
    let group = |prefix, active, mapped| {
        let [active, mapped] = [active, mapped].map(|mib| mib * MIB);
        let stat = format!("{}{prefix}active_file {active}\n{prefix}mapped_file {mapped}\n", ONE[4].1);
        machine(&[&ONE[..], &[(ONE[4].0, &stat)]].concat())
    };
    let room = |root: &TempDir, cached, mapped| {
        Memory::at(root.path()).budget(DataPages { cached: cached * MIB, mapped: mapped * MIB, ..ALL })
    };
    let is = |mib| without_slack(mib * MIB);
    // Of 300 MiB of files.
    for (active, mapped) in [(50, 250), (250, 50)] {
        let root = group("total_", active, mapped);
        let rooms = [300, 290, 250, 0].map(|cached| room(&root, cached, 0));
        assert_eq!(rooms, [412, 402, 362, 362].map(is), "{active} active, {mapped} mapped");
    }
    let root = group("total_", 290, 280);
    let rooms = [280, 270, 240, 300].map(|mapped| room(&root, 250, mapped));
    assert_eq!(rooms, [412, 402, 372, 412].map(is), "what is known to be mapped is no program's");
    for (displaced, left) in [(0, 412), (7 * MIB, 405)] {
        let data = DataPages { cached: 250 * MIB, displaced, ..ALL };
        assert_eq!(Memory::at(root.path()).budget(data), is(left), "{displaced} bytes were evicted");
    }
    assert_eq!(room(&group("", 50, 50), 0, 0), is(412), "what is below counts as well");
    let stat = TWO_STAT.1.to_owned() + "inactive_file 10485760\nactive_file 199229440\nfile_mapped 199229440\n";
    let root = machine(&[&TWO[..], &[(TWO_STAT.0, &stat)]].concat());
    assert_eq!(room(&root, 195, 0), is(668 - 5));
    assert_eq!(room(&root, 0, 0), without_slack(668 * MIB - 668 * MIB / 8));
}

/// The limit is read anew each time.
#[test]
fn a_limit_that_changes_is_followed() {
    let root = machine(&ONE);
    let memory = Memory::at(root.path());
    let before = memory.budget(ALL);
    fs::write(root.path().join(ONE[2].0), "268435456\n").unwrap();
    assert_eq!(memory.budget(ALL), without_slack(156 * MIB));
    assert!(memory.budget(ALL) < before);
}
