//! Each engine brings in every byte once; those that do nothing here are found out.

use crate::amounts::{assert_fetched_once, read_from};
use precache_tests::optimizer::wait_for;
use precache_tests::programs::program;
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{SlowStorage, can_mount, flat_file, lacking, scratch};
use std::ffi::OsString;
use std::path::Path;

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
        let decision = report.file()["decision"].as_str().unwrap();
        assert!(decision.starts_with("pre-cached by"), "{decision}");
        // In its place there may have been another storage's file, which is remembered.
        let is_told = report.text().contains("--engine readahead has no effect on");
        assert_eq!(is_told, asked == "readahead", "{:#}", report.0);
    }
}

/// Where reads go past what mappings see, as on GPFS, what fills it is faults, or read-ahead that is asked for: whichever of the two
/// is the faster.
#[test]
fn reads_that_mappings_do_not_see_are_found_out() {
    if !can_mount() {
        return;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let version: Vec<u32> = release.split(['.', '-']).map_while(|part| part.parse().ok()).take(2).collect();
    if version < vec![6, 6] {
        return lacking("Linux 6.6, which maps files that are read past the page cache");
    }
    let options = ["--latency=200us", "--bandwidth=800M", "--readahead=0", "--read-past-cache"];
    let storage = SlowStorage::mount(scratch(), &options);
    flat_file(64);
    let file = storage.path().join("flat-64M");
    let reader = Program::new([program("map-reader").into_os_string(), file.into_os_string()]);
    let (left, report) = reader.under(&[]);
    assert!(left.status.success(), "{left:?}");
    assert!(["populate", "readahead"].contains(&engine(&report).as_str()), "{:#}", report.0);
    assert!(report.of_file("fetched") > report.of_file("size") / 2, "{:#}", report.0);
}

/// On an overlay `cachestat` finds nothing of what is cached.
#[test]
fn what_is_cached_of_an_overlay_is_known() {
    flat_file(64);
    let storage = SlowStorage::mount(scratch(), &["--latency=1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let [empty, merged] = ["empty", "merged"].map(|name| folder.path().join(name));
    for path in [&empty, &merged] {
        std::fs::create_dir(path).unwrap();
    }
    let words = ["unshare", "--mount", "sh", "-c", ON_AN_OVERLAY, "sh"].map(OsString::from).into_iter();
    let reader = |what: &Path| {
        let layers = [storage.path(), &empty, &merged, what].map(Into::into);
        Program::new(words.clone().chain(layers))
    };
    if !reader(Path::new("true")).alone().status.success() {
        return lacking("the right to mount an overlay");
    }
    let reader = reader(&program("map-reader"));
    let cold = reader.under(&[]).1;
    assert_ne!(cold.file()["residency"], "cachestat", "{:#}", cold.0);
    assert!(cold.of_file("fetched") > cold.of_file("size") / 2, "{:#}", cold.0);
    let warm = reader.under(&[]).1;
    // Here and there a kernel evicts a page of what is idle, also with memory to spare.
    assert!(warm.of_file("fetched") < warm.of_file("size") / 50, "{:#}", warm.0);
}

const ON_AN_OVERLAY: &str = r#"mount -t overlay overlay -o "lowerdir=$1:$2" "$3" && exec "$4" "$3/flat-64M""#;

/// As on Lustre, for a mapping: faults ask for a page each, and larger pieces, which would do nothing, are not asked for.
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
    let reader = |more: &[&str]| {
        let words = [program("map-reader").into_os_string(), file.clone().into_os_string()];
        Program::new(words.into_iter().chain(more.iter().map(Into::into)))
    };
    // `pread` is one request each, unlike read-ahead calls beside it.
    let under = |bound: &'static str| [bound, "--engine=pread", "--jobs=32"];
    let (mut command, modest) = reader(&["--compute-us-per-mb=40000"]).command(&under("--max-inflight=3"));
    let mut child = command.spawn().expect("it starts");
    // Where the storage does not tell, each session's own count remains.
    wait_for("the modest reader is served", || storage.bytes_of("flat-64M").is_none_or(|bytes| bytes > 0));
    let quick = reader(&[]);
    let mut others: Vec<_> = (0..3).map(|_| quick.command(&under("--max-inflight=64"))).collect();
    let others: Vec<_> = others.iter_mut().map(|(command, _)| command.spawn().expect("it starts")).collect();
    for mut other in others {
        assert!(other.wait().expect("it ends").success());
    }
    // What a reader has not been served with it fetches itself: what it asks for, which may begin in the middle of a request, and
    // what comes next.
    let most = storage.most_in_flight();
    assert!(most.is_none_or(|most| most <= 3 + 4 * 3), "{most:?}");
    assert!(child.wait().expect("it ends").success());
    assert!(modest.read().of_file("most_in_flight") <= 3);
}

/// Who shares a file with others takes what they chose, and is told so.
#[test]
fn an_engine_that_comes_too_late_is_told() {
    let storage = SlowStorage::mount(scratch(), &["--latency=2ms"]);
    flat_file(64);
    let file = storage.path().join("flat-64M");
    let reader = |more: &[&str]| {
        let words = [program("map-reader").into_os_string(), file.clone().into_os_string()];
        Program::new(words.into_iter().chain(more.iter().map(Into::into)))
    };
    if storage.bytes_of("flat-64M").is_none() {
        return; // Nobody would tell when the first reader is served.
    }
    let (mut command, first) = reader(&["--compute-us-per-mb=20000"]).command(&[]);
    let mut child = command.spawn().expect("it starts");
    wait_for("the first reader is served", || storage.bytes_of("flat-64M").is_some_and(|bytes| bytes > 8 << 20));
    let (left, second) = reader(&[]).under(&["--engine=pread"]);
    assert!(left.status.success() && child.wait().expect("it ends").success());
    assert!(second.text().contains("--engine pread has no effect on"), "{:#}", second.0);
    assert!(!first.read().text().contains("has no effect on"));
}

/// One session that maps many files may have as many requests in flight as it was allowed, all but the two that are left for its
/// reader, and the storage sees no more.
#[test]
fn the_bound_is_the_mounts_however_many_files_are_mapped() {
    const BOUND: u64 = 12;
    let files = [33, 34, 35, 36].map(flat_file);
    let storage = SlowStorage::mount(scratch(), &["--latency=5ms"]);
    let names = files.map(|file| storage.path().join(file.file_name().unwrap()).into_os_string());
    let reader = Program::new(["python3".into(), "-c".into(), SHARDS.into()].into_iter().chain(names));
    let (left, report) = reader.under(&[&format!("--max-inflight={BOUND}"), "--jobs=32", "--engine=readahead"]);
    assert!(left.status.success(), "{left:?}");
    let most = report.files().map(|file| file["most_in_flight"].as_u64().unwrap()).max();
    assert_eq!(most, Some(BOUND - 2), "{:#}", report.0);
    assert!(storage.most_in_flight().is_none_or(|most| most <= BOUND), "{:?}", storage.most_in_flight());
}

/// Maps all files, and then reads one after the other.
const SHARDS: &str = "
import mmap, sys
files = [open(name, 'rb') for name in sys.argv[1:]]
maps = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]
print([sum(memoryview(shard)[::4096]) for shard in maps])
";
