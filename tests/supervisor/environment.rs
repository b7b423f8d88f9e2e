//! Arguments and environment are the user's, but for the two variables that injecting takes.

use std::collections::BTreeMap;
use std::process::Command;

use crate::stage::{finish, supervisor};

/// Arguments and environment as `env -0` prints them.
fn environment(command: &mut Command) -> Vec<String> {
    let finished = finish(command.args(["env", "-0"]));
    assert!(finished.status.success(), "{finished:?}");
    finished.stdout.split_terminator('\0').map(str::to_owned).collect()
}

fn prepared() -> Command {
    let mut command = supervisor();
    command.env_clear();
    command
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("XDG_CACHE_HOME", std::env::temp_dir())
        .env("EMPTY", "")
        .env("LINES", "a\nb=c")
        .env("PRECACHE_SIZE", "64M")
        .env("PRECACHE_QUIET", "true");
    command
}

#[test]
fn arguments_are_the_users() {
    let words = ["", "a b", "--size", "-q", "--", "*", "ä\n", "'\""];
    let mut command = supervisor();
    let finished = finish(command.args(["-q", "--", "printf", "%s\\0"]).args(words));
    assert_eq!(finished.stdout, words.join("\0") + "\0");
}

#[test]
fn the_programs_options_are_its_own() {
    let finished = finish(supervisor().args(["-q", "echo", "--size", "0", "--mode", "-v"]));
    assert_eq!(finished.stdout, "--size 0 --mode -v\n");
}

#[test]
fn the_environment_is_inherited() {
    let alone = environment(prepared().args(["--mode", "off"]));
    assert!(alone.contains(&"PRECACHE_SIZE=64M".to_owned()), "{alone:?}");
    let mut supervised = environment(&mut prepared());
    supervised.retain(|entry| !is_ours(entry));
    assert_eq!(supervised, alone);
}

fn is_ours(entry: &str) -> bool {
    entry.starts_with("LD_PRELOAD=") || entry.starts_with("PRECACHE_READER=")
}

/// The value of a variable of a program that is injected.
fn value(command: &mut Command, name: &str) -> String {
    let entries = environment(command);
    let prefix = format!("{name}=");
    let values: Vec<_> = entries.iter().filter_map(|entry| entry.strip_prefix(&prefix)).collect();
    let [value] = values[..] else { panic!("one {name} in {entries:?}") };
    value.to_owned()
}

#[test]
fn libraries_to_preload_keep_their_order() {
    let ours = value(&mut prepared(), "LD_PRELOAD");
    assert!(ours.ends_with("/libprecache_inject.so"), "{ours}");
    // Libraries of no effect, which every machine has.
    for existing in ["libm.so.6", "libm.so.6:libdl.so.2", "libm.so.6 libdl.so.2"] {
        let both = value(prepared().env("LD_PRELOAD", existing), "LD_PRELOAD");
        assert_eq!(both, format!("{ours}:{existing}"));
    }
    assert_eq!(value(prepared().env("LD_PRELOAD", ""), "LD_PRELOAD"), ours);
    assert_eq!(value(prepared().env("LD_PRELOAD", &ours), "LD_PRELOAD"), ours);
}

#[test]
fn the_reader_is_told_the_options() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let file = folder.join("train.mdb");
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&file, folder.join("link")).unwrap();
    let mut command = prepared();
    command.current_dir(&folder).args([
        "--distance=4M",
        "--threshold=60",
        "--min-file=1M",
        "--protect=guard",
        "--mode=detect",
        "--data=*.mdb",
        "--data=/a:b/*",
        "--exclude=x[!y]",
        "--range=link:1M..2M",
        "--range=train.mdb:0..4096",
    ]);
    let settings = value(&mut command, "PRECACHE_READER");
    let mut values = BTreeMap::<_, Vec<_>>::new();
    assert!(!settings.contains('\n'), "{settings:?}");
    for line in settings.split_terminator('\u{1e}') {
        let (key, value) = line.split_once('=').unwrap();
        values.entry(key).or_default().push(value);
    }
    for (key, expected) in [
        ("distance", vec!["4194304"]),
        ("min_file", vec!["1048576"]),
        ("protect", vec!["guard"]),
        ("private_lock", vec!["0"]),
        ("data", vec!["*.mdb", "/a:b/*"]),
        ("exclude", vec!["x[!y]"]),
        ("range", vec![&*format!("{}:1048576..2097152", file.display()), &*format!("{}:0..4096", file.display())]),
    ] {
        assert_eq!(values.get(key), Some(&expected), "{key} in {settings}");
    }
    assert!(values["socket"][0].len() > 1 && !values["socket"][0].starts_with('\0'));
    values["session"][0].parse::<u64>().unwrap();
    values["supervisor"][0].parse::<u32>().unwrap();
}

/// With the flag the variable does not count, not even if it is unusable; without it it does.
#[test]
fn flags_beat_variables() {
    let options = [
        ("DISTANCE", "--distance=2M"),
        ("SIZE", "--size=64M"),
        ("THRESHOLD", "--threshold=60"),
        ("DATA", "--data=e*"),
        ("EXCLUDE", "--exclude=e*"),
        ("MIN_FILE", "--min-file=1M"),
        ("RANGE", "--range=e:0..1M"),
        ("MODE", "--mode=detect"),
        ("PROTECT", "--protect=guard"),
        ("POPULATE", "--populate=on"),
        ("JOBS", "--jobs=3"),
        ("MAX_INFLIGHT", "--max-inflight=9"),
        ("ENGINE", "--engine=pread"),
        ("CACHE_LIMIT", "--cache-limit=1G"),
        ("PRIVATE_LOCK", "--private-lock=false"),
        ("QUIET", "--quiet=true"),
        ("VERBOSE", "--verbose=false"),
    ];
    for (variable, flag) in options {
        let variable = format!("PRECACHE_{variable}");
        let set = |value: &str| {
            let mut command = supervisor();
            command.env("PRECACHE_QUIET", "1").env(&variable, value);
            command
        };
        let unusable = "[";
        let by_flag = finish(set(unusable).args([flag, "true"]));
        assert_eq!(by_flag.status.code(), Some(0), "{flag}: {by_flag:?}");
        let by_variable = finish(set(unusable).arg("true"));
        assert_eq!(by_variable.status.code(), Some(2), "{variable}: {by_variable:?}");
        assert!(by_variable.stderr.contains(&variable), "{variable}: {by_variable:?}");
        let by_nothing = finish(set("").arg("true"));
        assert_eq!(by_nothing.status.code(), Some(0), "{variable}: {by_nothing:?}");
    }
    let loud = finish(supervisor().env("PRECACHE_QUIET", "1").args(["--quiet=false", "true"]));
    assert!(loud.stderr.contains("nothing accelerated"), "{loud:?}");
    let report = tempfile::NamedTempFile::new().unwrap();
    let destination = ["--report".as_ref(), report.path().as_os_str()];
    let both = finish(supervisor().env("PRECACHE_REPORT", "/proc/absent/report").args(destination).arg("true"));
    assert!(!both.stderr.contains("/proc/absent"), "{both:?}");
    assert!(std::fs::metadata(report.path()).unwrap().len() > 0);
}
