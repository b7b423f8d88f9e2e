//! Pages that are in the page cache are mapped ahead of the reader: it takes few faults, and nothing is fetched for that.

use precache_tests::methods::METHODS;
use precache_tests::programs::compile;
use precache_tests::runs::{Left, Program, Report};
use precache_tests::storage::{SlowStorage, flat_file, scratch};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

const MIB: usize = 256;
const BYTES: u64 = (MIB as u64) << 20;

/// Passes over cached data: the first ones are over before the optimizer has started.
const PASSES: u64 = 4;

/// What one fault maps.
const STEP: u64 = 64 << 10;

/// A program that reads the file so many times, each time through a new mapping.
fn reader(file: &Path, times: u64) -> Program {
    static COMPILED: OnceLock<()> = OnceLock::new();
    let program = scratch().join("steps_met");
    COMPILED.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("filling/programs/steps_met.c");
        compile(&source, &program, &[]).expect("cc compiles it");
    });
    Program::new([program.into_os_string(), file.into(), times.to_string().into()])
}

/// Faults that the program says it took.
fn faults(left: &Left) -> u64 {
    assert!(left.status.success(), "{left:?}");
    left.stderr.trim().parse().unwrap_or_else(|_| panic!("not a number: {left:?}"))
}

fn make_warm(file: &Path) {
    assert_eq!(fs::read(file).expect("the file can be read").len() as u64, BYTES);
}

fn sum(report: &Report, field: &str) -> u64 {
    report.mappings().filter_map(|mapping| mapping[field].as_u64()).sum()
}

fn on_slow_storage(test: impl Fn(&Path, &SlowStorage)) {
    let source = flat_file(MIB);
    let storage = SlowStorage::mount(source.parent().unwrap(), &["--latency=1ms", "--bandwidth=800M"]);
    test(&storage.path().join(source.file_name().unwrap()), &storage);
}

/// Without a fault where pages were mapped ahead, with both methods; how many these are depends on who else uses the machine.
fn takes_fewer_faults(file: &Path, alone: &Left, options: &[&str]) {
    for method in METHODS {
        let (left, report) = reader(file, PASSES).under(&[&[method, "--populate=on"], options].concat());
        assert_eq!(left.stdout, alone.stdout);
        let populated = sum(&report, "populated");
        assert!(populated > BYTES, "{:#}", report.0);
        let most = (PASSES * BYTES - populated) / STEP + report.trips();
        assert!(faults(&left) <= most, "{left:?} instead of {alone:?}: {:#}", report.0);
    }
    let (left, report) = reader(file, PASSES).under(&[&["--populate=off"], options].concat());
    assert_eq!(left.stdout, alone.stdout);
    assert_eq!(sum(&report, "populated"), 0, "{:#}", report.0);
}

#[test]
fn warm_slow_storage_is_read_with_fewer_faults() {
    on_slow_storage(|file, _| {
        make_warm(file);
        let alone = reader(file, PASSES).alone();
        assert_eq!(faults(&alone), PASSES * BYTES / STEP);
        takes_fewer_faults(file, &alone, &[]);
        takes_fewer_faults(file, &alone, &["--distance=16M", "--size=64M"]);
    });
}

/// Where folios are large, the kernel maps more at a fault by itself.
#[test]
fn warm_local_files_are_read_with_fewer_faults() {
    let file = flat_file(MIB);
    make_warm(&file);
    takes_fewer_faults(&file, &reader(&file, PASSES).alone(), &[]);
}

/// What is not there yet is left to the engine: nothing is fetched twice, nor by the reader.
#[test]
fn mapping_ahead_fetches_nothing() {
    for method in METHODS {
        on_slow_storage(|file, storage| {
            let (left, report) = reader(file, 1).under(&[method, "--populate=on"]);
            faults(&left);
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(storage.bytes_of(name).is_none_or(|bytes| bytes <= BYTES * 101 / 100), "{:#}", report.0);
            assert!(report.of_file("fetched") > BYTES / 2, "{:#}", report.0);
        });
    }
}

#[test]
fn whether_it_pays_is_measured() {
    on_slow_storage(|file, _| {
        make_warm(file);
        let (left, report) = reader(file, PASSES).under(&["--populate", "--distance=1M", "--size=64M"]);
        faults(&left);
        let gain = report.mappings().find_map(|mapping| mapping["populate_gain"].as_f64());
        let gain = gain.unwrap_or_else(|| panic!("not measured: {:#}", report.0));
        assert!(gain > 0.1, "{gain}: {:#}", report.0);
    });
}
