//! What programs say about their reading: the optimizer acts on it, and their calls answer as natively.

use precache_tests::methods::METHODS;
use precache_tests::optimizer::wait_for;
use precache_tests::programs::program;
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{SlowStorage, flat_file, make_cold, scratch};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// Does what each argument after the first says and prints the answers; after each but the last, waits for a line.
const READER: &str = r#"
import ctypes, mmap, os, sys, zlib
MIB = 1 << 20
file = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(file).st_size

def mapped(flags=0):
    return mmap.mmap(file, size, flags=mmap.MAP_SHARED | flags, prot=mmap.PROT_READ)

def say(call, *arguments):
    try:
        print(call.__name__, call(*arguments))
    except OSError as error:
        print(call.__name__, error)

# Numbers as wide as pointers.
C, P = ctypes.CDLL(None, use_errno=True), ctypes.c_size_t

def address_of(data):
    return min(int(line.split('-')[0], 16) for line in open('/proc/self/maps') if line.rstrip().endswith(sys.argv[1]))

def read(start, end):
    for page in range(start, end, 4096):
        data[page]

exec(sys.argv[2])
for part in sys.argv[3:]:
    print('said', flush=True)
    if not sys.stdin.readline():
        break
    exec(part)
"#;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 64 * MIB;

fn reader<const PARTS: usize>(file: OsString, parts: [&str; PARTS]) -> Program {
    let words = ["/usr/bin/python3", "-c", READER].map(OsString::from);
    Program::new(words.into_iter().chain([file]).chain(parts.map(OsString::from)))
}

fn slow() -> (SlowStorage, OsString) {
    slow_at("--bandwidth=400M")
}

fn slow_at(bandwidth: &str) -> (SlowStorage, OsString) {
    let source = flat_file(64);
    let storage = SlowStorage::mount(source.parent().unwrap(), &["--latency=1ms", bandwidth]);
    let file = storage.path().join(source.file_name().unwrap()).into_os_string();
    (storage, file)
}

/// Whether so many bytes have been fetched, if they are counted.
fn has_fetched(storage: &SlowStorage, bytes: u64) -> bool {
    storage.bytes_of("flat-64M").is_none_or(|fetched| fetched >= bytes)
}

/// At most so many.
fn assert_fetched(storage: &SlowStorage, most: u64) {
    let fetched = storage.bytes_of("flat-64M");
    assert!(fetched.is_none_or(|fetched| fetched <= most), "{fetched:?} instead of {most}");
}

/// Runs a reader in parts, with a look at the storage after each but the last. The answer is what it prints in the last part,
/// and the report.
fn run<const PARTS: usize>(
    storage: &SlowStorage,
    file: OsString,
    parts: [&str; PARTS],
    options: &[&str],
    meanwhile: impl Fn(usize),
) -> (Vec<String>, Report) {
    let (mut command, report) = reader(file, parts).command(options);
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = running.stdin.take().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines().map_while(Result::ok);
    for (part, told) in parts.iter().enumerate().take(PARTS - 1) {
        assert!(lines.any(|line| line == "said"), "{told}");
        meanwhile(part);
        input.write_all(b"\n").expect("the reader listens");
    }
    let printed = lines.collect();
    assert!(running.wait().unwrap().success(), "{parts:?}");
    assert_fetched(storage, SIZE * 101 / 100);
    (printed, report.read())
}

/// Before the program reads anything, so many bytes are fetched because of what it says; then it reads what is there.
fn fetches(says: &str, bytes: u64) {
    for method in METHODS {
        let (storage, file) = slow();
        let (printed, report) = run(&storage, file, [says, "print(zlib.crc32(data))"], &[method], |_| {
            wait_for("what was asked for", || has_fetched(&storage, bytes));
            assert_fetched(&storage, bytes + 2 * MIB);
        });
        assert_eq!(printed, [checksum()], "{says}");
        assert!(report.of_file("fetched") > bytes * 9 / 10, "{says}: {:#}", report.0);
        assert!(report.mappings().any(|mapping| mapping["advice"].as_u64() > Some(0)), "{:#}", report.0);
    }
}

