//! What the tests share: the program under test, databases to try it on, and other people's readers.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use tempfile::TempDir;

/// A directory that others may enter, too.
pub fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// The program under test, without the rank of a job that the tests may themselves run in.
pub fn tool() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_precache-lmdb"));
    let variables = ["OMPI_COMM_WORLD", "PMI"].map(|launcher| [format!("{launcher}_RANK"), format!("{launcher}_SIZE")]);
    for name in variables.iter().flatten().map(String::as_str).chain(["SLURM_PROCID", "SLURM_NTASKS"]) {
        command.env_remove(name);
    }
    command
}

/// Runs the program; its output.
pub fn run(args: &[&str]) -> Output {
    tool().args(args).output().unwrap()
}

/// Runs the program, which must succeed; its stdout.
pub fn succeed(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program, which must fail with this code; its stderr.
pub fn fail(args: &[&str], code: i32) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What `lmdb info` says of a database.
pub fn info(db: &Path) -> serde_json::Value {
    json(&succeed(&["lmdb", "info", "--json", db.to_str().unwrap()]))
}

/// Runs a script with Debian's Python, which has py-lmdb (with Debian's liblmdb, 0.9); its output.
pub fn python(script: &str, args: &[&str]) -> Output {
    Command::new(PYTHON).arg("-c").arg(script).args(args).stdin(Stdio::null()).output().unwrap()
}

pub fn python_ok(script: &str, args: &[&str]) -> String {
    let output = python(script, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub const PYTHON: &str = "/usr/bin/python3";

/// What the machine lacks for a test; under PRECACHE_TESTS_COMPLETE, which a machine with everything sets, that is a
/// failure.
pub fn lacking(what: &str) {
    assert!(std::env::var_os("PRECACHE_TESTS_COMPLETE").is_none(), "this machine should have {what}");
    eprintln!("not all is tested: there is no {what} here");
}

/// Whether something that the test needs is installed; says what is missing.
pub fn have(program: &str, args: &[&str]) -> bool {
    let works = Command::new(program).args(args).output().is_ok_and(|output| output.status.success());
    if !works {
        lacking(&format!("working `{program} {}`", args.join(" ")));
    }
    works
}

pub fn have_py_lmdb() -> bool {
    have(PYTHON, &["-c", "import lmdb"])
}

pub fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        lacking("root, to act as another user");
    }
    root
}

/// Has py-lmdb write `count` records of `size` bytes, key `%08d`, value made from the key; in key order or shuffled.
pub fn make(path: &Path, count: u32, size: u32, shuffled: bool) {
    let script = r#"
import lmdb, random, sys
path, count, size, shuffled = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "true"
env = lmdb.open(path, map_size=4 << 30, sync=False)
order = list(range(count))
if shuffled: random.Random(1).shuffle(order)
for lo in range(0, count, 10000):
    with env.begin(write=True) as txn:
        for i in order[lo:lo + 10000]:
            key = b"%08d" % i
            txn.put(key, (key * (size // 8 + 1))[:size], append=not shuffled)
env.close()
"#;
    let args = [path.to_str().unwrap(), &count.to_string(), &size.to_string(), &shuffled.to_string()];
    python_ok(script, &args);
}

/// Reads a whole database with py-lmdb, as a read-only user would: number of records and a checksum.
pub const READ_ALL: &str = r#"
import lmdb, sys, zlib
subdir = not sys.argv[1].endswith(".mdb")
env = lmdb.open(sys.argv[1], readonly=True, subdir=subdir)
total = checksum = 0
with env.begin() as txn:
    for key, value in txn.cursor():
        total += 1
        checksum = zlib.crc32(value, zlib.crc32(key, checksum))
print(total, checksum)
"#;

/// A program that other users may run: the target directory may be closed to them. It is another process that writes it,
/// for a child forked meanwhile by another thread would hold it open for writing, and executing it would fail (ETXTBSY).
pub fn for_others(dir: &Path) -> PathBuf {
    let copy = dir.join("precache-lmdb");
    let installed =
        Command::new("install").args(["-m", "755", env!("CARGO_BIN_EXE_precache-lmdb")]).arg(&copy).status();
    assert!(installed.unwrap().success());
    copy
}

/// Runs a program as the user nobody.
pub fn as_nobody(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program).stdin(Stdio::null());
    command
}

/// The names in a directory.
pub fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What is in a directory: names, times of modification, contents.
pub fn state(db: &Path) -> Vec<(String, SystemTime, Vec<u8>)> {
    let entry = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let modified = entry.metadata().unwrap().modified().unwrap();
        (entry.file_name().into_string().unwrap(), modified, fs::read(entry.path()).unwrap())
    };
    let mut state: Vec<_> = fs::read_dir(db).unwrap().map(entry).collect();
    state.sort();
    state
}
