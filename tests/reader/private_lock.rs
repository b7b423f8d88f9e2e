//! `--private-lock`: LMDB readers that the shared lock file would stop. Each is shown to fail without it.

use precache_tests::programs::{install, precache_run};
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{SlowStorage, can_mount, lmdb, scratch};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
        precache_tests::storage::lacking(&format!("module lmdb for {PYTHON}"));
    }
    has_lmdb.then(|| Program::new(words))
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

#[test]
fn a_lock_file_that_may_not_be_written_stops_nobody() {
    let database = database("foreign");
    let Some(reader) = reader(&database, "0") else { return };
    assert!(reader.alone().status.success());
    fs::set_permissions(database.join("lock.mdb"), Permissions::from_mode(0o644)).unwrap();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"].map(Into::into);
    let as_nobody = Program::new(nobody.into_iter().chain(reader.0.clone()));
    let alone = as_nobody.alone();
    assert!(alone.stderr.contains("Permission denied"), "{alone:?}");
    // In a place that everybody may reach, with no home to keep the library in.
    let supervisor = scratch().join("precache-run");
    install(&precache_run(), &supervisor);
    let options = ["-q", "--private-lock", "--"].map(Into::into);
    let words = [supervisor.into_os_string()].into_iter().chain(options).chain(reader.0.clone());
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"].map(Into::into);
    let under = Program::new(nobody.into_iter().chain(words)).alone();
    assert_eq!(under, reader.alone());
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

#[test]
fn a_writer_gets_the_shared_lock_file_and_a_warning() {
    let database = database("written");
    let code = "
import lmdb, sys
env = lmdb.open(sys.argv[1], map_size=1 << 30)
with env.begin(write=True) as txn:
    print(txn.put(b'key', b'value'))
";
    if reader(&database, "0").is_none() {
        return;
    }
    let words = [PYTHON.into(), "-c".into(), code.into(), database.clone().into_os_string()];
    let (left, report) = Program::new(words).under(&["--private-lock"]);
    assert_eq!(left.stdout, b"True\n");
    assert!(database.join("lock.mdb").exists());
    assert_eq!(private_locks(&report), 0);
    assert!(report.text().contains("\"private\":false"), "{:#}", report.0);
}

/// Somebody else's writer cannot be kept from what it does, but it is told of.
#[test]
fn a_writer_elsewhere_is_told_of() {
    let database = database("written-elsewhere");
    let Some(reader) = reader(&database, "0") else { return };
    let code = "
import lmdb, sys
env = lmdb.open(sys.argv[1], map_size=1 << 30)
print('open', flush=True)
sys.stdin.readline()
";
    let mut writer = Command::new(PYTHON)
        .args(["-c", code])
        .arg(&database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(writer.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    let (left, report) = reader.under(&["--private-lock"]);
    drop(writer.stdin.take());
    writer.wait().unwrap();
    assert!(left.status.success());
    assert!(report.text().contains("open for writing"), "{:#}", report.0);
}

/// However a process came to look at the data file before: when it writes, it has the shared lock file.
#[test]
fn a_reader_that_comes_back_as_a_writer_gets_the_shared_lock_file() {
    let write = "
env = lmdb.open(sys.argv[1], map_size=1 << 30)
links = [f'/proc/self/fd/{number}' for number in range(3, 64)]
locks = [os.readlink(link) for link in links if os.path.lexists(link) and 'lock.mdb' in os.readlink(link)]
print(locks == [sys.argv[1] + '/lock.mdb'])
with env.begin(write=True) as txn:
    print(txn.put(b'key', b'value'))
";
    let before = [
        "lmdb.open(sys.argv[1], readonly=True).close()",
        "lmdb.open(sys.argv[1], readonly=True, lock=False).close()",
        "open(sys.argv[1] + '/data.mdb', 'rb').read(100)",
        "env = lmdb.open(sys.argv[1], readonly=True, lock=True); pid = os.fork(); pid and (os.waitpid(pid, 0), os._exit(0)); env.close()",
    ];
    for (number, before) in before.into_iter().enumerate() {
        let database = database(&format!("again-{number}"));
        if reader(&database, "0").is_none() {
            return;
        }
        let code = format!("import lmdb, os, sys\n{before}\n{write}");
        let words = [PYTHON.into(), "-c".into(), code.into(), database.into_os_string()];
        let (left, report) = Program::new(words).under(&["--private-lock"]);
        assert_eq!(String::from_utf8_lossy(&left.stdout), "True\nTrue\n", "{before}: {left:?} {:#}", report.0);
        assert!(report.text().contains("\"private\":false"), "{:#}", report.0);
    }
}

/// A thread that keeps the data file open for reading and then opens the environment for writing looks like a reader
/// until it opens the data file: then it is stopped.
#[test]
fn a_writer_taken_for_a_reader_is_stopped() {
    let code = "
import lmdb, sys
kept = open(sys.argv[1] + '/data.mdb', 'rb')
try:
    lmdb.open(sys.argv[1], map_size=1 << 30)
    print('opened')
except lmdb.Error as error:
    print('Permission denied' in str(error))
";
    let database = database("kept-open");
    if reader(&database, "0").is_none() {
        return;
    }
    let words = [PYTHON.into(), "-c".into(), code.into(), database.into_os_string()];
    let (left, _) = Program::new(words).under(&["--private-lock"]);
    assert_eq!(left.stdout, b"True\n", "{left:?}");
}

#[test]
fn without_the_wish_locks_are_as_ever() {
    let database = database("plain");
    let Some(reader) = reader(&database, "0") else { return };
    let (left, _) = reader.under(&[]);
    assert!(left.status.success());
    assert!(database.join("lock.mdb").exists());
}
