//! The reader table, with real readers in processes of their own: alive, closed, killed, and long gone.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::*;

/// Opens the database and holds a snapshot until it is told to end, which it does properly: closing the environment.
const READER: &str = "
import lmdb, sys
env = lmdb.open(sys.argv[1], readonly=True)
txn = env.begin()
print('reading', flush=True)
sys.stdin.readline()
txn.abort()
env.close()
";

struct Reader(Child);

impl Reader {
    fn start(db: &Path) -> Self {
        let mut reader = Command::new(PYTHON);
        reader.args(["-c", READER]).arg(db).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut reader = Self(reader.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(reader.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "reading\n");
        reader
    }

    fn close(mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(self.0.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What the commands say, which must be the same: slots taken, and stale ones among them.
fn table(db: &Path) -> (u64, u64) {
    let info = info(db)["readers"].clone();
    let db = db.to_str().unwrap();
    let check = json(&succeed(&["lockfile", "check", "--json", "--watch", "0", db]))["reader_table"].clone();
    assert_eq!(info, check);
    assert_eq!(info["slots"], 126);
    let (used, stale) = (info["used"].as_u64().unwrap(), info["stale"].as_u64().unwrap());
    let doctor = succeed(&["lmdb", "doctor", db]);
    let line = doctor.lines().find(|line| line[2..].trim_start().starts_with("readers")).unwrap();
    assert!(line.contains(&format!("{used} of 126 slots taken, {stale} of them stale")), "{doctor}");
    assert_eq!(line.starts_with("!!"), stale > 0, "{doctor}");
    (used, stale)
}

/// Slots taken as liblmdb itself tells (`mdb_reader_list`). Not while nobody has the database open: asking begins a new
/// table.
fn told_by_liblmdb(db: &Path) -> u64 {
    let output = Command::new("mdb_stat").arg("-r").arg(db).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().skip_while(|line| !line.contains("pid")).skip(1);
    rows.take_while(|line| line.starts_with(' ')).count() as u64
}

#[test]
fn readers_that_live_close_and_die() {
    if !have_py_lmdb() || !have("mdb_stat", &["-V"]) {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 10, 10, false);
    assert_eq!(table(&db), (0, 0));

    let [lives, closes, dies, dies_too] = [(); 4].map(|()| Reader::start(&db));
    assert_eq!((table(&db), told_by_liblmdb(&db)), ((4, 0), 4));
    closes.close();
    assert_eq!((table(&db), told_by_liblmdb(&db)), ((3, 0), 3));
    dies.kill();
    dies_too.kill();
    assert_eq!((table(&db), told_by_liblmdb(&db)), ((3, 2), 3));

    // The last to have it open leaves: what the table holds now means nothing any more.
    lives.kill();
    assert_eq!(table(&db), (0, 0));
    // A new table begins, behind whose end the old one still lies.
    let next = Reader::start(&db);
    assert_eq!((table(&db), told_by_liblmdb(&db)), ((1, 0), 1));
    let lock = fs::read(db.join("lock.mdb")).unwrap();
    assert!(lock[128 + 64..].iter().any(|&byte| byte != 0), "the old table should still be there");

    // What the doctor says against stale readers helps.
    Reader::start(&db).kill();
    assert_eq!(table(&db), (2, 1));
    let findings = json(&succeed(&["lmdb", "doctor", "--json", db.to_str().unwrap()]));
    let of_readers = findings.as_array().unwrap().iter().find(|finding| finding["subject"] == "readers").unwrap();
    Command::new("sh").args(["-c", of_readers["command"].as_str().unwrap()]).output().unwrap();
    assert_eq!(table(&db), (1, 0));
    next.close();
}

/// LMDB's newer branch, which heed uses, has another lock file format.
#[test]
fn readers_of_the_newer_branch() {
    let dir = directory();
    // SAFETY: the environment is opened once in this process and its file is not touched by others meanwhile.
    let env = unsafe { heed::EnvOpenOptions::new().read_txn_without_tls().max_readers(7).open(dir.path()) }.unwrap();
    let table = || info(dir.path())["readers"].clone();
    let expected = |used: u32| json!({ "slots": 7, "used": used, "stale": 0 });
    assert_eq!(table(), expected(0));
    let mut readers: Vec<_> = (0..3).map(|_| env.read_txn().unwrap()).collect();
    assert_eq!(table(), expected(3));
    readers.remove(1);
    assert_eq!(table(), expected(2));
}

#[test]
fn what_is_no_reader_table() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 10, 10, false);
    let lock = db.join("lock.mdb");
    let made = fs::read(&lock).unwrap();
    let mut newest = made.clone();
    newest[4..8].copy_from_slice(&77_u32.to_ne_bytes());
    let damaged = [&made[..56], &[0xFF; 100], &made[156..]].concat();
    for (content, why) in [
        (&b""[..], "nobody has opened the database with it yet"),
        (b"something else", "not a lock file of LMDB"),
        (&[0; 8192], "not a lock file of LMDB"),
        (&made[..100], "not a lock file of LMDB"),
        (&newest, "of the format 0x4d"),
    ] {
        fs::write(&lock, content).unwrap();
        for command in ["info", "doctor"] {
            let text = succeed(&["lmdb", command, db.to_str().unwrap()]);
            assert!(text.contains(why), "{text}");
        }
        let report = json(&succeed(&["lockfile", "check", "--json", "--watch", "0", db.to_str().unwrap()]));
        assert!(report["no_reader_table"].as_str().unwrap().contains(why), "{report}");
        assert_eq!(report["reader_table"], Value::Null);
    }
    // More slots said to be reached than there are.
    fs::write(&lock, damaged).unwrap();
    let holder = fs::File::options().read(true).write(true).open(&lock).unwrap();
    let first_byte =
        libc::flock { l_type: libc::F_RDLCK as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 1, l_pid: 0 };
    nix::fcntl::fcntl(&holder, nix::fcntl::FcntlArg::F_SETLK(&first_byte)).unwrap();
    let readers = info(&db)["readers"].clone();
    assert_eq!(readers["slots"], 126);
    fs::remove_file(&lock).unwrap();
    assert!(succeed(&["lmdb", "info", db.to_str().unwrap()]).contains("No such file"));
}
