//! What `lmdb info` tells of a database, and what `lmdb doctor` advises: its commands are run as they are.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use support::*;

#[test]
fn info_tells_what_the_database_is_like() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let (ordered, shuffled) = (dir.path().join("ordered"), dir.path().join("shuffled"));
    make(&ordered, 2000, 5000, false);
    make(&shuffled, 2000, 5000, true);
    let ordered_info = info(&ordered);
    assert_eq!(ordered_info["page_size"], 4096);
    assert_eq!(ordered_info["map_size"], 4_u64 << 30);
    assert_eq!(ordered_info["databases"][0]["entries"], 2000);
    assert_eq!(ordered_info["overflow_records"], 2000);
    assert_eq!(ordered_info["values"]["mean"], 5000.0);
    assert_eq!(ordered_info["readers"]["slots"], 126);
    assert!(ordered_info["fragmentation"].as_f64().unwrap() < 0.05);
    assert!(info(&shuffled)["fragmentation"].as_f64().unwrap() > 0.9);

    let script = "import lmdb, sys\nenv = lmdb.open(sys.argv[1], map_size=4 << 30)\n\
                  with env.begin(write=True) as txn:\n  for i in range(1000): txn.delete(b'%08d' % i)\n";
    python_ok(script, &[ordered.to_str().unwrap()]);
    assert!(info(&ordered)["free_pages"].as_u64().unwrap() >= 2000);
    let doctor = succeed(&["lmdb", "doctor", shuffled.to_str().unwrap()]);
    assert!(doctor.contains("!! key order") && doctor.contains("$ mkdir NEW && mdb_copy -c"), "{doctor}");
    assert!(doctor.lines().count() < 25);
}

/// Holds a snapshot, with 110 slots of the reader table taken by processes that are gone, each of which was there with all
/// the others.
const GONE_READERS: &str = r#"
import lmdb, os, sys
begun, over = os.pipe(), os.pipe()
for reader in range(110):
    if os.fork() == 0:
        os.close(over[1])
        txn = lmdb.open(sys.argv[1], readonly=True, subdir=os.path.isdir(sys.argv[1])).begin()
        os.write(begun[1], b"+")
        os.read(over[0], 1)
        os._exit(0)
answers = b""
while len(answers) < 110: answers += os.read(begun[0], 110)
txn = lmdb.open(sys.argv[1], readonly=True, subdir=os.path.isdir(sys.argv[1])).begin()
os.close(over[1])
for reader in range(110): os.wait()
print("gone", flush=True)
sys.stdin.readline()
"#;

/// Both conventions, in a directory whose name needs quotes: what the doctor prints is run as it is.
#[test]
fn the_commands_of_the_doctor_work() {
    if !have_py_lmdb() || !have("mdb_copy", &["-V"]) {
        return;
    }
    let dir = directory();
    let odd = dir.path().join("it's a place");
    fs::create_dir(&odd).unwrap();
    make(&odd.join("db"), 2000, 5000, true);
    let file = odd.join("train.mdb");
    fs::copy(odd.join("db/data.mdb"), &file).unwrap();
    for (number, db) in [odd.join("db"), file].iter().enumerate() {
        let mut holder = Command::new(PYTHON);
        holder.args(["-c", GONE_READERS]).arg(db).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = holder.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "gone\n");
        let shell = dir.path().join(format!("shell{number}"));
        fs::create_dir(&shell).unwrap();
        let findings = json(&succeed(&["lmdb", "doctor", "--json", db.to_str().unwrap()]));
        let commands: Vec<_> =
            findings.as_array().unwrap().iter().filter_map(|found| found["command"].as_str()).collect();
        let begins = |with: &str| commands.iter().find(|command| command.contains(with)).unwrap();
        assert_eq!(info(db)["readers"], json!({ "slots": 126, "used": 111, "stale": 110 }));
        for command in [begins("mdb_stat"), begins("mdb_copy")] {
            let output = Command::new("sh").args(["-c", command]).current_dir(&shell).output().unwrap();
            // Not by its status: mdb_stat returns the number of bytes that it printed of the table.
            assert!(output.stderr.is_empty(), "{command}: {output:?}");
        }
        assert_eq!(info(db)["readers"], json!({ "slots": 126, "used": 1, "stale": 0 }));
        drop(holder.stdin.take());
        assert!(holder.wait().unwrap().success());
        let fragmentation = |db: &Path| info(db)["fragmentation"].as_f64().unwrap();
        assert!(fragmentation(db) > 0.9 && fragmentation(&shell.join("NEW")) < 0.1);
    }
}

/// One that holds a single database and one that holds two, in both conventions.
#[test]
fn a_map_that_is_nearly_full() {
    if !have_py_lmdb() || !have("mdb_load", &["-V"]) {
        return;
    }
    let script = r#"
import lmdb, os, sys
path, named = sys.argv[1], sys.argv[2] == "named"
env = lmdb.open(path, map_size=1 << 20, max_dbs=2, subdir=os.path.isdir(path))
dbs = [env.open_db(name) for name in (b"images", b"labels")] if named else [None]
try:
    for i in range(1000):
        with env.begin(write=True) as txn:
            for db in dbs: txn.put(b"%08d" % i, b"x" * 1000, db=db, append=True)
except lmdb.MapFullError: pass
"#;
    let dir = directory();
    for (subdir, named) in [(true, "single"), (false, "named")] {
        let shell = dir.path().join(named);
        let db = shell.join("it's full");
        fs::create_dir_all(if subdir { &db } else { &shell }).unwrap();
        python_ok(script, &[db.to_str().unwrap(), named]);
        let findings = json(&succeed(&["lmdb", "doctor", "--json", db.to_str().unwrap()]));
        let map_size = findings.as_array().unwrap().iter().find(|found| found["subject"] == "map size").unwrap();
        assert_eq!(map_size["hurts"], true, "{map_size}");
        let command = map_size["command"].as_str().unwrap();
        let output = Command::new("sh").args(["-ec", command]).current_dir(&shell).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        let (old, new) = (info(&db), info(&shell.join("NEW")));
        assert_eq!(new["map_size"], 2 << 20, "{command}");
        assert_eq!((&new["values"], &new["value_bytes"]), (&old["values"], &old["value_bytes"]));
    }
}
