//! What replicate makes, whoever makes it how often, and what it leaves alone.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};

use super::support::*;
use super::*;

#[test]
fn a_replica_reads_as_its_original() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    make_replicas(&db, &out, 3);
    let expected = python_ok(READ_ALL, &[text(&db)]);
    for rank in ["0", "1", "2"] {
        let replica = succeed(&["lockfile", "rank-dir", text(&out), "--rank", rank]);
        assert_eq!(python_ok(READ_ALL, &[replica.trim_end()]), expected);
        let lock = out.join(format!("rank-000{rank}/lock.mdb"));
        assert!(fs::symlink_metadata(&lock).unwrap().is_file());
        assert!(fs::metadata(lock).unwrap().len() > 0, "the reader should have made its table there");
    }
    // Again, and more of them: what is there stays.
    make_replicas(&db, &out, 5);
    assert_eq!(names(&out).len(), 5 + 1);
}

#[test]
fn a_database_that_is_a_file() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("train.mdb");
    python_ok(
        "import lmdb, sys\nwith lmdb.open(sys.argv[1], subdir=False).begin(write=True) as t: t.put(b'k', b'v')",
        &[text(&db)],
    );
    let out = dir.path().join("out");
    make_replicas(&db, &out, 1);
    let replica = succeed(&["lockfile", "rank-dir", text(&out), "--rank", "0"]);
    assert!(replica.trim_end().ends_with("/rank-0000/train.mdb"));
    assert_eq!(python_ok(READ_ALL, &[replica.trim_end()]), python_ok(READ_ALL, &[text(&db)]));
    assert!(out.join("rank-0000/train.mdb-lock").is_file());
    succeed(&["lockfile", "remove", text(&out)]);
    assert!(!out.exists());
}

#[test]
fn the_rank_comes_from_the_launcher() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    make_replicas(&db, &out, 4);
    let at = |rank: u32| text(&out.join(format!("rank-{rank:04}"))).to_owned();
    assert_eq!(rank_dir(&out, &[("SLURM_PROCID", "3")]), at(3));
    assert_eq!(rank_dir(&out, &[("PMI_RANK", "2"), ("SLURM_PROCID", "0")]), at(2));
    assert_eq!(rank_dir(&out, &[("OMPI_COMM_WORLD_RANK", "1"), ("PMI_RANK", "2"), ("SLURM_PROCID", "0")]), at(1));
    assert!(fail(&["lockfile", "rank-dir", text(&out)], 2).contains("--rank N"));
    assert!(fail(&["lockfile", "rank-dir", text(&out), "--rank", "4"], 1).contains("-n 5"));
}

/// A script opens what it is told, so it is told the bytes of the name, text or not.
#[test]
fn a_directory_is_told_by_its_very_name() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, _) = database();
    let out = dir.path().join(OsStr::from_bytes(b"o\xFFt"));
    let mut replicate = tool();
    replicate.args(["lockfile", "replicate", text(&db)]).arg(&out).args(["-n", "1", "--assume-read-only"]);
    assert!(replicate.status().unwrap().success());
    let told = tool().args(["lockfile", "rank-dir", "--rank", "0"]).arg(&out).output().unwrap();
    assert_eq!(told.stdout, [out.as_os_str().as_bytes(), b"/rank-0000\n"].concat(), "{told:?}");
}

#[test]
fn sixty_four_processes_at_once() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    let start = || {
        let mut tool = tool();
        tool.args(["lockfile", "replicate", text(&db), text(&out), "-n", "64", "--assume-read-only"]);
        tool.stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..64).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let expected: BTreeSet<_> =
        (0..64).map(|rank| format!("rank-{rank:04}")).chain([".precache-replicas".into()]).collect();
    assert_eq!(names(&out), expected);
    for rank in 0..64 {
        let replica = out.join(format!("rank-{rank:04}"));
        assert_eq!(names(&replica), [".precache-replica", "data.mdb", "lock.mdb"].map(String::from).into());
        assert_eq!(fs::canonicalize(replica.join("data.mdb")).unwrap(), fs::canonicalize(db.join("data.mdb")).unwrap());
    }
}

#[test]
fn only_databases_are_replicated() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, out) = database();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("odd/data.mdb")).unwrap();
    fs::write(at("random.mdb"), [0xA5; 9000]).unwrap();
    nix::unistd::mkfifo(&at("fifo.mdb"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (other, why) in [
        (Path::new("/etc/passwd"), "not an LMDB data file"),
        (&at("random.mdb"), "not an LMDB data file"),
        (&at("odd"), "not a regular file"),
        (&at("fifo.mdb"), "not a regular file"),
    ] {
        let error = fail(&["lockfile", "replicate", text(other), text(&out), "-n", "1", "--assume-read-only"], 1);
        assert!(error.contains(why), "{error}");
        assert!(!out.exists());
    }
    let file = at("random.mdb");
    let onto_a_file = ["lockfile", "replicate", text(&db), text(&file), "-n", "1", "--assume-read-only"];
    let error = fail(&onto_a_file, 1);
    assert!(error.contains("OUT must be a directory"), "{error}");
}

#[test]
fn a_file_named_data_mdb_stays_a_file() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("data.mdb");
    let script =
        "import lmdb, sys\nwith lmdb.open(sys.argv[1], subdir=False).begin(write=True) as t: t.put(b'k', b'v')";
    python_ok(script, &[text(&db)]);
    let out = dir.path().join("out");
    make_replicas(&db, &out, 1);
    let replica = succeed(&["lockfile", "rank-dir", text(&out), "--rank", "0"]);
    assert!(replica.trim_end().ends_with("/rank-0000/data.mdb"), "{replica}");
    assert_eq!(python_ok(READ_ALL, &[replica.trim_end()]), python_ok(READ_ALL, &[text(&db)]));
    let made = [".precache-replica", "data.mdb", "data.mdb-lock"].map(String::from).into();
    assert_eq!(names(&out.join("rank-0000")), made);
}

#[test]
fn what_is_in_the_way_stays() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, out) = database();
    fs::create_dir_all(out.join("rank-0000")).unwrap();
    fs::write(out.join("rank-0000/data.mdb"), "precious").unwrap();
    let args = ["lockfile", "replicate", text(&db), text(&out), "-n", "1", "--assume-read-only"];
    assert!(fail(&args, 1).contains("not a replica that this program made"));
    assert_eq!(fs::read(out.join("rank-0000/data.mdb")).unwrap(), b"precious");

    let (other, out) = (dir.path().join("other"), dir.path().join("out2"));
    make(&other, 1, 1, false);
    make_replicas(&db, &out, 1);
    let args = ["lockfile", "replicate", text(&other), text(&out), "-n", "1", "--assume-read-only"];
    assert!(fail(&args, 1).contains("a replica of"));
}
