//! The demo readers over a small data set: what they read, not how fast.

use std::path::Path;
use std::process::Command;

/// Runs a program of this crate and returns its standard output.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn make_lmdb(directory: &Path, seed: &str) {
    let directory = directory.to_str().unwrap();
    run(env!("CARGO_BIN_EXE_make-lmdb"), &[directory, "--records", "20", "--shape", "3x40x40", "--seed", seed]);
}

fn lmdb_reader(arguments: &[&str]) -> String {
    run(env!("CARGO_BIN_EXE_lmdb-reader"), arguments)
}

/// The sum of a field such as `records=` over all lines.
fn sum(output: &str, field: &str) -> u64 {
    output.split([' ', '\n']).filter_map(|word| word.strip_prefix(field)?.parse::<u64>().ok()).sum()
}

#[test]
fn ranks_read_every_record_once_in_both_patterns() {
    let directory = tempfile::tempdir().unwrap();
    make_lmdb(directory.path(), "1");
    let db = directory.path().to_str().unwrap();
    let alone = lmdb_reader(&[db]);
    assert_eq!(sum(&alone, "records="), 20);
    for pattern in ["contiguous", "skipping"] {
        let shared = lmdb_reader(&[db, "--processes", "3", "--pattern", pattern]);
        assert_eq!(shared.lines().count(), 3);
        assert_eq!(sum(&shared, "records="), 20, "{pattern}");
        assert_eq!(sum(&shared, "bytes="), sum(&alone, "bytes="), "{pattern}");
    }
    assert_eq!(lmdb_reader(&[db, "--no-lock", "--time"]), alone);
}

#[test]
fn the_end_of_each_epoch_is_told() {
    let directory = tempfile::tempdir().unwrap();
    make_lmdb(directory.path(), "1");
    let reader = Command::new(env!("CARGO_BIN_EXE_lmdb-reader"))
        .arg(directory.path())
        .args(["--epochs", "3", "--time"])
        .output();
    let told = String::from_utf8(reader.unwrap().stderr).unwrap();
    let epochs: Vec<&str> =
        told.lines().filter_map(|line| line.split("\"epoch\": ").nth(1)?.split(',').next()).collect();
    assert_eq!(epochs, ["1", "2", "3"], "{told}");
}

#[test]
fn the_same_seed_makes_the_same_data_set() {
    let [a, b, c] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    make_lmdb(a.path(), "1");
    make_lmdb(b.path(), "1");
    make_lmdb(c.path(), "2");
    let read = |directory: &tempfile::TempDir| lmdb_reader(&[directory.path().to_str().unwrap()]);
    assert_eq!(read(&a), read(&b));
    assert_ne!(read(&a), read(&c));
}

#[test]
fn test_phases_take_turns_with_the_training() {
    let [train, test] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    make_lmdb(train.path(), "1");
    make_lmdb(test.path(), "2");
    let (db, test_db) = (train.path().to_str().unwrap(), test.path().to_str().unwrap());
    // 40 records make 8 batches and 4 test phases: the last one begins the test database again.
    let phases = ["--batch", "5", "--epochs", "2", "--test-db", test_db, "--test-every", "2", "--test-records", "7"];
    let output = lmdb_reader(&[&[db], &phases[..]].concat());
    assert!(output.contains("records=40 ") && output.contains("test: records=28 "), "{output}");
}

#[test]
fn threads_and_forks_read_the_same_parts() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flat");
    let file = file.to_str().unwrap();
    run(env!("CARGO_BIN_EXE_make-lmdb"), &["--flat", file, "--size", "300001"]);
    let read = |arguments: &[&str]| run(env!("CARGO_BIN_EXE_map-reader"), &[&[file], arguments].concat());
    let forked = read(&["--fork", "3"]);
    assert_eq!(sum(&forked, "bytes="), 300_001);
    assert_eq!(forked, read(&["--threads", "3"]));
    assert_eq!(read(&[]), read(&["--private", "--populate", "--advise", "sequential"]));
    assert_ne!(read(&["--record", "4K"]), read(&["--record", "4K", "--backwards"]));
}
