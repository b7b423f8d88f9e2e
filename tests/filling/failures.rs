//! What cannot be read ahead is left to the reader; storage that keeps failing ends the acceleration of that file, and nothing
//! else.

use precache_tests::programs::program;
use precache_tests::runs::Program;
use precache_tests::storage::{SlowStorage, can_mount, flat_file, scratch};
use std::fs;

/// Reads the first half of a file on storage with these faults.
fn first_half_with(faults: &[&str], options: &[&str]) -> Option<String> {
    if !can_mount() {
        return None;
    }
    let file = flat_file(64);
    let faults: Vec<_> = faults.iter().map(|fault| format!("--fault={fault}")).collect();
    let arguments: Vec<_> = ["--latency=200us"].into_iter().chain(faults.iter().map(String::as_str)).collect();
    let storage = SlowStorage::mount(scratch(), &arguments);
    let half = |path: &std::path::Path| {
        // Computing, so that filling is ahead.
        let arguments = ["--end=32M", "--compute-us-per-mb=20000"].map(AsRef::as_ref);
        Program::new([program("map-reader").as_os_str(), path.as_os_str()].into_iter().chain(arguments))
    };
    let (left, report) =
        half(&storage.path().join("flat-64M")).under(&[&["--distance=8M", "--size=50M"], options].concat());
    assert_eq!(left.stdout, half(&file).alone().stdout);
    assert!(left.status.success(), "{left:?}");
    Some(report.text())
}

/// One chunk, and what comes after it is fetched.
#[test]
fn an_error_in_the_window_ahead_is_not_the_readers() {
    // A large piece on trial may come to it once more, for it is filled as a whole.
    for (options, left) in
        [(&["--engine=pread"][..], "left to the program: 1, the first: reading"), (&[], "left to the program: ")]
    {
        let Some(report) = first_half_with(&["eio@40M"], options) else { return };
        assert!(report.contains(left), "{report}");
        assert!(!report.contains("given up"), "{report}");
    }
}

#[test]
fn a_short_read_in_the_window_ahead_is_not_the_readers() {
    let Some(report) = first_half_with(&["short@40M"], &[]) else { return };
    assert!(report.contains("reading"), "{report}");
}

/// Nothing of what comes after the first 40 MiB can be read.
#[test]
fn storage_that_keeps_failing_is_given_up() {
    let faults: Vec<_> = (320..512).map(|chunk| format!("eio@{}K", chunk * 128)).collect();
    let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
    let Some(report) = first_half_with(&faults, &["--engine=pread"]) else { return };
    assert!(report.contains("given up: reading"), "{report}");
}

#[test]
fn an_error_under_the_reader_is_the_readers() {
    if !can_mount() {
        return;
    }
    flat_file(64);
    let storage = SlowStorage::mount(scratch(), &["--fault=eio@30M"]);
    let reader = Program::new([program("map-reader").into_os_string(), storage.path().join("flat-64M").into()]);
    let (alone, (under, _)) = (reader.alone(), reader.under(&[]));
    assert!(!alone.status.success());
    assert_eq!(alone.status, under.status);
}

#[test]
fn a_file_that_vanishes_is_read_to_its_end() {
    let file = scratch().join("vanishing");
    fs::copy(flat_file(64), &file).unwrap();
    let script = r#"
import mmap, os, sys, zlib
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
crc = zlib.crc32(data[:20_000_000])
os.rename(sys.argv[1], sys.argv[1] + '.away')
os.unlink(sys.argv[1] + '.away')
print(crc, zlib.crc32(data))
"#;
    let reader = Program::new(["/usr/bin/python3".into(), "-c".into(), script.into(), file.clone().into_os_string()]);
    let (under, report) = reader.under(&["--distance=1M", "--size=8M"]);
    fs::copy(flat_file(64), &file).unwrap();
    assert_eq!(under, reader.alone());
    assert!(report.trips() > 0);
}