fn checksum() -> String {
    let script = "import sys, zlib; print(zlib.crc32(open(sys.argv[1], 'rb').read()))";
    let words = ["/usr/bin/python3", "-c", script].map(Into::into);
    let left = Program::new(words.into_iter().chain([flat_file(64).into_os_string()])).alone();
    String::from_utf8(left.stdout).expect("digits").trim().into()
}

#[test]
fn a_populated_mapping_is_fetched_by_the_optimizer() {
    fetches("data = mapped(mmap.MAP_POPULATE)", SIZE);
}

/// The whole file takes seconds; natively, mmap returns when all of it is there.
#[test]
fn a_populated_mapping_is_not_waited_for() {
    let (storage, file) = slow_at("--bandwidth=20M");
    let (_, report) = run(&storage, file, ["data = mapped(mmap.MAP_POPULATE)", "pass"], &[], |_| {
        assert_fetched(&storage, SIZE / 2);
        wait_for("the optimizer", || has_fetched(&storage, MIB));
    });
    assert_eq!(report.of_file("requested"), SIZE);
}

/// What the optimizer would not fetch is populated as natively: before mmap returns.
#[test]
fn a_mapping_that_is_not_ours_is_populated() {
    for options in [&["--mode=detect"][..], &["--exclude=flat-64M"], &["--range=flat-64M:0..16M"]] {
        let (storage, file) = slow();
        let options: Vec<String> =
            options.iter().map(|o| o.replace("flat-64M:", &format!("{}:", file.display()))).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let (left, _) = reader(file, ["data = mapped(mmap.MAP_POPULATE)"]).under(&options);
        assert!(left.status.success(), "{left:?}");
        assert!(has_fetched(&storage, SIZE), "{options:?}");
    }
    // One of which we find out that it is not ours when it has been made.
    let (storage, file) = slow();
    let says = "file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT); data = mapped(mmap.MAP_POPULATE)";
    let (left, report) = reader(file, [says]).under(&[]);
    assert!(left.status.success(), "{left:?}");
    assert!(report.text().contains("bypasses the page cache"), "{:#}", report.0);
    assert!(has_fetched(&storage, SIZE));
}

/// Of a part that the program has not begun to read.
const ON_ITS_WORD: u64 = 8 * MIB;

#[test]
fn what_will_be_needed_is_fetched_and_nothing_else() {
    fetches("data = mapped(); data.madvise(mmap.MADV_WILLNEED)", SIZE);
    for says in [
        "data.madvise(mmap.MADV_WILLNEED, 16 * MIB, 32 * MIB)",
        "print(C.posix_madvise(P(address_of(data) + 24 * MIB), P(16 * MIB), 3))",
        "os.posix_fadvise(file, 16 * MIB, 32 * MIB, os.POSIX_FADV_WILLNEED)",
        "print(C.readahead(file, P(8 * MIB), P(24 * MIB)))",
    ] {
        fetches(&format!("data = mapped(); {says}"), ON_ITS_WORD);
    }
}

/// The same by number.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_will_be_needed_is_fetched_when_it_is_said_by_number() {
    let (madvise, fadvise, readahead) = (libc::SYS_madvise, libc::SYS_fadvise64, libc::SYS_readahead);
    for call in [
        format!("{madvise}, P(address_of(data) + 16 * MIB), P(24 * MIB), 3"),
        format!("{fadvise}, file, P(16 * MIB), P(24 * MIB), 3"),
        format!("{readahead}, file, P(16 * MIB), P(24 * MIB)"),
    ] {
        fetches(&format!("data = mapped(); print(C.syscall({call}))"), ON_ITS_WORD);
    }
}

