//! Which files are accelerated, and what is said about those that are not.

use crate::programs::compiled;
use precache_tests::methods::METHODS;
use precache_tests::programs::program;
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{flat_file, scratch};
use std::fs::{self, File};
use std::io::Write;

fn run(options: &[&str], arguments: &[&str]) -> Report {
    let file = flat_file(64).into_os_string();
    let words = [program("map-reader").into_os_string(), file].into_iter().chain(arguments.iter().map(Into::into));
    let (left, report) = Program::new(words).under(options);
    assert!(left.status.success(), "{left:?}");
    report
}

#[test]
fn small_files_are_left_alone() {
    assert_eq!(run(&["--min-file=65M"], &[]).trips(), 0);
    assert!(run(&["--min-file=64M"], &[]).trips() > 0);
}

#[test]
fn globs_choose_by_name_or_by_path() {
    let path = format!("{}/*", scratch().display());
    for (options, chosen) in [
        (vec!["--data=flat-*"], true),
        (vec!["--data=*.mdb"], false),
        (vec!["--data=*.mdb", "--data=flat-64M"], true),
        (vec!["--data", &path], true),
        (vec!["--data=/nowhere/*"], false),
        (vec!["--exclude=flat-[0-9]*M"], false),
        (vec!["--data=flat-*", "--exclude=*64*"], false),
    ] {
        let report = run(&options, &[]);
        assert_eq!(report.trips() > 0, chosen, "{options:?}: {:#}", report.0);
    }
}

#[test]
fn a_process_data_range_limits_checkpoints_and_filling() {
    let range = format!("--range={}:16M..24M", flat_file(64).display());
    precache_tests::storage::make_cold(&flat_file(64));
    let report = run(&[&range, "--distance=1M", "--size=4M"], &[]);
    assert!((8..=40).contains(&report.trips()), "{} trips", report.trips());
    assert!(report.of_file("requested") <= 8 << 20, "{:#}", report.0);
}

/// What begins before the range, in the same mapping, and ends in it.
#[test]
fn across_the_start() {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let data = folder.path().join("data");
    fs::copy(flat_file(64), &data).unwrap();
    let range = format!("--range={}:16M..24M", data.display());
    let program = Program::new([compiled("across_the_start").0[0].clone(), data.into_os_string()]);
    for method in METHODS {
        let report = program.must_not_notice(&[method, &range, "--distance=1M", "--size=4M"]);
        assert_eq!(report.sum("lifted_for_calls"), 2, "{:#}", report.0);
    }
}

#[test]
fn programs_and_libraries_are_never_touched() {
    let path = scratch().join("large.so");
    let mut file = File::create(&path).unwrap();
    file.write_all(&fs::read("/proc/self/exe").unwrap()).unwrap();
    file.set_len(40 << 20).unwrap();
    let reader = Program::new([program("map-reader").into_os_string(), path.into_os_string()]);
    let (left, report) = reader.under(&[]);
    assert!(left.status.success());
    assert_eq!(report.trips(), 0);
    assert!(report.text().contains("the file is a program or library"), "{:#}", report.0);
}

#[test]
fn the_switch_turns_everything_off() {
    let reader = Program::new([program("map-reader").into_os_string(), flat_file(64).into_os_string()]);
    let (mut command, _) = reader.command(&[]);
    let left = precache_tests::runs::finish(command.env("PRECACHE", "off"));
    assert_eq!(left, reader.alone());
}
