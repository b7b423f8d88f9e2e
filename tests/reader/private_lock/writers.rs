//! Programs that write: they must have the shared lock file, and are told of.

use super::*;
use precache_tests::runs::finish;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

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
    // As a user sees it.
    let said = finish(Command::new(precache_run()).args(["--private-lock", "--", PYTHON, "-c", code]).arg(&database));
    let warning = format!(
        "warning: {} was opened for writing, 1 time, with the shared lock file: readers with private lock files do not \
         protect the pages that they read from its writer",
        database.join("data.mdb").display()
    );
    assert!(said.stderr.contains(&warning), "{said:?}");
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

/// A program that keeps the data file open by itself, read or not, and then opens the environment for writing.
#[test]
fn a_writer_that_keeps_the_data_file_open_gets_the_shared_lock_file() {
    let code = "
import lmdb, os, sys
kept = open(sys.argv[1] + '/data.mdb', 'rb')
env = lmdb.open(sys.argv[1], map_size=1 << 30)
links = [f'/proc/self/fd/{number}' for number in range(3, 64)]
locks = [os.readlink(link) for link in links if os.path.lexists(link) and 'lock.mdb' in os.readlink(link)]
print(locks == [sys.argv[1] + '/lock.mdb'])
with env.begin(write=True) as txn:
    print(txn.put(b'key', b'value'))
";
    let database = database("kept-open");
    if reader(&database, "0").is_none() {
        return;
    }
    let words = [PYTHON.into(), "-c".into(), code.into(), database.into_os_string()];
    let (left, report) = Program::new(words).under(&["--private-lock"]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "True\nTrue\n", "{left:?} {:#}", report.0);
    assert_eq!(private_locks(&report), 0);
}

/// What opens files just as a reader does, even with their names where a reader has them, until it opens the data file
/// for writing: then it is stopped, for its lock file is a private one.
#[test]
fn a_writer_taken_for_a_reader_is_stopped() {
    let code = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
name = ctypes.create_string_buffer(4096)
def opened(file, flags):
    name.value = (sys.argv[1] + file).encode()
    return libc.open(name, flags, 0o644)
print(opened('/data.mdb', os.O_RDONLY) >= 0, opened('/lock.mdb', os.O_RDWR | os.O_CREAT) >= 0)
print(opened('/data.mdb', os.O_RDWR), os.strerror(ctypes.get_errno()))
";
    let database = database("taken-for-a-reader");
    let words = [PYTHON.into(), "-c".into(), code.into(), database.clone().into_os_string()];
    let (left, _) = Program::new(words).under(&["--private-lock"]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "True True\n-1 Permission denied\n", "{left:?}");
    assert!(!database.join("lock.mdb").exists());
}
