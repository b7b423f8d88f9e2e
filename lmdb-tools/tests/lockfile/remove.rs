//! What remove deletes, and what it does not.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use super::support::*;
use super::*;

#[test]
fn remove_deletes_only_what_replicate_made() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, out) = database();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("notes"), "mine").unwrap();
    fs::create_dir(out.join("rank-0009")).unwrap();
    symlink(&db, out.join("rank-0008")).unwrap();
    make_replicas(&db, &out, 2);

    fs::write(out.join("rank-0001/mine"), "").unwrap();
    assert!(fail(&["lockfile", "remove", text(&out)], 1).contains("holds more than replicate made (mine)"));
    assert!(out.join("rank-0000").exists(), "an error must leave everything in place");
    fs::remove_file(out.join("rank-0001/mine")).unwrap();

    let script =
        "import lmdb, sys\nenv = lmdb.open(sys.argv[1], readonly=True)\nprint('open', flush=True)\nsys.stdin.read()";
    let replica = out.join("rank-0000");
    let mut reader = begun(PYTHON, &["-c", script, text(&replica)]);
    assert!(fail(&["lockfile", "remove", text(&out)], 1).contains("a reader has it open"));
    drop(reader.stdin.take());
    reader.wait().unwrap();

    succeed(&["lockfile", "remove", text(&out)]);
    assert_eq!(names(&out), ["notes", "rank-0008", "rank-0009"].map(String::from).into());
    assert!(db.join("data.mdb").exists() && db.join("lock.mdb").exists());
    drop(dir);
}

#[test]
fn remove_finishes_what_was_left_half_done() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    make_replicas(&db, &out, 4);
    // What somebody deleted, what a killed replicate left, and what a killed remove left.
    fs::remove_file(out.join("rank-0001/lock.mdb")).unwrap();
    fs::remove_file(out.join("rank-0002/data.mdb")).unwrap();
    for missing in ["0001", "0002"] {
        let error = fail(&["lockfile", "rank-dir", text(&out), "--rank", missing], 1);
        assert!(error.contains("lacks its"), "{error}");
    }
    fs::create_dir(out.join(".precache-unfinished-empty")).unwrap();
    fs::create_dir(out.join(".precache-unfinished-noted")).unwrap();
    fs::write(out.join(".precache-unfinished-noted/.precache-replica"), "lock.m").unwrap();
    fs::rename(out.join("rank-0003"), out.join(".precache-unfinished-gone")).unwrap();
    succeed(&["lockfile", "remove", text(&out)]);
    assert!(!out.exists());
    succeed(&["lockfile", "remove", text(&out)]);
}

#[test]
fn remove_spares_what_took_the_place_of_the_link() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    make_replicas(&db, &out, 2);
    let place = out.join("rank-0001/data.mdb");
    fs::remove_file(&place).unwrap();
    fs::write(&place, "precious").unwrap();
    assert!(fail(&["lockfile", "remove", text(&out)], 1).contains("(data.mdb)"));
    assert_eq!(fs::read(&place).unwrap(), b"precious");
    // Nor does it touch a directory that never was an OUT.
    assert!(fail(&["lockfile", "remove", text(&db)], 1).contains("nothing in it was made by replicate"));
    assert!(db.join("data.mdb").exists());
}

#[test]
fn many_remove_at_once() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    for _ in 0..5 {
        make_replicas(&db, &out, 64);
        let start = || tool().args(["lockfile", "remove", text(&out)]).stderr(Stdio::piped()).spawn().unwrap();
        let children: Vec<Child> = (0..16).map(|_| start()).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        assert!(!out.exists());
    }
}

/// What a killed remove left may bear the number of the process that comes after it.
#[test]
fn a_remove_that_was_killed_is_in_nobodys_way() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    make_replicas(&db, &out, 2);
    let script = "mv \"$2/rank-0001\" \"$2/.precache-unfinished-$$-0-rank-0000\" && exec \"$1\" lockfile remove \"$2\"";
    let mut remove = Command::new("sh");
    remove.args(["-c", script, "sh", env!("CARGO_BIN_EXE_precache-lmdb"), text(&out)]);
    let output = remove.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!out.exists());
}
