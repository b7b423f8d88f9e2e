//! `--private-lock`: LMDB readers that the shared lock file would stop. Each is shown to fail without it.

use precache_tests::programs::{install, precache_run};
use precache_tests::runs::{Left, Program, Report};
use precache_tests::storage::{SlowStorage, can_mount, lacking, lmdb, scratch};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

mod writers;

const PYTHON: &str = "/usr/bin/python3";

/// Opens the database for reading, with locks, and prints a checksum of its first record. With a second argument, so
/// many processes hold a reader slot at the same time.
const READER: &str = "
import lmdb, os, sys, zlib
def read():
    env = lmdb.open(sys.argv[1], readonly=True, lock=True, subdir=os.path.isdir(sys.argv[1]))
    txn = env.begin(buffers=True)
    return env, txn, zlib.crc32(next(iter(txn.cursor()))[1])
count = int(sys.argv[2]) if len(sys.argv) > 2 else 0
if not count:
    print(read()[2])
done_in, done_out = os.pipe()
hold_in, hold_out = os.pipe()
children = []
for _ in range(count):
    pid = os.fork()
    if not pid:
        os.close(hold_out)
        try:
            kept = read()
            os.write(done_out, b'y')
        except lmdb.Error as error:
            os.write(done_out, b'n')
        os.read(hold_in, 1)
        os._exit(0)
    children.append(pid)
answers = b''
while len(answers) < count:
    answers += os.read(done_in, count)
os.close(hold_out)
for pid in children:
    os.waitpid(pid, 0)
if count:
    print(answers.count(b'y'))
";

