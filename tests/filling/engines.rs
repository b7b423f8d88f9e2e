//! Each engine brings in every byte once; those that do nothing here are found out.

use crate::amounts::{assert_fetched_once, read_from};
use precache_tests::programs::program;
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{SlowStorage, flat_file, scratch};

/// The engine that brought in most.
fn engine(report: &Report) -> String {
    report.file()["engines"][0]["engine"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn each_engine_fetches_every_byte_once() {
    for wanted in ["readahead", "pread", "io_uring", "populate"] {
        let (share, report) = read_from(&["--latency=1ms", "--bandwidth=800M"], &[], &["--engine", wanted]);
        assert_fetched_once(share);
        assert_eq!(engine(&report), wanted, "{:#}", report.0);
        // On a busy machine the reader itself fetches some of it.
        assert!(report.of_file("fetched") > report.of_file("size") / 2, "{:#}", report.0);
    }
}

/// Where read-ahead calls do nothing, as on Lustre, and a read brings in little more than it asks for.
#[test]
fn read_ahead_calls_that_do_nothing_are_found_out() {
    for asked in ["auto", "readahead"] {
        let storage = ["--latency=1ms", "--bandwidth=800M", "--no-willneed", "--readahead=16K"];
        let (share, report) = read_from(&storage, &[], &["--engine", asked]);
        if share.is_none() {
            return;
        }
        assert_ne!(engine(&report), "readahead", "{:#}", report.0);
        assert!(report.of_file("fetched") > report.of_file("size") / 2, "{:#}", report.0);
        assert!(report.file()["decision"].as_str().unwrap().starts_with("pre-cached by"), "{:#}", report.0);
    }
}

/// The same, for a mapping: faults there ask for a page each, and larger pieces, which would do nothing, are not asked for.
#[test]
fn a_mapping_is_filled_without_read_ahead_calls() {
    let storage = ["--latency=1ms", "--bandwidth=800M", "--no-willneed"];
    let (share, report) = read_from(&storage, &[], &["--engine=populate"]);
    assert_fetched_once(share);
    assert_eq!(engine(&report), "populate", "{:#}", report.0);
}

/// The bound holds for all sessions together.
#[test]
fn the_least_bound_of_all_supervisors_holds() {
    let storage = SlowStorage::mount(scratch(), &["--latency=2ms", "--no-willneed"]);
    flat_file(64);
    let file = storage.path().join("flat-64M");
    let reader = Program::new([program("map-reader").into_os_string(), file.into_os_string()]);
    // Only the fourth is modest. `pread` is one request each, unlike read-ahead calls beside it.
    let bounds = ["--max-inflight=64", "--max-inflight=64", "--max-inflight=64", "--max-inflight=3"];
    let mut runs: Vec<_> = bounds.iter().map(|bound| reader.command(&[bound, "--engine=pread", "--jobs=32"])).collect();
    let children: Vec<_> = runs.iter_mut().rev().map(|(command, _)| command.spawn().expect("it starts")).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    assert!(runs[3].1.read().of_file("most_in_flight") <= 3);
}
