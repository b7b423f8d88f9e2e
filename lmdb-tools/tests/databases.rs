//! Every kind of database, by every program that makes them: `lmdb map` says where the values are, and there they are.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use heed::types::{Bytes, Str};
use precache_lmdb_tools::lmdb::map_format::{Item, Reader};
use serde_json::{Value, json};
use support::*;

/// Records of a map: database, key as printed by JSON, value found at that place in the file.
type Found = Vec<(String, String, Vec<u8>)>;

fn map(db: &Path, data: &Path) -> Found {
    let file = fs::read(data).unwrap();
    let text = succeed(&["lmdb", "map", "--json", db.to_str().unwrap()]);
    let found: Found = text
        .lines()
        .map(|line| {
            let record = json(line);
            let at = |field: &str| record[field].as_u64().unwrap() as usize;
            let key = record.get("key").unwrap_or(&record["key_hex"]);
            let key = key.as_str().map_or_else(|| key.to_string(), ToOwned::to_owned);
            let value = file[at("offset")..at("offset") + at("length")].to_vec();
            (record["database"].as_str().unwrap_or_default().to_owned(), key, value)
        })
        .collect();
    assert_eq!(
        binary(db, &file),
        found.iter().map(|(name, _, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
    );
    let plain = succeed(&["lmdb", "map", db.to_str().unwrap()]);
    assert_eq!(plain.lines().filter(|line| !line.starts_with("# ")).count(), found.len());
    found
}

/// The same through the binary format.
fn binary(db: &Path, file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let dir = directory();
    let output = dir.path().join("map");
    succeed(&["lmdb", "map", "--binary", "-o", output.to_str().unwrap(), db.to_str().unwrap()]);
    let bytes = fs::read(output).unwrap();
    let reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.header.file_size, file.len() as u64);
    let mut current = String::new();
    let mut found = Vec::new();
    for item in reader {
        match item.unwrap() {
            Item::Database { name, .. } => current = name,
            Item::Record { offset, length, .. } => {
                found.push((current.clone(), file[offset as usize..(offset + length) as usize].to_vec()));
            }
        }
    }
    found
}

fn info(db: &Path) -> Value {
    json(&succeed(&["lmdb", "info", "--json", db.to_str().unwrap()]))
}

/// Sizes around every boundary: empty, inside a leaf, the longest there, one page, several.
const SIZES: [usize; 12] = [0, 1, 8, 100, 1000, 2000, 2030, 2040, 4080, 4081, 4096, 100_000];

#[test]
fn py_lmdb_values_of_every_size() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    for size in SIZES {
        for shuffled in [false, true] {
            let db = dir.path().join(format!("{size}-{shuffled}"));
            make(&db, 500, size as u32, shuffled);
            let found = map(&db, &db.join("data.mdb"));
            assert_eq!(found.len(), 500);
            for (index, (_, key, value)) in found.iter().enumerate() {
                assert_eq!(*key, format!("{index:08}"));
                let expected: Vec<u8> = key.bytes().cycle().take(size).collect();
                assert!(*value == expected, "size {size}, key {key}");
            }
        }
    }
}

#[test]
fn py_lmdb_named_duplicates_integers_and_odd_keys() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let script = r#"
import lmdb, struct, sys
env = lmdb.open(sys.argv[1], map_size=1 << 28, max_dbs=8, subdir=False)
images = env.open_db(b"images")
dups = env.open_db(b"dups", dupsort=True)
fixed = env.open_db(b"fixed", dupsort=True, dupfixed=True, integerdup=True)
numbers = env.open_db(b"numbers", integerkey=True)
with env.begin(write=True) as txn:
    txn.put(b"plain", b"main's own")
    txn.put(b"forty-eight", b"x" * 48)
    txn.put(b"zero\0inside", b"y" * 48)
    for i in range(200): txn.put(b"%04d" % i, bytes([i]) * 5000, db=images)
    for i in range(3):
        for j in range(2000): txn.put(b"key%d" % i, b"duplicate %05d" % j, db=dups)
    txn.put(b"alone", b"one", db=dups)
    for j in range(3000): txn.put(b"k", struct.pack("=Q", j), db=fixed)
    for i in (1, 256, 70000): txn.put(struct.pack("=Q", i), b"n%d" % i, db=numbers)
"#;
    let db = dir.path().join("all.mdb");
    python_ok(script, &[db.to_str().unwrap()]);
    let mut databases: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
    for (name, key, value) in map(&db, &db) {
        databases.entry(name).or_default().push((key, value));
    }
    assert_eq!(databases.keys().collect::<Vec<_>>(), ["", "dups", "fixed", "images", "numbers"]);
    let own: Vec<_> = databases[""].iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(own, ["forty-eight", "plain", "zero\0inside"]);
    assert_eq!(databases["images"][7], ("0007".into(), vec![7; 5000]));
    assert_eq!(databases["dups"].len(), 6001);
    assert_eq!(databases["dups"][4001 + 1999], ("key2".into(), b"duplicate 01999".to_vec()));
    let fixed: Vec<_> =
        databases["fixed"].iter().map(|(_, value)| u64::from_ne_bytes(value[..].try_into().unwrap())).collect();
    assert!(fixed.into_iter().eq(0..3000));
    let numbers = [("1", "n1"), ("256", "n256"), ("70000", "n70000")];
    let numbers: Vec<_> = numbers.iter().map(|(key, value)| (key.to_string(), value.as_bytes().to_vec())).collect();
    assert_eq!(databases["numbers"], numbers);

    let only = succeed(&["lmdb", "map", "--name", "images", db.to_str().unwrap()]);
    assert_eq!(only.lines().count(), 201);
    let unknown = fail(&["lmdb", "map", "--name", "image", db.to_str().unwrap()], 1);
    assert!(unknown.contains("dups, fixed, images, numbers"), "{unknown}");
}

