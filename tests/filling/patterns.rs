//! Readers that are not sequential: what they read is fetched ahead of them, and not much else.

use precache_tests::programs::{compile, program};
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{SlowStorage, flat_file, lmdb, scratch};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes fetched while this reads, where they are counted, and the report.
fn read(folder: &Path, reader: &str, file: &str, arguments: &str, options: &[&str]) -> (Option<u64>, Report) {
    let storage = SlowStorage::mount(folder, &["--latency=1ms", "--bandwidth=800M", "--writable"]);
    let words = [program(reader).into_os_string(), storage.path().join(file).into_os_string()];
    let arguments = arguments.split_whitespace().map(OsString::from);
    let (left, report) = Program::new(words.into_iter().chain(arguments)).under(options);
    assert!(left.status.success(), "{left:?}");
    let name = if file.is_empty() { "data.mdb" } else { file };
    (storage.bytes_of(name), report)
}

fn flat(arguments: &str) -> (Option<u64>, Report) {
    let file = flat_file(256);
    read(file.parent().unwrap(), "map-reader", file.file_name().unwrap().to_str().unwrap(), arguments, &[])
}

/// One of the programs beside this file.
fn compiled(name: &str, options: &[&str]) -> PathBuf {
    let program = scratch().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("filling/programs/{name}.c"));
    compile(&source, &program, options).expect("cc compiles it");
    program
}

/// With `flat-256M`.
fn slow_flat() -> SlowStorage {
    SlowStorage::mount(flat_file(256).parent().unwrap(), &["--latency=1ms", "--bandwidth=800M"])
}

/// That of what was read, one part in so many of the file, some was asked for ahead, and not much beside it. How much is
/// ahead depends on who else uses the machine; what is not, the kernel reads with the gaps around it: of that, one part in so many
/// was read.
fn assert_served((fetched, report): (Option<u64>, Report), bytes: u64, one_of: u64, most: f64) {
    let (requested, ours) = (report.of_file("requested"), report.of_file("fetched"));
    assert!(requested as f64 > 0.05 * bytes as f64, "{:#}", report.0);
    // What is asked for and given up before its turn comes, when the order is seen better, costs nothing.
    assert!(one_of == 1 || ours as f64 <= most * bytes as f64, "{:#}", report.0);
    // Of what was fetched ahead so much was read, at least.
    let ahead = ours as f64 / most;
    let allowed = if one_of == 1 { most * bytes as f64 } else { ours as f64 + one_of as f64 * (bytes as f64 - ahead) };
    assert!(fetched.is_none_or(|fetched| fetched as f64 <= allowed), "{fetched:?}, allowed {allowed}: {:#}", report.0);
}

#[test]
fn strided_records_are_fetched_without_the_gaps() {
    assert_served(flat("--stride 800K --record 200K"), (256 << 20) / 4, 4, 1.3);
    assert_served(flat("--stride 400K --record 200K"), (256 << 20) / 2, 2, 1.3);
}

/// As workers that share a file batch by batch.
#[test]
fn long_records_are_fetched_without_the_gaps() {
    let file = flat_file(256);
    let (folder, name) = (file.parent().unwrap(), file.file_name().unwrap().to_str().unwrap());
    // Large pieces are asked for as a whole, by each of the windows that meet in one.
    let options = ["--size=4M", "--distance=1M", "--engine=readahead"];
    assert_served(
        read(folder, "map-reader", name, "--stride 12800K --record 3200K", &options),
        (256 << 20) / 4,
        4,
        1.7,
    );
}

/// Each of them leaves out what the others read, together they leave out nothing.
#[test]
fn threads_that_take_turns_are_served() {
    let storage = slow_flat();
    let words = [
        compiled("threads_in_turns", &["-pthread"]).into_os_string(),
        storage.path().join("flat-256M").into_os_string(),
    ];
    let (left, report) = Program::new(words).under(&[]);
    assert!(left.status.success(), "{left:?}");
    assert_served((storage.bytes_of("flat-256M"), report), 256 << 20, 1, 1.01);
}

#[test]
fn skipped_records_of_a_database_are_not_fetched() {
    let database = lmdb(384);
    let rank = read(&database, "lmdb-reader", "", "--pattern skipping --processes 4 --rank 1", &[]);
    assert_served(rank, (384 << 20) / 4, 4, 1.4);
}

#[test]
fn ranks_that_skip_together_fetch_every_byte_once() {
    let (fetched, report) = read(&lmdb(384), "lmdb-reader", "", "--pattern skipping --processes 4", &[]);
    let size = report.of_file("size");
    assert!(fetched.is_none_or(|f| f <= size * 101 / 100), "{fetched:?} of {size}");
}

#[test]
fn backward_readers_are_fetched_for() {
    for arguments in ["--backwards", "--backwards --record 4K", "--backwards --record 300K"] {
        assert_served(flat(arguments), 256 << 20, 1, 1.01);
    }
}

/// Random records: as much as without precache, and one trial more.
#[test]
fn random_access_costs_no_bytes() {
    for arguments in ["--random 300", "--random 300 --record 200K"] {
        let file = flat_file(256);
        let name = file.file_name().unwrap().to_str().unwrap();
        let plain = read(file.parent().unwrap(), "map-reader", name, arguments, &["--mode=detect"]).0;
        let (under, report) = flat(arguments);
        assert!(
            under.zip(plain).is_none_or(|(u, p)| u <= p * 102 / 100 + (2 << 20)),
            "{under:?} instead of {plain:?}: {:#}",
            report.0
        );
    }
}

/// The gaps are fetched no farther than the windows reach that were requested before the reader was found to leave something
/// out: by the third checkpoint that it leaves out, and so within a few windows' length.
#[test]
fn a_reader_that_begins_to_skip_is_noticed() {
    let storage = slow_flat();
    let words =
        [compiled("from_all_to_one_of_four", &[]).into_os_string(), storage.path().join("flat-256M").into_os_string()];
    let (left, report) = Program::new(words).under(&["--size=8M", "--distance=1M"]);
    assert!(left.status.success(), "{left:?}");
    let (bytes, gaps) = ((128 + 128 / 4) << 20, (128 / 4 * 3) << 20);
    let requested = report.of_file("requested");
    assert!(requested > bytes * 3 / 4 && requested < bytes + gaps / 2, "{requested} for {bytes}: {:#}", report.0);
    let fetched = storage.bytes_of("flat-256M");
    assert!(fetched.is_none_or(|fetched| fetched < bytes + gaps / 2), "{fetched:?} for {bytes}: {:#}", report.0);
}