/// A database of a test's own, owned by root, in a folder that everybody may enter.
fn database(name: &str) -> PathBuf {
    let copy = scratch().join(name);
    fs::create_dir_all(&copy).unwrap();
    fs::copy(lmdb(96).join("data.mdb"), copy.join("data.mdb")).unwrap();
    for folder in [scratch(), &copy] {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    copy
}

fn reader(database: &Path, count: &str) -> Option<Program> {
    let words = [PYTHON.into(), "-c".into(), READER.into(), database.as_os_str().to_owned(), count.into()];
    let has_lmdb = Program::new([PYTHON, "-c", "import lmdb"]).alone().status.success();
    if !has_lmdb {
        lacking(&format!("module lmdb for {PYTHON}"));
    }
    has_lmdb.then(|| Program::new(words))
}

/// The readers that come with liblmdb.
fn tools_of_liblmdb(database: &Path) -> Vec<Program> {
    let tools = ["mdb_dump", "mdb_stat"].map(|tool| Program::new([tool.into(), database.as_os_str().to_owned()]));
    tools.into_iter().filter(is_there).collect()
}

fn is_there(tool: &Program) -> bool {
    let there = Command::new(&tool.0[0]).arg("-V").output().is_ok_and(|output| output.status.success());
    if !there {
        lacking(&format!("{:?} (lmdb-utils)", tool.0[0]));
    }
    there
}

fn nobody(program: &Program) -> Program {
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"].map(Into::into);
    Program::new(nobody.into_iter().chain(program.0.clone()))
}

/// In a place that everybody may reach, with no home to keep the library in.
fn with_private_lock_as_nobody(program: &Program) -> Left {
    static SUPERVISOR: OnceLock<PathBuf> = OnceLock::new();
    let supervisor = SUPERVISOR.get_or_init(|| {
        let supervisor = scratch().join("precache-run");
        install(&precache_run(), &supervisor);
        supervisor
    });
    let options = ["-q", "--private-lock", "--"].map(Into::into);
    let words = [supervisor.clone().into_os_string()].into_iter().chain(options).chain(program.0.clone());
    nobody(&Program::new(words)).alone()
}

fn private_locks(report: &Report) -> u64 {
    let locks = report.0["session"]["locks"].as_array().cloned().unwrap_or_default();
    locks.iter().filter(|lock| lock["private"] == true).filter_map(|lock| lock["count"].as_u64()).sum()
}

#[test]
fn a_full_reader_table_stops_nobody() {
    let database = database("full");
    let Some(readers) = reader(&database, "200") else { return };
    assert_eq!(readers.alone().stdout, b"126\n");
    let (left, report) = readers.under(&["--private-lock"]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "200\n", "{left:?} {:#}", report.0);
    assert_eq!(private_locks(&report), 200);
}

/// liblmdb's own readers: each holds its slot until somebody reads more of what it prints than a pipe takes.
#[test]
fn a_full_reader_table_stops_no_tool_of_liblmdb() {
    let database = database("full-of-dumps");
    if !is_there(&Program::new(["mdb_dump"])) {
        return;
    }
    let code = "
import subprocess, sys
def dump():
    return subprocess.Popen(['mdb_dump', sys.argv[1]], bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
dumps = [dump() for _ in range(200)]
print(sum(len(dump.stdout.read(1)) for dump in dumps))
for dump in dumps:
    dump.kill()
    dump.wait()
";
    let dumps = Program::new([PYTHON.into(), "-c".into(), code.into(), database.into_os_string()]);
    assert_eq!(dumps.alone().stdout, b"126\n");
    let (left, report) = dumps.under(&["--private-lock"]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "200\n", "{left:?} {:#}", report.0);
    assert_eq!(private_locks(&report), 200);
}

#[test]
fn a_lock_file_that_may_not_be_written_stops_nobody() {
    let database = database("foreign");
    let Some(reader) = reader(&database, "0") else { return };
    assert!(reader.alone().status.success());
    fs::set_permissions(database.join("lock.mdb"), Permissions::from_mode(0o644)).unwrap();
    let alone = nobody(&reader).alone();
    assert!(alone.stderr.contains("Permission denied"), "{alone:?}");
    assert_eq!(with_private_lock_as_nobody(&reader), reader.alone());
    for tool in tools_of_liblmdb(&database) {
        let alone = nobody(&tool).alone();
        assert!(alone.stderr.contains("Permission denied"), "{alone:?}");
        assert_eq!(with_private_lock_as_nobody(&tool), tool.alone());
    }
}

#[test]
fn a_lock_file_that_may_not_be_made_stops_nobody() {
    let database = database("unmade");
    let Some(reader) = reader(&database, "0") else { return };
    for program in [reader].into_iter().chain(tools_of_liblmdb(&database)) {
        let expected = program.alone();
        fs::remove_file(database.join("lock.mdb")).unwrap();
        let alone = nobody(&program).alone();
        assert!(alone.stderr.contains("Permission denied"), "{alone:?}");
        assert_eq!(with_private_lock_as_nobody(&program), expected);
        assert!(!database.join("lock.mdb").exists());
    }
}

#[test]
fn a_file_system_without_locks_stops_nobody() {
    if !can_mount() {
        return;
    }
    let database = database("lockless");
    let storage = SlowStorage::mount(&database, &["--writable", "--no-locks"]);
    let Some(reader) = reader(storage.path(), "0") else { return };
    let alone = reader.alone();
    assert!(!alone.status.success(), "{alone:?}");
    let (left, report) = reader.under(&["--private-lock"]);
    assert!(left.status.success(), "{left:?} {:#}", report.0);
    for tool in tools_of_liblmdb(storage.path()) {
        let alone = tool.alone();
        assert!(alone.stderr.contains("No locks available"), "{alone:?}");
        let (left, report) = tool.under(&["--private-lock"]);
        assert!(left.status.success() && left.stderr.is_empty(), "{left:?} {:#}", report.0);
        assert_eq!(private_locks(&report), 1);
    }
}

#[test]
fn a_database_without_a_folder_has_its_lock_beside_it() {
    let database = database("flat-db").join("data.mdb");
    let Some(reader) = reader(&database, "0") else { return };
    let (left, report) = reader.under(&["--private-lock"]);
    assert!(left.status.success(), "{left:?}");
    assert_eq!(private_locks(&report), 1);
    assert!(!database.with_file_name("data.mdb-lock").exists());
}

/// Only what may be a database is looked into.
#[test]
fn a_file_too_short_for_a_database_is_not_read() {
    if !can_mount() {
        return;
    }
    let folder = scratch().join("short");
    fs::create_dir_all(&folder).unwrap();
    for (name, length) in [("short", 4096), ("long", 8192)] {
        fs::write(folder.join(name), vec![b'x'; length]).unwrap();
    }
    let storage = SlowStorage::mount(&folder, &[]);
    for (name, is_read) in [("short", false), ("long", true)] {
        let open = format!("exec 3< '{}'", storage.path().join(name).display());
        let (left, _) = Program::new(["sh", "-c", &open]).under(&["--private-lock"]);
        assert!(left.status.success(), "{left:?}");
        assert_eq!(storage.bytes_of(name).is_some_and(|bytes| bytes > 0), is_read, "{name}");
    }
}

#[test]
fn without_the_wish_locks_are_as_ever() {
    let database = database("plain");
    let Some(reader) = reader(&database, "0") else { return };
    let (left, _) = reader.under(&[]);
    assert!(left.status.success());
    assert!(database.join("lock.mdb").exists());
}
