//! Orders in which real programs came to their data (`recorded/README.md`), read again by the simulated reader.

use super::machine::Machine;
use super::{WARM, limit, storage};
use precache_contract::{PAGE, STEP};

const STEP_PAGES: usize = (STEP / PAGE) as usize;

/// Pages of the file, and those that were read, in order: from each page that was touched to the end of its 64 KiB.
fn recorded(trace: &str) -> (usize, Vec<usize>) {
    let mut lines = trace.lines().filter(|line| !line.starts_with('#'));
    let pages = lines.next().and_then(|line| line.strip_prefix("pages ")).unwrap().parse().unwrap();
    let mut order = Vec::new();
    for line in lines {
        let mut words = line.split(' ').map(|word| word.parse::<usize>().unwrap());
        let (first, more) = (words.next().unwrap(), words.next().unwrap_or(0));
        order.extend(first..((first / STEP_PAGES + 1 + more) * STEP_PAGES).min(pages));
    }
    (pages, order)
}

/// How many times as long as the storage needs for what is read it takes, and as plain reading takes; and the bytes fetched,
/// as shares of those that are read and of those that plain reading fetches.
struct Outcome {
    of_limit: f64,
    of_plain: f64,
    bytes_of_read: f64,
    bytes_of_plain: f64,
}

fn replay(trace: &str) -> Outcome {
    let (pages, order) = recorded(trace);
    let storage = storage(2.0, 400e6);
    let read_by = |accelerated| {
        let mut machine = Machine::new(pages, storage, WARM, accelerated);
        order.iter().for_each(|&page| machine.read(page));
        machine
    };
    let (ours, plain) = (read_by(true), read_by(false));
    let bytes = order.len() as u64 * PAGE;
    Outcome {
        of_limit: ours.now / limit(storage, WARM, bytes),
        of_plain: ours.now / plain.now,
        bytes_of_read: ours.fetched as f64 / bytes as f64,
        bytes_of_plain: ours.fetched as f64 / plain.fetched as f64,
    }
}

/// Replays the trace of this name in `recorded/`.
macro_rules! replay {
    ($name:literal) => {
        replay(include_str!(concat!("recorded/", $name, ".trace")))
    };
}

#[test]
fn what_is_read_in_order_comes_as_fast_as_the_storage() {
    for (name, outcome) in [
        ("py-lmdb-cursor", replay!("py-lmdb-cursor")),
        ("numpy-windows", replay!("numpy-windows")),
        ("numpy-backward", replay!("numpy-backward")),
        ("sqlite-scan", replay!("sqlite-scan")),
        ("safetensors", replay!("safetensors")),
    ] {
        assert!(outcome.of_limit < 1.05, "{name}: {:.3} of the limit", outcome.of_limit);
        assert!(outcome.bytes_of_read < 1.04, "{name}: {:.3} of the bytes", outcome.bytes_of_read);
    }
}

/// 64 MiB in all, of which the first few records tell the stride.
#[test]
fn every_fourth_record_is_fetched_without_the_gaps() {
    let outcome = replay!("py-lmdb-fourth");
    assert!(outcome.of_limit < 1.8 && outcome.of_plain < 0.12, "{:.3}, {:.3}", outcome.of_limit, outcome.of_plain);
    assert!(outcome.bytes_of_read < 1.2, "{:.3} of the bytes", outcome.bytes_of_read);
}

/// Orders that nobody knows ahead: at least no slower, and no byte more.
#[test]
fn what_follows_no_order_is_no_slower() {
    for (name, outcome) in [
        ("py-lmdb-shuffled", replay!("py-lmdb-shuffled")),
        ("numpy-columns", replay!("numpy-columns")),
        ("torch-shuffled", replay!("torch-shuffled")),
        ("sqlite-index", replay!("sqlite-index")),
    ] {
        assert!(outcome.of_plain < 1.01, "{name}: {:.3} of the plain time", outcome.of_plain);
        assert!(outcome.bytes_of_plain < 1.02, "{name}: {:.3} of the plain bytes", outcome.bytes_of_plain);
    }
}
