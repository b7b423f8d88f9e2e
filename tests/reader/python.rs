//! Python readers: `lmdb`, `numpy.memmap`, `mmap`, and the interpreter's fault handler.

use precache_tests::runs::Program;
use precache_tests::storage::{flat_file, lmdb};
use precache_tests::ways;
use std::path::Path;

const PYTHON: &str = "/usr/bin/python3";

/// Whether Python has a module; says so where it has not.
fn has(module: &str) -> bool {
    let has = Program::new([PYTHON, "-c", &format!("import {module}")]).alone().status.success();
    if !has {
        precache_tests::storage::lacking(&format!("module {module} for {PYTHON}"));
    }
    has
}

/// One of the demonstration's readers with its arguments.
fn demo(script: &str, data: &Path, arguments: &str) -> Program {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demos/python").join(script);
    let arguments = arguments.split_whitespace().map(std::ffi::OsString::from);
    Program::new([PYTHON.into(), "-B".into(), script.into(), data.into()].into_iter().chain(arguments))
}

/// Runs Python code with the path of a data file (or an LMDB) as its argument; skips where a module is missing.
fn unnoticed(module: &str, code: &str, data: std::path::PathBuf, deaths: bool) {
    if !has(module) {
        return;
    }
    let program = Program::new([PYTHON.into(), "-c".into(), code.into(), data.into_os_string()]);
    let alone = program.alone();
    assert_eq!(alone.status.success(), !deaths, "{alone:?}");
    ways::all(&program, &alone);
}

#[test]
fn lmdb_cursor() {
    let code = "
import lmdb, sys, zlib
env = lmdb.open(sys.argv[1], readonly=True, lock=False)
with env.begin(buffers=True) as txn:
    for epoch in range(2):
        crc = 0
        for key, value in txn.cursor():
            crc = zlib.crc32(value, crc)
        print(crc)
";
    unnoticed("lmdb", code, lmdb(96), false);
}

#[test]
fn lmdb_in_forked_workers() {
    let code = "
import lmdb, sys, zlib, multiprocessing as mp
mp.set_start_method('fork')
env = lmdb.open(sys.argv[1], readonly=True, lock=False, max_readers=64)
def work(rank):
    crc = 0
    with env.begin(buffers=True) as txn:
        for i, (key, value) in enumerate(txn.cursor()):
            if i % 4 == rank:
                crc = zlib.crc32(value, crc)
    return crc
with mp.Pool(4) as pool:
    print(pool.map(work, range(4)))
";
    unnoticed("lmdb", code, lmdb(96), false);
}

#[test]
fn numpy_memmap() {
    let code = "
import numpy, sys
for mode in 'r', 'r+', 'c':
    data = numpy.memmap(sys.argv[1], dtype=numpy.uint32, mode=mode)
    print(int(data[len(data) // 2:].sum(dtype=numpy.uint64)), int(data[::100_000].sum(dtype=numpy.uint64)))
    if mode == 'r+':
        data[5:9] = data[5:9].copy()
    if mode == 'c':
        data[::1_000_000] = 7
        print(int(data.sum(dtype=numpy.uint64)))
    data[1_000_000:2_000_000].tofile(sys.stdout.buffer)
";
    unnoticed("numpy", code, flat_file(64), false);
}

#[test]
fn fault_handler() {
    let code = "
import ctypes, faulthandler, mmap, sys, zlib
faulthandler.enable()
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(zlib.crc32(data), faulthandler.is_enabled(), flush=True)
faulthandler.disable()
print(zlib.crc32(data[:40_000_000]), flush=True)
faulthandler.enable()
sys.stdout.buffer.write(memoryview(data)[5_000_000:9_000_000])
sys.stdout.flush()
ctypes.string_at(0)
";
    unnoticed("faulthandler", code, flat_file(64), true);
}

#[test]
fn fault_handler_watching_the_clock() {
    let code = "
import faulthandler, mmap, sys, zlib
faulthandler.dump_traceback_later(600)
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(zlib.crc32(data))
faulthandler.cancel_dump_traceback_later()
";
    unnoticed("faulthandler", code, flat_file(64), false);
}

/// Contiguous and skipping ranks, training and test data in turn, and no byte left out.
#[test]
fn the_demonstrations_readers() {
    if !has("lmdb") || !has("numpy") {
        return;
    }
    let (records, test_records) = (lmdb(192), lmdb(96));
    let bytes = flat_file(64);
    let readers = [
        ("lmdb_reader.py", &*records, format!("--test-db {} --test-every 2 --test-records 50", test_records.display())),
        (
            "memmap_reader.py",
            &*bytes,
            format!("--test-file {} --test-every 3 --test-records 2", test_records.join("data.mdb").display()),
        ),
    ];
    for (script, data, phases) in readers {
        for sharing in ["--processes 3", "--processes 3 --pattern skipping"] {
            let program = demo(script, data, sharing);
            ways::all(&program, &program.alone());
        }
        let in_turn = demo(script, data, &phases);
        let alone = in_turn.alone();
        assert!(String::from_utf8_lossy(&alone.stdout).contains(" test: "));
        ways::all(&in_turn, &alone);
    }
}
