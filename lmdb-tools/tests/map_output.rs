//! `lmdb map -o FILE`: complete or not there, whatever happens meanwhile, and never a file of the database.

#[path = "support/slowfs.rs"]
mod slowfs;
mod support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use support::*;

#[test]
fn a_map_never_replaces_the_database() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    let db = at("db");
    make(&db, 100, 3000, false);
    std::os::unix::fs::symlink(db.join("data.mdb"), at("symbolic")).unwrap();
    fs::hard_link(db.join("data.mdb"), at("hard")).unwrap();
    let before = state(&db);
    let map = |db: &Path, output: &Path| {
        vec!["lmdb", "map", db.to_str().unwrap(), "-o", output.to_str().unwrap()]
            .into_iter()
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let refused = |db: &Path, output: &Path| {
        let args = map(db, output);
        let text = fail(&args.iter().map(String::as_str).collect::<Vec<_>>(), 1);
        assert!(text.contains("belongs to the database"), "{text}");
    };
    for output in ["db/data.mdb", "db/lock.mdb", "db/../db/data.mdb", "symbolic", "hard"] {
        refused(&db, &at(output));
        assert_eq!(state(&db), before, "{output}");
    }
    // Not even where there is no lock file yet.
    fs::remove_file(db.join("lock.mdb")).unwrap();
    refused(&db, &db.join("lock.mdb"));
    // A database that is a file by itself.
    fs::copy(at("hard"), at("file.mdb")).unwrap();
    refused(&at("file.mdb"), &at("file.mdb"));
    refused(&at("file.mdb"), &at("file.mdb-lock"));
    // Nor any other.
    let other = at("other");
    make(&other, 10, 10, false);
    let before = state(&other);
    for file in ["data.mdb", "lock.mdb"] {
        let output = other.join(file);
        let text = fail(&["lmdb", "map", db.to_str().unwrap(), "-o", output.to_str().unwrap()], 1);
        assert!(text.contains("an LMDB data file or lock file"), "{text}");
        assert_eq!(state(&other), before, "{file}");
    }
}

#[test]
fn a_map_is_complete_or_not_there() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 3000, 900, true);
    let out = directory();
    let output = out.path().join("map");
    fs::write(&output, "the old one").unwrap();
    let args = ["lmdb", "map", db.to_str().unwrap(), "-o", output.to_str().unwrap()];
    let data = fs::read(db.join("data.mdb")).unwrap();
    fs::write(db.join("data.mdb"), &data[..data.len() / 2]).unwrap();
    fail(&args, 1);
    assert_eq!(fs::read(&output).unwrap(), b"the old one");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1, "nothing is left of the map that failed");

    fs::write(db.join("data.mdb"), &data).unwrap();
    succeed(&args);
    assert_eq!(fs::read(&output).unwrap(), succeed(&args[..3]).as_bytes());
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    // Devices are written to and stay what they are.
    succeed(&[&args[..4], &["/dev/null"]].concat());
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn what_is_replaced_keeps_its_mode() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let (db, output) = (dir.path().join("db"), dir.path().join("map"));
    make(&db, 10, 10, false);
    let map = || {
        succeed(&["lmdb", "map", db.to_str().unwrap(), "-o", output.to_str().unwrap()]);
        let made = fs::metadata(&output).unwrap();
        (made.mode() & 0o777, made.ino())
    };
    let (_, first) = map();
    // More than most umasks leave to a new file.
    fs::set_permissions(&output, fs::Permissions::from_mode(0o666)).unwrap();
    let (mode, second) = map();
    assert_eq!(mode, 0o666);
    assert_ne!(first, second, "whoever reads the old one keeps it");
}

/// How a walk is ended before it is over.
type End = fn(&Child);

const ENDS: [(End, Signal); 4] = [
    (|tool| kill(pid(tool), Signal::SIGKILL).unwrap(), Signal::SIGKILL),
    (|tool| kill(pid(tool), Signal::SIGTERM).unwrap(), Signal::SIGTERM),
    // As Ctrl-C does.
    (|tool| killpg(pid(tool), Signal::SIGINT).unwrap(), Signal::SIGINT),
    (|tool| kill(pid(tool), Signal::SIGHUP).unwrap(), Signal::SIGHUP),
];

