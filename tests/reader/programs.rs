//! One small C program for each thing that a program may do; `programs/NAME.c` says what is expected.

use precache_tests::methods::{METHODS, MPROTECT};
use precache_tests::programs::compile;
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{flat_file, make_cold, scratch};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

const MIB: usize = 64;

/// The program of that name, compiled once.
pub fn compiled(name: &str) -> Program {
    static COMPILED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("reader/programs").join(name).with_extension("c");
    let program = scratch().join(name);
    let mut compiled = COMPILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if compiled.insert(name.to_owned()) {
        compile(&source, &program, &["-pthread", "-Wno-stringop-overread", "-lm"]).expect("cc compiles it");
    }
    Program::new([program.into_os_string(), flat_file(MIB).into_os_string()])
}

/// The program with both methods; a short distance makes for many checkpoints.
fn unnoticed(name: &str) -> Vec<Report> {
    let program = compiled(name);
    METHODS
        .into_iter()
        .map(|method| {
            make_cold(&flat_file(MIB));
            program.must_not_notice(&[method, "--distance=1M", "--size=8M"])
        })
        .collect()
}

#[test]
fn own_handler() {
    unnoticed("own_handler");
}

#[test]
fn default_death() {
    unnoticed("default_death");
}

#[test]
fn changed_mappings() {
    unnoticed("changed_mappings");
}

#[test]
fn families() {
    for report in unnoticed("families") {
        // The parent, four children with a child each, and the one that was executed.
        assert!(report.active_readers() >= 10, "{:#}", report.0);
    }
}

#[test]
fn many_threads() {
    unnoticed("many_threads");
}

#[test]
fn several_at_once() {
    unnoticed("several_at_once");
}

#[test]
fn many_mappings() {
    for report in unnoticed("many_mappings") {
        assert!(report.text().contains("more files at once than can be followed"), "{:#}", report.0);
    }
}

#[test]
fn mapped_at_once() {
    for report in unnoticed("mapped_at_once") {
        // 20 processes with 8 children each.
        assert_eq!(report.readers().count(), 20 * 9, "{:#}", report.0);
        let refused = report.readers().any(|reader| reader["refusals"] != serde_json::json!([]));
        assert!(!refused && report.0["reasons"] == serde_json::json!([]), "{:#}", report.0);
    }
}

#[test]
fn traces() {
    unnoticed("traces");
}

#[test]
fn masked_handler() {
    unnoticed("masked_handler");
}

#[test]
fn fork_storm() {
    for report in unnoticed("fork_storm") {
        // Those whose part the parent has opened already do not trip; the others do, all of them reported.
        assert!(report.sum("processes") > 500, "{:#}", report.0);
    }
}

#[test]
fn no_permission() {
    let program = compiled("no_permission");
    let (under, report) = program.under(&[]);
    assert_eq!(under, program.alone());
    assert_eq!(report.trips(), 0);
    assert!(report.text().contains("the kernel refused to protect pages"), "{:#}", report.0);
}

#[test]
fn few_descriptors() {
    let program = compiled("few_descriptors");
    let (under, report) = program.under(&[]);
    assert_eq!(under, program.alone());
    assert_eq!(report.trips(), 0);
    assert!(report.0["reasons"].to_string().contains("could not be made known to the optimizer"), "{:#}", report.0);
}

#[test]
fn inherited_mask() {
    unnoticed("inherited_mask");
}

#[test]
fn refused_before_fork() {
    for report in unnoticed("refused_before_fork") {
        assert_eq!(report.active_readers(), 3, "{:#}", report.0);
    }
}

#[test]
fn orphans() {
    for report in unnoticed("orphans") {
        let requested = report.of_file("requested");
        assert!(requested > 16 << 20, "{requested} bytes requested for the orphan: {:#}", report.0);
    }
}

#[test]
fn orphans_of_a_closed_file() {
    /// The optimizer may find the parent dead after it has heard of the child.
    const TRIES: usize = 5;
    let program = compiled("orphans_of_a_closed_file");
    let run = || program.must_not_notice(&[MPROTECT, "--distance=128K", "--size=1M"]);
    let is_told = |report: &Report| report.text().contains("nobody could tell the file of a mapping");
    assert!((0..TRIES).any(|_| is_told(&run())));
}
