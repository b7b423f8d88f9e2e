//! Every kind of database, by every program that makes them: `lmdb map` says where the values are, and there they are.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use heed::types::{Bytes, Str};
use precache_lmdb_tools::lmdb::map_format::{Item, Reader};
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
