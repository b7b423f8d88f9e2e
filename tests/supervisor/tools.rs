//! The tools for LMDB that `precache` carries: each is there, and its child that walks the database is this program again.
//! What they do is tested beside them (`lmdb-tools/tests`).

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::stage::finish;
use precache_tests::programs::program;
use precache_tests::storage::lmdb;

/// Arguments, exit status, and what is said.
type Case<'a> = (&'a [&'a str], i32, &'a str);

#[test]
fn precache_has_the_tools_for_lmdb() {
    let database = lmdb(8);
    let folder = tempfile::tempdir().unwrap();
    let (out, cut) = (folder.path().join("out"), folder.path().join("cut.mdb"));
    std::fs::copy(database.join("data.mdb"), &cut).unwrap();
    File::options().write(true).open(&cut).unwrap().set_len(16 << 10).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (db, out, cut) = (&*text(&database), &*text(&out), &*text(&cut));
    let cases: [Case; 13] = [
        (&["lmdb", "info", db], 0, "\npage size      4 KiB\n"),
        (&["lmdb", "map", db], 0, "00000007\t"),
        (&["lmdb", "ranges", "-n", "2", db], 0, "--range /"),
        (&["lmdb", "doctor", db], 0, "ok key order"),
        (&["stripe-advise", db, "--batch-size", "8", "--fs", "lustre"], 0, "lfs migrate"),
        (&["lockfile", "replicate", db, out, "-n", "1", "--assume-read-only"], 0, ""),
        (&["lockfile", "rank-dir", out, "--rank", "0"], 0, "/out/rank-0000\n"),
        (&["lockfile", "check", "--watch", "0", db], 0, "writers here  none found"),
        (&["lockfile", "remove", out], 0, "removed 1 replicas"),
        (&["lmdb", "info", cut], 1, "cut.mdb: truncated: "),
        (&["lmdb", "info", "/etc/passwd"], 1, "precache: /etc/passwd: not an LMDB data file"),
        (&["lmdb", "ranges", db], 2, "precache: how many ranges?"),
        (&["lockfile", "check", "/etc/passwd"], 3, "precache: /etc/passwd: not an LMDB data file"),
    ];
    for (arguments, status, says) in cases {
        let finished = finish(Command::new(program("precache")).args(arguments));
        assert_eq!(finished.status.code(), Some(status), "{arguments:?}: {finished:?}");
        let (said, silent) = match (status, arguments[1]) {
            (0, "remove") | (1.., _) => (&finished.stderr, &finished.stdout),
            _ => (&finished.stdout, &finished.stderr),
        };
        assert!(said.contains(says) && silent.is_empty(), "{arguments:?}: {finished:?}");
    }
}
