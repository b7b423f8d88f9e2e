//! Files that are not, or no longer, what they should be: a clear error, never a crash, never a hang.

#[path = "../../tests/fuzz/src/mutation.rs"]
mod mutation;
mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mutation::{Random, mutate};
use support::*;

fn error(path: &Path) -> String {
    let text = fail(&["lmdb", "info", path.to_str().unwrap()], 1);
    assert!(text.starts_with("precache-lmdb: ") && text.contains(path.to_str().unwrap()), "{text}");
    text
}

#[test]
fn what_is_no_database() {
    let dir = directory();
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    assert!(error(&dir.path().join("missing")).contains("No such file"));
    assert!(error(dir.path()).contains("no readable data.mdb"));
    assert!(error(&file("empty", b"")).contains("the file is empty"));
    assert!(error(&file("text", &b"hello\n".repeat(2000))).contains("not an LMDB data file"));
    assert!(error(&file("short", b"x")).contains("not an LMDB data file"));
    assert!(error(Path::new("/dev/null")).contains("not a regular file"));
}

#[test]
fn the_next_format_is_refused_by_its_number() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format-1.0.mdb");
    assert!(error(&fixture).contains("format version 3; this program reads version 1"));
}

fn database(dir: &Path) -> PathBuf {
    let db = dir.join("db");
    make(&db, 3000, 900, true);
    make(&db, 200, 9000, false);
    db.join("data.mdb")
}

#[test]
fn a_truncated_file() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let whole = fs::read(database(dir.path())).unwrap();
    let cut = dir.path().join("cut.mdb");
    // Cut inside the two pages that every database begins with; then behind them.
    let short = [1, 10, 15, 17, 20, 22, 24, 39, 43, 100, 4095, 4096, 4097, 8191];
    let long = [8192, 12_288, whole.len() / 2, whole.len() - 4096];
    let cases =
        short.map(|length| (length, format!("truncated: {length} bytes, and an LMDB data file has at least 8192")));
    let counted = whole.len();
    let more = long.map(|length| (length, format!("truncated: {length} bytes, and its header counts {counted}")));
    for (length, expected) in cases.into_iter().chain(more) {
        fs::write(&cut, &whole[..length]).unwrap();
        for command in ["info", "map", "doctor"] {
            let text = fail(&["lmdb", command, cut.to_str().unwrap()], 1);
            let by_record = text.contains("truncated: a record ends at byte") && text.contains(&length.to_string());
            assert!(text.contains("cut.mdb") && (text.contains(&expected) || by_record), "{length}: {text}");
            assert_eq!(text.lines().count(), 1, "{length}: {text}");
        }
    }
}

#[test]
fn what_is_too_short_depends_on_the_page_size() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let cut = dir.path().join("cut.mdb");
    let mut bytes = fs::read(database(dir.path())).unwrap();
    bytes[40..44].copy_from_slice(&32768_u32.to_ne_bytes());
    fs::write(&cut, &bytes[..65_535]).unwrap();
    assert!(error(&cut).contains("truncated: 65535 bytes, and an LMDB data file has at least 65536"));
}

/// What liblmdb has a name for is called what it is, with what to do.
#[test]
fn damage_that_liblmdb_notices() {
    for (stored, what) in [
        ("4872c6907baad9db32730e1ba384a4b56ebc6c4a", "liblmdb says MDB_INVALID"),
        ("5d6b90dd93a53c3eb37a96f3d98612c5ba44d7aa", "liblmdb says MDB_VERSION_MISMATCH"),
        ("076598af6b9024aa2f18c46c30eb055f0cb9c870", "liblmdb says MDB_CORRUPTED"),
        ("0e8c44b9b919615ff0e939bbfd659fbad9cf6bd9", "liblmdb says MDB_PAGE_NOTFOUND"),
        ("branch-in-circles", "liblmdb says MDB_CURSOR_FULL"),
        ("map-size-huge", "its header asks for a map larger than any address space"),
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/fuzz/corpus/walk/{stored}.mdb"));
        let text = error(&file);
        assert!(text.contains(&format!("damaged: {what}")) && text.contains("Compare it with its original"), "{text}");
    }
}

/// A page on which liblmdb searches for ever, both in a walk and for a name.
#[test]
fn a_search_without_an_end() {
    let endless = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus/walk/search-in-circles.mdb");
    assert!(error(&endless).contains("liblmdb goes in circles"));
    let by_name = fail(&["lmdb", "map", "--name", "a", endless.to_str().unwrap()], 1);
    assert!(by_name.contains("liblmdb goes in circles"), "{by_name}");
}