/// Where the places that are read have no order, all that was said is fetched once that shows.
#[test]
fn what_will_be_needed_in_no_order_is_fetched() {
    let (storage, file) = slow();
    let says = "data = mapped(); data.madvise(mmap.MADV_WILLNEED, 16 * MIB, 32 * MIB)";
    let reads = "import random\nfor at in random.Random(1).sample(range(128), 60): data[16 * MIB + at * MIB // 4]";
    let parts = [says, reads, "print(zlib.crc32(data))"];
    let (printed, _) = run(&storage, file, parts, &[], |part| {
        let fetched = [ON_ITS_WORD, 32 * MIB][part];
        wait_for("what was asked for", || has_fetched(&storage, fetched));
        assert_fetched(&storage, fetched + 4 * MIB);
    });
    assert_eq!(printed, [checksum()]);
}

/// Faults before the first request.
fn faults(report: &Report) -> Option<u64> {
    report.mappings().find_map(|mapping| mapping["faults_before_first_request"].as_u64())
}

fn map_reader(arguments: &str, options: &[&str]) -> (Option<u64>, Report) {
    let (storage, file) = slow();
    let arguments = arguments.split_whitespace().map(OsString::from);
    let reader = Program::new([program("map-reader").into_os_string(), file].into_iter().chain(arguments));
    let (left, report) = reader.under(options);
    assert!(left.status.success(), "{left:?}");
    (storage.bytes_of("flat-64M"), report)
}

#[test]
fn sequential_readers_have_nothing_to_show_first() {
    let (fetched, report) = map_reader("--advise sequential", &[]);
    assert_eq!(faults(&report), Some(1), "{:#}", report.0);
    assert!(fetched.is_none_or(|fetched| fetched <= SIZE * 101 / 100), "{fetched:?}");
    assert_eq!(faults(&map_reader("", &[]).1), Some(3));
    // Said of the file before it is mapped.
    let (storage, file) = slow();
    let says = "os.posix_fadvise(file, 0, 0, os.POSIX_FADV_SEQUENTIAL); data = mapped(); data[0]";
    let (_, report) = run(&storage, file, [says, "read(0, size)"], &[], |_| {
        wait_for("the first window", || has_fetched(&storage, MIB));
    });
    assert_eq!(faults(&report), Some(1), "{:#}", report.0);
}

#[test]
fn nothing_is_fetched_for_random_access() {
    let random = "--random 200 --record 200K --advise random";
    let (plain, _) = map_reader(random, &["--mode=detect"]);
    let (fetched, report) = map_reader(random, &[]);
    assert_eq!(report.of_file("requested"), 0, "{:#}", report.0);
    assert_eq!(fetched, plain);
    // It is not taken at its word for ever: many readers that only want no read-ahead say the same.
    let (fetched, report) = map_reader("--advise random", &[]);
    assert!(report.of_file("requested") > SIZE / 2, "{:#}", report.0);
    assert!(fetched.is_none_or(|fetched| fetched <= SIZE * 101 / 100), "{fetched:?}");
}

/// Bytes requested for a reader that goes forward, says this, and goes a little further: up to behind the place at which the
/// largest window is requested. Again and again it asks for a MiB far ahead, and waits for that: by then the optimizer has
/// dealt with all before, and is not outrun.
fn requested_if_said(says: &str) -> u64 {
    let (storage, file) = slow();
    let says = format!("{says}; data.madvise(mmap.MADV_WILLNEED, 40 * MIB, MIB)");
    let further = |start: u64| {
        let asked = 41 + 2 * (start - 12 * MIB) / MIB;
        format!("read({start} + 4096, {start} + MIB // 2 + 4096); data.madvise(mmap.MADV_WILLNEED, {asked} * MIB, MIB)")
    };
    let [first, second, third] = [12 * MIB, 12 * MIB + MIB / 2, 13 * MIB].map(further);
    let parts = ["data = mapped(); read(0, 12 * MIB + 4096)", &says, &first, &second, &third, "pass"];
    let (_, report) = run(&storage, file, parts, &["--size=50M", "--distance=512K"], |part| {
        wait_for("what is requested", || has_fetched(&storage, (21 + part as u64) * MIB));
    });
    report.of_file("requested")
}

