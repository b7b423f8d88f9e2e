//! What cannot be read ahead is left to the reader; storage that keeps failing is left alone for a while, and nothing else
//! happens.

use precache_tests::programs::program;
use precache_tests::runs::Program;
use precache_tests::storage::{SlowStorage, can_mount, flat_file, scratch};
use std::fs;
use std::ops::Range;
use std::path::Path;

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
        assert!(!report.contains("of late"), "{report}");
    }
}

#[test]
fn a_short_read_in_the_window_ahead_is_not_the_readers() {
    let Some(report) = first_half_with(&["short@40M"], &["--engine=pread"]) else { return };
    assert!(report.contains("reading"), "{report}");
}

/// Nothing of these megabytes can be read.
fn failing(megabytes: Range<u64>) -> Vec<String> {
    (megabytes.start * 8..megabytes.end * 8).map(|chunk| format!("eio@{}K", chunk * 128)).collect()
}

#[test]
fn storage_that_keeps_failing_is_left_alone() {
    let faults = failing(40..64);
    let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
    let Some(report) = first_half_with(&faults, &["--engine=pread"]) else { return };
    assert!(report.contains("could not be read of late: reading"), "{report}");
}

/// What comes after 40 MiB fails, which the reader never comes to. What it reads later, elsewhere, is read ahead again.
#[test]
fn storage_that_answers_again_is_read_ahead_again() {
    if !can_mount() {
        return;
    }
    let file = flat_file(128);
    let faults = failing(40..56).into_iter().map(|fault| format!("--fault={fault}"));
    let arguments: Vec<_> = std::iter::once("--latency=200us".to_owned()).chain(faults).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let storage = SlowStorage::mount(scratch(), &arguments);
    let script = r#"
import mmap, sys, time, zlib
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
crc = 0
for part in range(0, 32), range(64, 128):
    for megabyte in part:
        crc = zlib.crc32(data[megabyte << 20:megabyte + 1 << 20], crc)
        time.sleep(float(sys.argv[2]))  # It computes for so long.
print(crc)
"#;
    let read = |path: &Path, seconds: &str| {
        Program::new(["/usr/bin/python3".as_ref(), "-c".as_ref(), script.as_ref(), path.as_os_str(), seconds.as_ref()])
    };
    let reader = read(&storage.path().join("flat-128M"), "0.06");
    let (under, report) = reader.under(&["--distance=8M", "--size=50M", "--engine=pread"]);
    assert_eq!(under, read(&file, "0").alone());
    let text = report.text();
    assert!(text.contains("left to the program: ") && !text.contains("of late"), "{text}");
    // Of the first part at most 40 MiB.
    assert!(report.of_file("fetched") > 56 << 20, "{text}");
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
