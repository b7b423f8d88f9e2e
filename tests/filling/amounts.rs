//! Every byte is fetched once, and fetching begins within the first faults.

use precache_tests::methods::METHODS;
use precache_tests::optimizer::wait_for;
use precache_tests::programs::program;
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{SlowStorage, flat_file, lmdb, scratch};
use std::fs;

fn read(arguments: &[&str], options: &[&str]) -> (Option<f64>, Report) {
    read_from(&["--latency=1ms", "--bandwidth=800M"], arguments, options)
}

/// Reads an LMDB on such storage with these arguments; returns the bytes fetched as a share of the file, where they are
/// counted, and the report.
pub fn read_from(storage: &[&str], arguments: &[&str], options: &[&str]) -> (Option<f64>, Report) {
    let database = lmdb(192);
    let storage = SlowStorage::mount(&database, &[storage, &["--writable"]].concat());
    let words = [program("lmdb-reader").into_os_string(), storage.path().into()];
    let reader = Program::new(words.into_iter().chain(arguments.iter().map(Into::into)));
    let (left, report) = reader.under(options);
    assert!(left.status.success(), "{left:?}");
    let size = fs::metadata(database.join("data.mdb")).unwrap().len();
    (storage.bytes_of("data.mdb").map(|bytes| bytes as f64 / size as f64), report)
}

/// That every byte of the file was fetched, and none twice.
pub fn assert_fetched_once(share: Option<f64>) {
    assert!(share.is_none_or(|share| (0.99..1.01).contains(&share)), "{share:?} of the file");
}

#[test]
fn one_pass_fetches_every_byte_once() {
    for method in METHODS {
        let (share, report) = read(&[], &[method]);
        assert_fetched_once(share);
        assert!(report.of_file("fetched") as f64 > 0.9 * report.of_file("size") as f64, "{:#}", report.0);
    }
}

#[test]
fn four_ranks_together_fetch_every_byte_once() {
    let (share, report) = read(&["--processes=4"], &[]);
    assert_fetched_once(share);
    assert!(report.active_readers() >= 4, "{:#}", report.0);
}

#[test]
fn readers_of_the_same_bytes_share_them() {
    let storage = SlowStorage::mount(scratch_with_flat(), &["--latency=1ms"]);
    let file = storage.path().join("flat-64M");
    let reader = Program::new([program("map-reader").into_os_string(), file.into_os_string()]);
    let mut runs: Vec<_> = (0..4).map(|_| reader.command(&[])).collect();
    let children: Vec<_> = runs.iter_mut().map(|(command, _)| command.spawn().expect("it starts")).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    assert!(storage.bytes_of("flat-64M").is_none_or(|bytes| bytes < (64 << 20) * 101 / 100));
}

/// Where an open drops what is cached of a file, it drops that, and not all that is fetched after it, too. Who is short of
/// processors may notice the open too late: one of three is enough.
#[test]
fn whoever_opens_the_file_drops_no_more_than_was_cached() {
    let mut tries = Vec::new();
    while let Some((cached, twice)) = dropped_by_an_open() {
        if twice < cached + (6 << 20) {
            return;
        }
        tries.push((cached, twice));
        assert!(tries.len() < 3, "bytes cached, and fetched again: {tries:?}");
    }
}

/// Opens a file while it is fetched: how many of its bytes were cached, and how many were fetched twice; `None`: nobody counts.
fn dropped_by_an_open() -> Option<(u64, u64)> {
    let storage = SlowStorage::mount_forgetful(scratch_with_flat(), &["--latency=2ms", "--bandwidth=100M"]);
    storage.bytes_of("flat-64M")?;
    let fetched = || storage.bytes_of("flat-64M").unwrap_or(0);
    let file = storage.path().join("flat-64M");
    let reader = [program("map-reader").into_os_string(), file.clone().into(), "--compute-us-per-mb=20000".into()];
    let reader = Program::new(reader);
    let (mut command, _report) = reader.command(&["--size=64M", "--engine=pread"]);
    let mut child = command.spawn().expect("it starts");
    wait_for("some of it is fetched", || fetched() > 24 << 20);
    let cached = fetched();
    let other = fs::File::open(&file).expect("it is there");
    assert!(child.wait().expect("it ends").success());
    drop(other);
    Some((cached, fetched().saturating_sub(64 << 20)))
}

fn scratch_with_flat() -> &'static std::path::Path {
    flat_file(64);
    scratch()
}

#[test]
fn fetching_begins_within_eight_faults() {
    for start in ["--start-record=0", "--start-record=500"] {
        let (_, report) = read(&[start], &[]);
        let faults: Vec<_> = report.mappings().filter_map(|m| m["faults_before_first_request"].as_u64()).collect();
        assert!(!faults.is_empty() && faults.iter().all(|&n| n <= 8), "{faults:?}");
    }
}

#[test]
fn watching_fetches_nothing() {
    let (share, report) = read(&["--records=50"], &["--mode=detect"]);
    assert!(report.trips() > 0);
    assert_eq!(report.of_file("requested"), 0);
    assert!(share.is_none_or(|share| share < 0.1), "{share:?} of the file");
}

#[test]
fn random_access_is_not_fetched_ahead() {
    let arguments = ["--random", "--seed=3", "--count=150"];
    let (plain, _) = read(&arguments, &["--mode=detect"]);
    let (under, _) = read(&arguments, &[]);
    assert!(under.zip(plain).is_none_or(|(under, plain)| under < plain + 0.15), "{under:?} instead of {plain:?}");
}

/// Requests in flight stay below what the user allows.
#[test]
fn jobs_bound_what_is_in_flight() {
    let (_, report) = read(&[], &["--jobs=3"]);
    assert!((1..=3).contains(&report.of_file("most_in_flight")), "{:#}", report.0);
}

/// An epoch after the first is accelerated from its first fault; what is cached is not fetched again.
#[test]
fn a_second_epoch_fetches_nothing() {
    // Ranks end their passes before the end of the file, all but one.
    for readers in ["--processes=1", "--processes=4"] {
        let (share, report) = read(&["--epochs=2", readers], &["--distance=1M", "--size=16M"]);
        assert_fetched_once(share);
        assert!(report.of_file("requested") > report.of_file("size") * 3 / 2, "{:#}", report.0);
    }
}