#[test]
fn mdb_load() {
    if !have("mdb_load", &["-V"]) {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    fs::create_dir(&db).unwrap();
    let mut loader = Command::new("mdb_load").arg(&db).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = loader.stdin.take().unwrap();
    writeln!(input, "VERSION=3\nformat=print\ntype=btree\nmapsize=268435456\nHEADER=END").unwrap();
    for i in 0..1000 {
        writeln!(input, " key{i:05}\n {}", format!("value {i} ").repeat(i % 700)).unwrap();
    }
    writeln!(input, "DATA=END").unwrap();
    drop(input);
    assert!(loader.wait().unwrap().success());
    let found = map(&db, &db.join("data.mdb"));
    assert_eq!(found.len(), 1000);
    for (i, (_, key, value)) in found.iter().enumerate() {
        assert_eq!((key, value), (&format!("key{i:05}"), &format!("value {i} ").repeat(i % 700).into_bytes()));
    }
}

#[test]
fn heed() {
    let dir = directory();
    // SAFETY: the environment is opened once in this process and its file is not touched by others meanwhile.
    let env = unsafe { heed::EnvOpenOptions::new().map_size(1 << 28).max_dbs(2).open(dir.path()) }.unwrap();
    let create = |name| {
        env.create_databases_and_commit(env.write_txn().unwrap(), |opener, txn| {
            opener.create_database::<Str, Bytes>(txn, name).map(heed::CommitOrAbort::<_, ()>::Commit)
        })
        .unwrap()
        .unwrap_commit()
    };
    let (unnamed, named) = (create(None), create(Some("other")));
    let mut txn = env.write_txn().unwrap();
    for i in 0..300_usize {
        unnamed.put(&mut txn, &format!("a{i:04}"), &vec![i as u8; i * 37]).unwrap();
        named.put(&mut txn, &format!("b{i:04}"), &vec![i as u8; i]).unwrap();
    }
    txn.commit().unwrap();
    let found = map(dir.path(), &dir.path().join("data.mdb"));
    let expected = (0..300_usize).map(|i| (String::new(), format!("a{i:04}"), vec![i as u8; i * 37]));
    let expected = expected.chain((0..300).map(|i| ("other".into(), format!("b{i:04}"), vec![i as u8; i])));
    assert!(found.into_iter().eq(expected));
}

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

#[test]
fn too_little_address_space_is_named() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 10, 10, false);
    let tool = env!("CARGO_BIN_EXE_precache-lmdb");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 2000000; exec \"$0\" lmdb info \"$1\"", tool, db.to_str().unwrap()])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("`ulimit -v unlimited`"), "{error}");
}

/// A reader who has seen enough is no error; a full disk is one. Neither is a panic.
#[test]
fn stdout_that_takes_no_more() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let (db, out) = (dir.path().join("db"), dir.path().join("out"));
    make(&db, 20_000, 100, false);
    let (db, out) = (db.to_str().unwrap(), out.to_str().unwrap());
    succeed(&["lockfile", "replicate", db, out, "-n", "1", "--assume-read-only"]);
    let commands: [&[&str]; 9] = [
        &["lmdb", "map", db],
        &["lmdb", "map", "--json", db],
        &["lmdb", "map", "--binary", db],
        &["lmdb", "ranges", "--json", "-n", "5000", db],
        &["lmdb", "info", "--json", db],
        &["lmdb", "doctor", "--json", db],
        &["stripe-advise", db, "--batch-size", "8", "--json"],
        &["lockfile", "check", "--watch", "0", "--json", db],
        &["lockfile", "rank-dir", out, "--rank", "0"],
    ];
    for command in commands {
        let (reading, writing) = std::io::pipe().unwrap();
        drop(reading);
        let closed = tool().args(command).stdout(writing).output().unwrap();
        assert!(closed.status.success() && closed.stderr.is_empty(), "{command:?}: {closed:?}");
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let full = tool().args(command).stdout(full).output().unwrap();
        let error = String::from_utf8(full.stderr).unwrap();
        let expected = if command[1] == "check" { 3 } else { 1 };
        assert_eq!(full.status.code(), Some(expected), "{command:?}: {error}");
        assert!(error.contains("No space left") && error.lines().count() == 1, "{command:?}: {error}");
    }
}

/// A pipe that nobody reads yet holds the walk up while a writer commits.
#[test]
fn a_writer_during_the_walk_is_told_of() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 20_000, 100, false);
    let map = |write: bool| {
        let mut map = tool();
        map.args(["lmdb", "map", db.to_str().unwrap()]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut map = map.spawn().unwrap();
        let mut begun = [0; 1];
        map.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
        if write {
            make(&db, 1, 1, true);
        }
        map.wait_with_output().unwrap()
    };
    let undisturbed = map(false);
    assert!(undisturbed.status.success() && undisturbed.stderr.is_empty(), "{undisturbed:?}");
    let warning = String::from_utf8(map(true).stderr).unwrap();
    assert!(warning.contains("a writer committed transaction 3 while transaction 2 was being read"), "{warning}");
}

#[test]
fn an_empty_environment_has_no_records() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    make(dir.path(), 0, 0, false);
    assert_eq!(succeed(&["lmdb", "map", dir.path().to_str().unwrap()]), "");
    assert!(info(dir.path())["values"].is_null());
    assert!(fail(&["lmdb", "ranges", "-n", "2", dir.path().to_str().unwrap()], 1).contains("no records"));
}
