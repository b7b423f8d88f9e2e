//! `lmdb ranges`: contiguous, equal, complete.

mod support;

use serde_json::Value;
use support::*;

fn ranges(db: &str, more: &[&str]) -> Vec<Value> {
    let text = succeed(&[&["lmdb", "ranges", "--json", db], more].concat());
    json(&text).as_array().unwrap().clone()
}

#[test]
fn ranges_cover_the_database_in_order() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let path = dir.path().join("db");
    make(&path, 1000, 10_000, false);
    let db = path.to_str().unwrap();
    for count in [1_u64, 3, 7, 64] {
        let ranges = ranges(db, &["-n", &count.to_string()]);
        assert_eq!(ranges.len() as u64, count);
        let (mut next, mut end) = (0, 0);
        for range in &ranges {
            let number = |field: &str| range[field].as_u64().unwrap();
            assert_eq!(range["first_key"], format!("{next:08}"));
            next += number("records");
            assert_eq!(range["last_key"], format!("{:08}", next - 1));
            assert!(number("start") >= end, "ranges of a database in key order do not overlap");
            end = number("end");
            assert!(number("bytes").abs_diff(10_000_000 / count) <= 10_000);
            let option = format!("--range {db}/data.mdb:{}..{}", range["start"], range["end"]);
            assert_eq!(range["option"], option);
        }
        assert_eq!(next, 1000);
    }
    assert!(!String::from_utf8(run(&["lmdb", "ranges", "-n", "8", db]).stderr).unwrap().contains("warning"));
}

#[test]
fn the_range_of_one_process() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let path = dir.path().join("db");
    make(&path, 100, 100, false);
    let db = path.to_str().unwrap();
    let all = ranges(db, &["-n", "4"]);
    assert_eq!(ranges(db, &["-n", "4", "--rank", "2"]), all[2..3]);
    let mut job = tool();
    job.args(["lmdb", "ranges", "--json", "--this-rank", db]);
    job.envs([("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")]);
    assert_eq!(json(&String::from_utf8(job.output().unwrap().stdout).unwrap()), serde_json::json!(all[3..4]));
    assert!(fail(&["lmdb", "ranges", "-n", "4", "--rank", "4", db], 2).contains("numbered from 0"));
    fail(&["lmdb", "ranges", db], 2);
    fail(&["lmdb", "ranges", "-n", "0", db], 2);
    // More ranges than records: some are empty, none is lost.
    let many = ranges(db, &["-n", "300"]);
    assert_eq!(many.iter().map(|range| range["records"].as_u64().unwrap()).sum::<u64>(), 100);
}

#[test]
fn a_shuffled_database_is_warned_of() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 2000, 5000, true);
    let output = run(&["lmdb", "ranges", "-n", "4", db.to_str().unwrap()]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warning.contains("not laid out in key order"), "{warning}");
    assert!(warning.contains("mdb_copy -c"));
}

/// From the last key to the first: each range is contiguous in the file, and still read backwards.
#[test]
fn a_descending_database_is_warned_of_even_for_one_process() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().to_str().unwrap();
    let script = "import lmdb, sys\nwith lmdb.open(sys.argv[1], map_size=1 << 28).begin(write=True) as txn:\n  \
                  for i in reversed(range(1000)): txn.put(b'%04d' % i, b'x' * 5000)\n";
    python_ok(script, &[db]);
    for count in ["1", "4"] {
        let warning = String::from_utf8(run(&["lmdb", "ranges", "-n", count, db]).stderr).unwrap();
        assert!(warning.contains("not laid out in key order"), "{warning}");
    }
}

#[test]
fn duplicates_stay_with_their_key_and_empty_values_are_counted() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let script = r#"
import lmdb, sys
env = lmdb.open(sys.argv[1], map_size=1 << 28, max_dbs=4)
dups, empty = env.open_db(b"dups", dupsort=True), env.open_db(b"empty")
with env.begin(write=True) as txn:
    for key in range(10):
        for i in range(1000): txn.put(b"%d" % key, b"%06d" % i, db=dups)
    for i in range(1000): txn.put(b"%04d" % i, b"", db=empty)
"#;
    let db = dir.path().to_str().unwrap();
    python_ok(script, &[db]);
    let shares = |name: &str, count: &str| {
        let ranges = ranges(db, &["-n", count, "--name", name]);
        ranges.iter().map(|range| range["records"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(shares("dups", "5"), [2000; 5]);
    let uneven = ranges(db, &["-n", "4", "--name", "dups"]);
    for pair in uneven.windows(2) {
        assert!(pair[0]["last_key"].as_str() < pair[1]["first_key"].as_str(), "{pair:?}");
    }
    assert_eq!(shares("dups", "4").iter().sum::<u64>(), 10_000);
    assert_eq!(shares("empty", "4"), [250; 4]);
}

#[test]
fn several_databases_need_a_name() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let script = r#"
import lmdb, sys
env = lmdb.open(sys.argv[1], max_dbs=4)
for name in (b"a", b"b"):
    db = env.open_db(name)
    with env.begin(write=True) as txn:
        for i in range(50): txn.put(b"%s%02d" % (name, i), b"x" * 100, db=db)
"#;
    let db = dir.path().to_str().unwrap();
    python_ok(script, &[db]);
    assert!(fail(&["lmdb", "ranges", "-n", "2", db], 2).contains("a, b"));
    assert_eq!(ranges(db, &["-n", "2", "--name", "b"])[1]["last_key"], "b49");
}
