//! The readers of `demos/`: same output in every mode, with every method, and trips as the distance says.

use precache_tests::methods::METHODS;
use precache_tests::programs::program;
use precache_tests::runs::Program;
use precache_tests::storage::{flat_file, lmdb, make_cold};

fn lmdb_reader(arguments: &str) -> Program {
    let words = arguments.split_whitespace().map(Into::into);
    Program::new([program("lmdb-reader").into_os_string(), lmdb(192).into_os_string()].into_iter().chain(words))
}

fn map_reader(arguments: &str) -> Program {
    let words = arguments.split_whitespace().map(Into::into);
    Program::new([program("map-reader").into_os_string(), flat_file(64).into_os_string()].into_iter().chain(words))
}

/// Output lines of concurrent processes come in any order.
fn sorted(output: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = String::from_utf8_lossy(output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn same_in_all_modes(reader: &Program) {
    let alone = reader.alone();
    assert!(alone.status.success() && !alone.stdout.is_empty(), "{alone:?}");
    for mode in ["--mode=on", "--mode=detect"] {
        for method in METHODS {
            make_cold(&flat_file(64));
            let (under, report) = reader.under(&[mode, method]);
            assert_eq!(sorted(&alone.stdout), sorted(&under.stdout), "{mode} {method}");
            assert_eq!((alone.status, &alone.stderr), (under.status, &under.stderr), "{mode} {method}");
            assert!(report.trips() > 0, "{:#}", report.0);
        }
    }
}

#[test]
fn contiguous_records() {
    same_in_all_modes(&lmdb_reader("--epochs 2"));
}

#[test]
fn skipped_records() {
    same_in_all_modes(&lmdb_reader("--pattern skipping --processes 3"));
}

#[test]
fn ranks_with_ranges_of_their_own() {
    same_in_all_modes(&lmdb_reader("--processes 4"));
}

#[test]
fn records_from_the_middle() {
    same_in_all_modes(&lmdb_reader("--start-record 300 --records 400"));
}

#[test]
fn training_and_test_database_in_turn() {
    let test = lmdb(96);
    let reader = lmdb_reader(&format!("--test-db {} --test-every 5 --test-records 64", test.display()));
    same_in_all_modes(&reader);
    make_cold(&test.join("data.mdb"));
    let (_, report) = reader.under(&[]);
    let requested: Vec<_> = report.files().map(|file| file["requested"].as_u64()).collect();
    assert!(requested.len() == 2 && requested.iter().all(|&bytes| bytes > Some(32 << 20)), "{:#}", report.0);
}

#[test]
fn random_records() {
    same_in_all_modes(&lmdb_reader("--random --seed 5 --count 500"));
}

#[test]
fn bytes_forward_backward_strided_and_by_threads() {
    for arguments in
        ["", "--backwards", "--stride 800K --record 200K", "--threads 8", "--private --epochs 3", "--fork 3"]
    {
        same_in_all_modes(&map_reader(arguments));
    }
}

/// That is what watching costs, in each epoch. Sentinels are bounded in time: of who reads fast, later epochs may be seen a
/// little late.
#[test]
fn one_trip_per_distance() {
    let flat = flat_file(64);
    let readers = [
        (map_reader(""), flat.clone(), 1),
        (map_reader("--backwards"), flat, 1),
        (lmdb_reader(""), lmdb(192).join("data.mdb"), 1),
        (lmdb_reader("--epochs 3"), lmdb(192).join("data.mdb"), 3),
    ];
    for ((reader, file, epochs), method) in readers.iter().flat_map(|reader| METHODS.map(|method| (reader, method))) {
        let distances = std::fs::metadata(file).unwrap().len().div_ceil(2 << 20);
        let (_, report) = reader.under(&["--mode=detect", "--distance=2M", method]);
        let least = if *epochs == 1 { distances } else { distances + 1 };
        assert!((least..=epochs * distances).contains(&report.trips()), "with {method}: {:#}", report.0);
        assert_eq!(report.sum("wakes"), 0, "with {method}: {:#}", report.0);
    }
}