/// Many small databases, each damaged in its own way: those of the corpus, which were damaged by hand, and then as many
/// mutants as the time allows; the seed is fixed.
#[test]
fn mutated_databases() {
    const BUDGET: Duration = Duration::from_secs(15);
    let dir = directory();
    let path = dir.path().join("mutant.mdb");
    for stored in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus/walk")).unwrap() {
        let stored = stored.unwrap().path();
        if stored.extension().is_none_or(|extension| extension != "mdb") {
            continue;
        }
        fs::copy(&stored, &path).unwrap();
        for command in COMMANDS {
            survive(command, &path, &stored.display().to_string());
        }
    }
    if !have_py_lmdb() {
        return;
    }
    let corpus = corpus(dir.path());
    let mut random = Random(0x5EED);
    let begin = Instant::now();
    let (mut crashes, mut errors, mut fine) = (0, 0, 0);
    for round in 0.. {
        if begin.elapsed() > BUDGET {
            break;
        }
        let mut bytes = corpus[round % corpus.len()].clone();
        mutate(&mut bytes, &mut random);
        fs::write(&path, &bytes).unwrap();
        *match survive(COMMANDS[round % COMMANDS.len()], &path, &format!("round {round}")) {
            Outcome::Crash => &mut crashes,
            Outcome::Error => &mut errors,
            Outcome::Fine => &mut fine,
        } += 1;
    }
    eprintln!("{crashes} crashes of liblmdb contained, {errors} other errors, {fine} harmless");
    assert!(errors > 0 && fine > 0);
}

const COMMANDS: [&str; 3] = ["info", "map", "ranges"];

/// How a command ended that did what it should.
enum Outcome {
    /// liblmdb's, in the child.
    Crash,
    Error,
    Fine,
}

/// Runs one command on one database, which it must survive.
fn survive(command: &str, path: &Path, what: &str) -> Outcome {
    let mut tool = tool();
    tool.args(["lmdb", command, path.to_str().unwrap()]);
    if command == "ranges" {
        tool.args(["-n", "3"]);
    }
    let child = tool.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let output = wait(child, Duration::from_secs(60)).unwrap_or_else(|| {
        let kept = std::env::temp_dir().join("precache-lmdb-hang.mdb");
        fs::copy(path, &kept).unwrap();
        panic!("{what}: `lmdb {command}` hangs on {}", kept.display())
    });
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), None, "{what}: {text}");
    assert!(!text.contains("panicked"), "{what}: {text}");
    match output.status.code() {
        Some(0) => Outcome::Fine,
        Some(1) if text.contains("liblmdb crashed") => Outcome::Crash,
        // Damage may be to names only, so that ranges finds several databases, or none of that name.
        Some(1 | 2) if text.contains("mutant.mdb") || text.contains("--name") => Outcome::Error,
        code => panic!("{what}: exit code {code:?}: {text}"),
    }
}

fn wait(child: std::process::Child, patience: Duration) -> Option<std::process::Output> {
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    let (done, finished) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    let output = finished.recv_timeout(patience).ok();
    if output.is_none() {
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    waiter.join().unwrap().ok();
    output
}

/// A database of each kind, small enough that every page matters.
fn corpus(dir: &Path) -> Vec<Vec<u8>> {
    let script = r#"
import lmdb, struct, sys
def env(name, **more): return lmdb.open(sys.argv[1] + "/" + name, map_size=1 << 22, subdir=False, **more)
with env("leaf.mdb").begin(write=True) as txn:
    for i in range(400): txn.put(b"%06d" % i, b"v" * (i % 90))
with env("overflow.mdb").begin(write=True) as txn:
    for i in range(60): txn.put(b"%06d" % i, b"v" * 6000)
many = env("named.mdb", max_dbs=4)
a, b = many.open_db(b"a"), many.open_db(b"b", dupsort=True, dupfixed=True)
with many.begin(write=True) as txn:
    for i in range(100): txn.put(b"%d" % i, b"x" * i, db=a)
    for i in range(900): txn.put(b"%d" % (i % 3), struct.pack("=Q", i), db=b)
with many.begin(write=True) as txn:
    for i in range(50): txn.delete(b"%d" % i, db=a)
"#;
    python_ok(script, &[dir.to_str().unwrap()]);
    ["leaf", "overflow", "named"].iter().map(|name| fs::read(dir.join(format!("{name}.mdb"))).unwrap()).collect()
}
