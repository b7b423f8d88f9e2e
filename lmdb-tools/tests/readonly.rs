//! No command writes: neither the data file nor the lock file of a database is ever opened for it.

mod support;

use std::fs;
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
    let before = state(&db);
    let path = db.to_str().unwrap();
    let log = dir.path().join("log");
    let out = dir.path().join("out");
    let map = dir.path().join("map");
    let commands: [&[&str]; 9] = [
        &["lmdb", "info", path],
        &["lmdb", "map", path],
        &["lmdb", "map", "-o", map.to_str().unwrap(), path],
        &["lmdb", "map", "--binary", "-o", map.to_str().unwrap(), path],
        &["lmdb", "ranges", "-n", "4", path],
        &["lmdb", "doctor", path],
        &["stripe-advise", path, "--batch-size", "8"],
        &["lockfile", "check", "--watch", "0", path],
        &["lockfile", "replicate", path, out.to_str().unwrap(), "-n", "2", "--assume-read-only"],
    ];
    for command in commands {
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-o",
            log.to_str().unwrap(),
            "-e",
            "trace=open,openat,openat2,creat,truncate,ftruncate,rename",
        ]);
        let output = strace.arg(env!("CARGO_BIN_EXE_precache-lmdb")).args(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        let calls = fs::read_to_string(&log).unwrap();
        assert!(
            calls.contains("data.mdb") || command[1] == "replicate",
            "{command:?} should have opened the data file"
        );
        let writes = |call: &&str| {
            ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "truncate("].iter().any(|how| call.contains(how))
        };
        let in_db = format!("\"{path}/");
        let bad: Vec<_> = calls.lines().filter(|call| call.contains(&in_db) && writes(call)).collect();
        assert!(bad.is_empty(), "{command:?}: {bad:?}");
        assert_eq!(state(&db), before, "{command:?}");
    }
}