#[test]
fn random_ends_what_is_fetched_ahead_until_it_is_taken_back() {
    let (random, normal) = ("data.madvise(mmap.MADV_RANDOM)", "data.madvise(mmap.MADV_NORMAL)");
    let requested = requested_if_said(random);
    assert!(requested_if_said("pass") >= requested + 30 * MIB, "{requested}");
    let again = requested_if_said(&format!("{random}; {normal}"));
    assert!((requested + MIB..requested + 10 * MIB).contains(&again), "{requested} and {again}");
    let elsewhere = requested_if_said("data.madvise(mmap.MADV_RANDOM, 60 * MIB, 4 * MIB)");
    assert!(elsewhere >= requested + 30 * MIB, "{requested} and {elsewhere}");
    let file = "os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)";
    let of_file = requested_if_said(file);
    assert!(of_file < requested + 10 * MIB, "{requested} and {of_file}");
}

/// A forked child knows what its parent has said of the order.
#[test]
fn a_forked_child_keeps_to_what_was_said() {
    for (says, expected) in [("data.madvise(mmap.MADV_SEQUENTIAL)", 1), ("pass", 3)] {
        let (storage, file) = slow();
        let says = format!("data = mapped(); {says}");
        let then = "
child = os.fork()
if child == 0:
    read(0, size)
    os._exit(0)
os.waitpid(child, 0)
";
        let (_, report) = run(&storage, file, [&says, then], &[], |_| {});
        assert_eq!(faults(&report), Some(expected), "{says}: {:#}", report.0);
    }
}

/// Every call answers as it does natively, and what is read is the same.
#[test]
fn calls_answer_as_natively() {
    let says = "
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
data = mapped(mmap.MAP_POPULATE)
data.close()
data = mapped()
for advice in (0, 1, 2, 3, 4, 22, 23, 77):
    say(data.madvise, advice, 0, 4 * MIB)
    say(data.madvise, advice, 8 * MIB, size - 8 * MIB)
data = mapped()
for advice in (0, 1, 2, 3, 4, 5, 77):
    for part in ((0, 0), (MIB, 2 * MIB), (1, 5), (2 * size, 1), (0, -1)):
        say(os.posix_fadvise, file, *part, advice)
say(os.posix_fadvise, 99, 0, 0, 3)
address = address_of(data)
for advice in (0, 1, 2, 3, 4, 5, 77):
    for part in ((address, 2 * MIB), (address + 1, 5), (address, 0), (0, 4096), (address, P(-1).value)):
        print(C.posix_madvise(P(part[0]), P(part[1]), advice), C.madvise(P(part[0]), P(part[1]), advice), ctypes.get_errno())
for part in ((file, 0, MIB), (file, 0, 0), (file, 2 * size, 1), (99, 0, 1), (0, 0, 1)):
    print(C.readahead(part[0], P(part[1]), P(part[2])), ctypes.get_errno())
print(zlib.crc32(data))
private = mmap.mmap(file, size, flags=mmap.MAP_PRIVATE | mmap.MAP_POPULATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
private[5] = 7
say(private.madvise, 22)
print(zlib.crc32(private))
anonymous = mmap.mmap(-1, MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
print(zlib.crc32(anonymous))
";
    let program = reader(flat_file(64).into_os_string(), [says]);
    for method in METHODS {
        make_cold(&scratch().join("flat-64M"));
        let report = program.must_not_notice(&[method]);
        assert!(report.text().contains("the program changed the mapping itself"), "{:#}", report.0);
    }
}
