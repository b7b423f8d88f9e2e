//! On slow storage: what is fetched is counted by the storage, not by us.

#[path = "support/slowfs.rs"]
mod slowfs;
mod support;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use heed::types::Bytes;
use heed::{EnvFlags, PutFlags, ReservedSpace};
use support::*;

const LATENCY_AND_BANDWIDTH: [&str; 4] = ["--latency", "2ms", "--bandwidth", "400M"];

/// Pages of the trees, in bytes.
fn tree_bytes(db: &Path) -> u64 {
    let info = info(db);
    let page_size = info["page_size"].as_u64().unwrap();
    let databases = info["databases"].as_array().unwrap();
    let pages = |of: &str| databases.iter().map(|database| database[of].as_u64().unwrap()).sum::<u64>();
    (pages("branch_pages") + pages("leaf_pages")) * page_size
}

/// Writes `count` records of `size` bytes whose values are holes in the file: trees as py-lmdb makes them, at the cost of
/// little more than the trees. Returns the bytes that the file takes on disk.
fn make_of_holes(db: &Path, count: u32, size: usize) -> u64 {
    std::fs::create_dir(db).unwrap();
    let flags = EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC | EnvFlags::MAP_ASYNC | EnvFlags::NO_READ_AHEAD;
    let mut options = heed::EnvOpenOptions::new();
    options.map_size(2 << 30);
    // SAFETY: nobody needs the file after a crash of the machine, and nobody else has it open.
    let env = unsafe { options.flags(flags).open(db) }.unwrap();
    let records: heed::Database<Bytes, Bytes> = env
        .create_databases_and_commit(env.write_txn().unwrap(), |opener, txn| {
            opener.create_database(txn, None).map(heed::CommitOrAbort::<_, ()>::Commit)
        })
        .unwrap()
        .unwrap_commit();
    let mut txn = env.write_txn().unwrap();
    for key in (0..count).map(|record| format!("{record:08}")) {
        let nothing = |space: &mut ReservedSpace<'_>| {
            // SAFETY: a file that was never written there holds zeroes.
            unsafe { space.assume_written(size) };
            Ok(())
        };
        records.get_or_put_reserved_with_flags(&mut txn, PutFlags::APPEND, key.as_bytes(), size, nothing).unwrap();
    }
    txn.commit().unwrap();
    std::fs::metadata(db.join("data.mdb")).unwrap().blocks() * 512
}

/// `info` and `map` fetch at most 1.2 times the tree of a database with values in overflow pages: it has `pages` pages.
fn fetches_little_more_than_the_tree(count: u32, size: usize, pages: u64) {
    let dir = directory();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let on_disk = make_of_holes(&source.join("db"), count, size);
    let tree = tree_bytes(&source.join("db"));
    assert_eq!(tree, pages * 4096, "no longer the tree that py-lmdb makes");
    for command in ["info", "map"] {
        let Some(mount) = slowfs::mount(&source, &dir.path().join(command), &LATENCY_AND_BANDWIDTH) else { return };
        let text = succeed(&["lmdb", command, mount.path.join("db").to_str().unwrap()]);
        let fetched = mount.take_counts("data.mdb").bytes;
        let factor = fetched as f64 / tree as f64;
        eprintln!(
            "{count} x {size}, {on_disk} bytes on disk: `lmdb {command}` fetched {fetched} bytes, {factor:.2} times the tree"
        );
        assert!(text.lines().count() == count as usize || command == "info");
        assert!(factor <= 1.2, "{command}: {fetched} bytes for a tree of {tree}");
    }
}

#[test]
fn ten_thousand_records_of_100_kb() {
    fetches_little_more_than_the_tree(10_000, 100_000, 66);
}

#[test]
fn two_hundred_thousand_records_of_4_kb() {
    fetches_little_more_than_the_tree(200_000, 4096, 1290);
}

/// Records inside leaf pages: one pass at the speed of the storage, in little memory.
#[test]
fn records_of_100_bytes() {
    if !have_py_lmdb() || !have("/usr/bin/time", &["true"]) {
        return;
    }
    let dir = directory();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    make(&source.join("db"), 1_281_167, 100, false);
    let bytes = std::fs::metadata(source.join("db/data.mdb")).unwrap().len();
    let commands: [&[&str]; 3] = [&["info"], &["map", "-o", "/dev/null"], &["map", "--binary", "-o", "/dev/null"]];
    for (number, command) in commands.into_iter().enumerate() {
        let place = dir.path().join(format!("mount{number}"));
        let Some(mount) = slowfs::mount(&source, &place, &LATENCY_AND_BANDWIDTH) else { return };
        let begin = Instant::now();
        let mut timed = Command::new("/usr/bin/time");
        timed.args(["-f", "%M", env!("CARGO_BIN_EXE_precache-lmdb"), "lmdb"]).args(command);
        let output = timed.arg(mount.path.join("db")).output().unwrap();
        let elapsed = begin.elapsed();
        assert!(output.status.success(), "{output:?}");
        let peak: u64 = String::from_utf8(output.stderr).unwrap().trim().parse().unwrap();
        let limit = Duration::from_secs_f64(bytes as f64 / 400e6);
        let counts = mount.take_counts("data.mdb");
        eprintln!("{command:?}: {elapsed:.2?} for {counts:?}, {limit:.2?} at 400 MB/s; {peak} KiB of memory at most");
        assert!(peak < 64 << 10, "{command:?}: {peak} KiB");
        is_one_pass_at_the_storages_speed(&counts, bytes);
    }
}

