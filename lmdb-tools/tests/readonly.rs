//! No command writes: neither the data file nor the lock file of a database is ever opened for it.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

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

/// Names, contents and times of modification.
fn state(db: &Path) -> Vec<(String, SystemTime, Vec<u8>)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let modified = entry.metadata().unwrap().modified().unwrap();
        (entry.file_name().into_string().unwrap(), modified, fs::read(entry.path()).unwrap())
    };
    let mut state: Vec<_> = fs::read_dir(db).unwrap().map(entry).collect();
    state.sort();
    state
}
