//! What stands in the way of a walk: little address space, an output that takes no more, a writer.

mod support;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use support::*;

#[test]
fn too_little_address_space_is_named() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 10, 10, false);
    let tool = env!("CARGO_BIN_EXE_precache-lmdb");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 2000000; exec \"$0\" lmdb info \"$1\"", tool, db.to_str().unwrap()])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("`ulimit -v unlimited`"), "{error}");
}

/// Where a user may have few processes, which threads count as: the program, the child that walks, and what is left for
/// reading ahead of the walk.
#[test]
fn as_many_threads_as_there_may_be_are_enough() {
    if !have_py_lmdb() || !is_root() || !have("prlimit", &["--version"]) {
        return;
    }
    let dir = directory();
    let (db, tool) = (dir.path().join("db"), for_others(dir.path()));
    make(&db, 50_000, 100, false);
    let expected = succeed(&["lmdb", "info", "--json", db.to_str().unwrap()]);
    for processes in [2, 5] {
        let mut few = Command::new("prlimit");
        // A user who has no other processes.
        few.arg(format!("--nproc={processes}")).args([
            "setpriv",
            "--reuid=61234",
            "--regid=61234",
            "--clear-groups",
            "--",
        ]);
        let output = few.arg(&tool).args(["lmdb", "info", "--json"]).arg(&db).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{processes}: {output:?}");
    }
}

/// A reader who has seen enough is no error; a full disk is one. Neither is a panic.
#[test]
fn stdout_that_takes_no_more() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let (db, out) = (dir.path().join("db"), dir.path().join("out"));
    make(&db, 20_000, 100, false);
    let (db, out) = (db.to_str().unwrap(), out.to_str().unwrap());
    succeed(&["lockfile", "replicate", db, out, "-n", "1", "--assume-read-only"]);
    let commands: [&[&str]; 9] = [
        &["lmdb", "map", db],
        &["lmdb", "map", "--json", db],
        &["lmdb", "map", "--binary", db],
        &["lmdb", "ranges", "--json", "-n", "5000", db],
        &["lmdb", "info", "--json", db],
        &["lmdb", "doctor", "--json", db],
        &["stripe-advise", db, "--batch-size", "8", "--json"],
        &["lockfile", "check", "--watch", "0", "--json", db],
        &["lockfile", "rank-dir", out, "--rank", "0"],
    ];
    for command in commands {
        let (reading, writing) = std::io::pipe().unwrap();
        drop(reading);
        let closed = tool().args(command).stdout(writing).output().unwrap();
        assert!(closed.status.success() && closed.stderr.is_empty(), "{command:?}: {closed:?}");
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let full = tool().args(command).stdout(full).output().unwrap();
        let error = String::from_utf8(full.stderr).unwrap();
        let expected = if command[1] == "check" { 3 } else { 1 };
        assert_eq!(full.status.code(), Some(expected), "{command:?}: {error}");
        assert!(error.contains("No space left") && error.lines().count() == 1, "{command:?}: {error}");
    }
}

/// A pipe that nobody reads yet holds the walk up while a writer commits.
#[test]
fn a_writer_during_the_walk_is_told_of() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 20_000, 100, false);
    let map = |write: bool| {
        let mut map = tool();
        map.args(["lmdb", "map", db.to_str().unwrap()]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut map = map.spawn().unwrap();
        let mut begun = [0; 1];
        map.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
        if write {
            make(&db, 1, 1, true);
        }
        map.wait_with_output().unwrap()
    };
    let undisturbed = map(false);
    assert!(undisturbed.status.success() && undisturbed.stderr.is_empty(), "{undisturbed:?}");
    let warning = String::from_utf8(map(true).stderr).unwrap();
    assert!(warning.contains("a writer committed transaction 3 while transaction 2 was being read"), "{warning}");
}