/// Whatever else the machine does meanwhile: once, in requests so large and so many at a time that latencies hide behind
/// each other (8 of 100 KiB in 2 ms are 400 MB/s). One page at a time would take a hundred times as long.
fn is_one_pass_at_the_storages_speed(counts: &slowfs::Counts, bytes: u64) {
    assert!(counts.bytes as f64 <= 1.05 * bytes as f64, "{counts:?} for {bytes} bytes");
    assert!(counts.bytes / counts.requests >= 64 << 10 && counts.in_flight >= 8, "{counts:?}");
}

/// Duplicates lie in trees of their own, which no statistics count.
#[test]
fn duplicates_are_not_fetched_page_by_page() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let script = r#"
import lmdb, sys
env = lmdb.open(sys.argv[1], map_size=1 << 30, max_dbs=2, sync=False)
dups = env.open_db(b"dups", dupsort=True)
with env.begin(write=True) as txn:
    for key in range(20):
        for i in range(20000): txn.put(b"%02d" % key, b"%064d" % i, db=dups)
"#;
    python_ok(script, &[source.join("db").to_str().unwrap()]);
    let bytes = std::fs::metadata(source.join("db/data.mdb")).unwrap().len();
    for (name, more) in [("all", &[][..]), ("one", &["--name", "dups"])] {
        let Some(mount) = slowfs::mount(&source, &dir.path().join(name), &LATENCY_AND_BANDWIDTH) else { return };
        succeed(&[&["lmdb", "map", "-o", "/dev/null", mount.path.join("db").to_str().unwrap()], more].concat());
        is_one_pass_at_the_storages_speed(&mount.take_counts("data.mdb"), bytes);
    }
}

#[test]
fn a_file_system_that_refuses_locks() {
    if !have_py_lmdb() || !have("mdb_dump", &["-V"]) {
        return;
    }
    let dir = directory();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    make(&source.join("db"), 500, 500, false);
    let Some(mount) = slowfs::mount(&source, &dir.path().join("mount"), &["--writable", "--no-locks"]) else { return };
    let (db, out) = (mount.path.join("db"), dir.path().join("out"));
    let (db, out) = (db.to_str().unwrap(), out.to_str().unwrap());

    let dump = |path: &str| Command::new("mdb_dump").arg(path).output().unwrap();
    for without in [python(READ_ALL, &[db]), dump(db)] {
        assert!(!without.status.success());
        assert!(String::from_utf8_lossy(&without.stderr).contains("No locks available"), "{without:?}");
    }
    let report = json(&succeed(&["lockfile", "check", "--json", "--watch", "0", db]));
    assert_eq!((&report["locks"], &report["other_machines"]), (&"refused".into(), &true.into()));
    let report = succeed(&["lockfile", "check", "--watch", "0", db]);
    assert!(report.contains("elsewhere     unknown on other machines"), "{report}");
    assert!(report.contains("refused; unknown on other machines") && !report.contains("safe:"), "{report}");
    let doctor = json(&succeed(&["lmdb", "doctor", "--json", db]));
    let locks = doctor.as_array().unwrap().iter().find(|found| found["subject"] == "locks").unwrap();
    assert_eq!(locks["hurts"], true);
    // The command that it gives is one that works here.
    let told = locks["command"].as_str().unwrap().replace("PROCESSES", "2");
    let script = format!("precache() {{ \"$0\" \"$@\"; }}\n{told}\necho \"$OUT\"");
    let mut shell = Command::new("sh");
    shell.args(["-ec", &script, env!("CARGO_BIN_EXE_precache-lmdb")]).env("TMPDIR", dir.path());
    let done = shell.output().unwrap();
    let mended = format!("{}/replicas/rank-0001", String::from_utf8(done.stdout).unwrap().trim_end());
    assert!(python(READ_ALL, &[&mended]).status.success(), "{told}: {:?}", String::from_utf8(done.stderr));

    let doubt = fail(&["lockfile", "replicate", db, out, "-n", "2"], 1);
    assert!(doubt.contains("other machines may use this file system (fuse)"), "{doubt}");
    assert!(doubt.contains("a writer would reuse them, and readers would see garbage"), "{doubt}");
    let made = run(&["lockfile", "replicate", db, out, "-n", "2", "--assume-read-only"]);
    assert!(made.status.success() && made.stderr.is_empty(), "{made:?}");
    let expected = python_ok(READ_ALL, &[source.join("db").to_str().unwrap()]);
    assert_eq!(python_ok(READ_ALL, &[&format!("{out}/rank-0001")]), expected);
    assert!(dump(&format!("{out}/rank-0000")).status.success());

    // slowfs has no symbolic links either.
    let no_links = mount.path.join("out");
    let error = fail(&["lockfile", "replicate", db, no_links.to_str().unwrap(), "-n", "2", "--assume-read-only"], 1);
    assert!(error.contains("cannot make a symbolic link") && error.contains("choose an OUT"), "{error}");
}

/// Nothing fails there: a writer simply does not see its readers.
#[test]
fn a_file_system_that_forgets_locks() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    make(&source.join("db"), 500, 500, false);
    let options = ["--writable", "--forget-locks"];
    let Some(mount) = slowfs::mount(&source, &dir.path().join("mount"), &options) else { return };
    let (db, out) = (mount.path.join("db"), dir.path().join("out"));
    let (db, out) = (db.to_str().unwrap(), out.to_str().unwrap());
    let report = json(&succeed(&["lockfile", "check", "--json", "--watch", "0", db]));
    assert_eq!(report["locks"], "ignored");
    let doctor = succeed(&["lmdb", "doctor", db]);
    assert!(doctor.contains("!! locks         taken and not seen by others"), "{doctor}");
    succeed(&["lockfile", "replicate", db, out, "-n", "1", "--assume-read-only"]);
    assert_eq!(python_ok(READ_ALL, &[&format!("{out}/rank-0000")]), python_ok(READ_ALL, &[db]));
}
