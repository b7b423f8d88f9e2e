//! No command writes: neither the data file nor the lock file of a database is ever opened for it.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::*;

#[test]
fn strace_sees_no_open_for_writing() {
    if !have_py_lmdb() || !have("strace", &["-f", "-e", "trace=openat", "true"]) {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 3000, 3000, false);
    opens_nothing_for_writing(&db, &["data.mdb", "lock.mdb"]);
    // The other convention (MDB_NOSUBDIR), in a directory of its own.
    let flat = dir.path().join("flat");
    fs::create_dir(&flat).unwrap();
    fs::rename(db.join("data.mdb"), flat.join("train.mdb")).unwrap();
    fs::rename(db.join("lock.mdb"), flat.join("train.mdb-lock")).unwrap();
    opens_nothing_for_writing(&flat.join("train.mdb"), &["train.mdb", "train.mdb-lock"]);
}

/// Nothing of the database at `path`, whose `files` are all that is in its directory.
fn opens_nothing_for_writing(path: &Path, files: &[&str]) {
    let within = if path.is_dir() { path } else { path.parent().unwrap() };
    assert_eq!(names(within), files.iter().map(|name| name.to_string()).collect());
    let before = state(within);
    let dir = directory();
    let path = path.to_str().unwrap();
    let log = dir.path().join("log");
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    let map = dir.path().join("map");
    let map = map.to_str().unwrap();
    let commands: [&[&str]; 12] = [
        &["lmdb", "info", path],
        &["lmdb", "map", path],
        &["lmdb", "map", "--json", path],
        &["lmdb", "map", "-o", map, path],
        &["lmdb", "map", "--binary", "-o", map, path],
        &["lmdb", "ranges", "-n", "4", path],
        &["lmdb", "doctor", path],
        &["stripe-advise", path, "--batch-size", "8"],
        &["lockfile", "check", "--watch", "0", path],
        &["lockfile", "replicate", path, out, "-n", "2", "--assume-read-only"],
        &["lockfile", "rank-dir", out, "--rank", "1"],
        &["lockfile", "remove", out],
    ];
    for command in commands {
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-o",
            log.to_str().unwrap(),
            "-e",
            "trace=open,openat,openat2,creat,truncate,ftruncate,rename,unlink,unlinkat,chmod,fchmodat,chown,fchownat",
        ]);
        let output = strace.arg(env!("CARGO_BIN_EXE_precache-lmdb")).args(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        let calls = fs::read_to_string(&log).unwrap();
        let opens = calls.contains(files[0]) || ["replicate", "rank-dir", "remove"].contains(&command[1]);
        assert!(opens, "{command:?} should have opened the data file");
        let ways =
            ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "truncate(", "chmod(", "chmodat(", "chown(", "chownat("];
        let writes = |call: &str| ways.iter().any(|way| call.contains(way));
        // By its own path, or by that of a replica's link, which alone may be deleted.
        let (own, of_data) = (format!("\"{}/", within.display()), format!("/{}\"", files[0]));
        let is_bad = |call: &&str| {
            call.contains(&own) && (writes(call) || call.contains("unlink")) || call.contains(&of_data) && writes(call)
        };
        let bad: Vec<_> = calls.lines().filter(is_bad).collect();
        assert!(bad.is_empty(), "{command:?}: {bad:?}");
        assert_eq!(state(within), before, "{command:?}");
    }
}
