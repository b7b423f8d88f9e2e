//! No reader's output depends on precache.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::bench::Bench;
use crate::configuration::{lmdb_reader, map_reader};
use crate::measure::Launch;
use crate::storage::{Kind, Storage};
use crate::verdict::{Bar, Verdict};

const PYTHON: &str = "/usr/bin/python3";
/// Every way to protect, in both modes that protect.
const WAYS: [&[&str]; 4] = [
    &["--mode", "detect", "--protect", "guard"],
    &["--mode", "detect", "--protect", "mprotect"],
    &["--mode", "on", "--protect", "guard"],
    &["--mode", "on", "--protect", "mprotect"],
];

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let kind = if Storage::can_mount() { Kind::RemoteSsd } else { Kind::Local };
    let storage = bench.storage(kind, bench.settings.pairs_size.expect("defaults are filled in"))?;
    let mut bars = Vec::new();
    for (name, reader) in readers(bench, &storage) {
        storage.make_warm()?;
        let expected = Launch::new(reader.clone()).run(bench, &storage)?.output;
        let (mut differing, mut idle) = (Vec::new(), Vec::new());
        for way in WAYS {
            let _memory = storage.make_cold()?;
            let run = Launch::new(reader.clone()).under_precache(way).run(bench, &storage)?;
            if run.output != expected {
                differing.push(way.join(" "));
            }
            if run.mappings().all(|mapping| mapping.trips == 0) {
                idle.push(way.join(" "));
            }
        }
        let mut measured = match differing.is_empty() {
            true => "identical".to_owned(),
            false => format!("differs with {}", differing.join("; ")),
        };
        if !idle.is_empty() {
            measured += &format!(" (nothing was protected with {})", idle.join("; "));
        }
        bars.push(Bar::new(
            format!("{name}: same output in both modes, with both protections"),
            measured,
            Verdict::is(differing.is_empty()),
        ));
    }
    Ok(bars)
}

fn readers(bench: &Bench, storage: &Storage) -> Vec<(&'static str, Vec<OsString>)> {
    let lmdb = |arguments: &[&str]| lmdb_reader(bench, storage, arguments);
    let map = |arguments: &[&str]| map_reader(bench, storage, arguments);
    let mut readers = vec![
        ("lmdb-reader, 2 epochs", lmdb(&["--epochs", "2"])),
        ("lmdb-reader, 4 processes", lmdb(&["--processes", "4"])),
        ("lmdb-reader, 4 processes, skipping", lmdb(&["--processes", "4", "--pattern", "skipping"])),
        ("lmdb-reader, random", lmdb(&["--random", "--count", "300"])),
        ("map-reader", map(&[])),
        ("map-reader, 3 threads", map(&["--threads", "3"])),
        ("map-reader, 3 forks", map(&["--fork", "3"])),
        ("map-reader, backwards", map(&["--backwards"])),
        ("map-reader, every fourth record", map(&["--record", "200K", "--stride", "800K"])),
        ("map-reader, private map", map(&["--private"])),
    ];
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demos/python");
    let python = |script: &str, argument: OsString| vec![PYTHON.into(), scripts.join(script).into(), argument];
    if can_import("lmdb") {
        readers.push(("lmdb_reader.py", python("lmdb_reader.py", storage.folder().into())));
    }
    if can_import("numpy") {
        readers.push(("memmap_reader.py", python("memmap_reader.py", storage.file().into())));
    }
    readers
}

fn can_import(module: &str) -> bool {
    let test = Command::new(PYTHON).args(["-c", &format!("import {module}")]).output();
    let can = test.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("left out: {PYTHON} has no module {module}");
    }
    can
}