fn pid(tool: &Child) -> Pid {
    Pid::from_raw(tool.id() as i32)
}

/// Begins to map a database that takes many seconds to walk, ends it in the middle, and waits until nobody is left who could
/// write the map.
fn interrupted(db: &Path, output: &Path, end: End) -> std::process::ExitStatus {
    let mut tool = tool();
    tool.args(["lmdb", "map", db.to_str().unwrap(), "-o", output.to_str().unwrap()]);
    let mut tool = tool.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    while !has_begun_to_write(&tool, output.parent().unwrap()) {
        assert!(tool.try_wait().unwrap().is_none(), "over before it could be interrupted");
        std::thread::yield_now();
    }
    end(&tool);
    let status = tool.wait().unwrap();
    // The process that walks has it open, too.
    tool.stderr.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    status
}

/// Some of the map is written: the program has a file in this directory open, by name or without one, that is not empty.
fn has_begun_to_write(tool: &Child, directory: &Path) -> bool {
    let directory = directory.canonicalize().unwrap();
    let open =
        fs::read_dir(format!("/proc/{}/fd", tool.id())).into_iter().flatten().flatten().map(|entry| entry.path());
    open.filter(|entry| fs::read_link(entry).is_ok_and(|path| path.starts_with(&directory)))
        .filter_map(|entry| fs::metadata(entry).ok())
        .any(|file| file.is_file() && file.len() > 0)
}

/// A database on storage so slow that its map is never complete in time.
fn slow_database(dir: &Path) -> Option<slowfs::Mount> {
    let source = dir.join("source");
    fs::create_dir(&source).unwrap();
    make(&source.join("db"), 20_000, 4096, false);
    slowfs::mount(&source, &dir.join("mount"), &["--latency", "40ms", "--writable"])
}

#[test]
fn nothing_is_left_of_a_map_whose_maker_is_ended() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let Some(mount) = slow_database(dir.path()) else { return };
    let out = directory();
    for (end, signal) in ENDS {
        let status = interrupted(&mount.path.join("db"), &out.path().join("map"), end);
        assert_eq!(status.signal(), Some(signal as i32));
        assert_eq!(names(out.path()), [].into(), "{signal}");
    }
}

/// One that is ended before its child has looked for it leaves a child that must not take itself for a parent.
#[test]
fn a_child_whose_parent_has_gone_makes_no_map() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 10, 10, false);
    let out = directory();
    let map = out.path().join("map");
    // Not the parent of what this test starts.
    let gone = std::os::unix::process::parent_id().to_string();
    let mut orphan = tool();
    orphan.args(["lmdb", "map", db.to_str().unwrap(), "-o", map.to_str().unwrap()]).env("PRECACHE_LMDB_PARENT", gone);
    let output = orphan.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the process that wanted this walk is gone"),
        "{output:?}"
    );
    assert_eq!(names(out.path()), [].into());
}

/// slowfs has no files without a name: there the map has one while it is made, which only SIGKILL can leave behind.
#[test]
fn nothing_is_left_where_files_must_have_names() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let Some(mount) = slow_database(dir.path()) else { return };
    let out = mount.path.join("out");
    fs::create_dir(&out).unwrap();
    let map = out.join("map");
    fs::write(&map, "").unwrap();
    for (end, signal) in &ENDS[1..] {
        let status = interrupted(&mount.path.join("db"), &map, *end);
        assert_eq!(status.signal(), Some(*signal as i32));
        assert_eq!(names(&out), ["map".into()].into(), "{signal}");
    }
    // Where nothing interrupts it, it is made there as well.
    let small = dir.path().join("small");
    make(&small, 10, 10, false);
    succeed(&["lmdb", "map", small.to_str().unwrap(), "-o", map.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&map).unwrap(), succeed(&["lmdb", "map", small.to_str().unwrap()]));
    assert_eq!(names(&out), ["map".into()].into());
}
