//! Orders in which real programs came to their data (`recorded/README.md`), read again by the simulated reader.

use super::epochs::{PAGES, Reader};
use super::late::Late;
use super::machine::Machine;
use super::memory::{CELL, Memory};
use super::{WARM, limit, storage};
use precache_contract::segment::Method;
use precache_contract::{PAGE, STEP};
use std::collections::BTreeSet;

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

/// The trace of this name in `recorded/`.
macro_rules! trace {
    ($name:literal) => {
        include_str!(concat!("recorded/", $name, ".trace"))
    };
}

/// Replays it.
macro_rules! replay {
    ($name:literal) => {
        replay(trace!($name))
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
    assert!(outcome.of_limit < 1.9 && outcome.of_plain < 0.125, "{:.3}, {:.3}", outcome.of_limit, outcome.of_plain);
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

/// Of the pages that are recorded, each stands for so many: a file of 1 GiB, of which windows are a small part.
const SCALE: usize = 4;

/// Bytes that are fetched in each of six epochs of this order, as shares of what is read, in a memory that leaves room for five
/// sevenths of that.
fn epochs(trace: &str, method: Method) -> Vec<f64> {
    epochs_of(trace, |memory| Reader::new(memory, 1, method))
}

/// The same of this reader.
fn epochs_of(trace: &str, reader: impl for<'a> Fn(&'a Memory) -> Reader<'a>) -> Vec<f64> {
    let (pages, order) = recorded(trace);
    let size = (pages * SCALE) as u64 * PAGE;
    let order: Vec<_> = order.into_iter().flat_map(|page| page * SCALE..(page + 1) * SCALE).collect();
    let is_of_one_cell = |one: &usize, other: &usize| one + 1 == *other && one / PAGES == other / PAGES;
    let runs: Vec<_> = order.chunk_by(is_of_one_cell).map(|run| run[0]..run[run.len() - 1] + 1).collect();
    let read = runs.iter().map(|run| run.start / PAGES).collect::<BTreeSet<_>>().len() as u64 * CELL;
    // Of a limit a thirty-second part is left free.
    let memory = Memory::new(size.next_multiple_of(CELL), read * 5 / 7 * 32 / 31);
    let mut reader = reader(&memory);
    let epoch = |_| {
        let before = memory.fetched();
        runs.iter().for_each(|run| reader.read(run.clone()));
        (memory.fetched() - before) as f64 / read as f64
    };
    (0..6).map(epoch).collect()
}

/// The most that any epoch but the first one fetches.
fn later_epochs(trace: &str, method: Method) -> f64 {
    epochs(trace, method).into_iter().skip(1).fold(0.0, f64::max)
}

/// Two sevenths, 0.286, do not fit, and windows take some room.
#[test]
fn of_what_is_read_in_order_an_epoch_fetches_what_does_not_fit() {
    for (name, trace) in [
        ("py-lmdb-cursor", trace!("py-lmdb-cursor")),
        ("numpy-windows", trace!("numpy-windows")),
        ("numpy-backward", trace!("numpy-backward")),
        ("sqlite-scan", trace!("sqlite-scan")),
        ("safetensors", trace!("safetensors")),
    ] {
        let fetched = later_epochs(trace, Method::Guard);
        assert!(fetched < 0.39, "{name}: {fetched:.3} of what is read");
    }
}

/// The gaps stay where they are, also when the reader comes to where it has been before.
#[test]
fn of_every_fourth_record_an_epoch_fetches_little_more_than_does_not_fit() {
    for (method, most) in [(Method::Mprotect, 0.38), (Method::Guard, 0.68)] {
        let fetched = later_epochs(trace!("py-lmdb-fourth"), method);
        assert!(fetched < most, "{fetched:.3} of what is read");
    }
}

/// While nobody hears of it, the reader goes on for hundreds of records, through what it has read before: it is found again, and
/// its order with it. Without that, each later epoch fetches all.
#[test]
fn a_reader_that_is_heard_of_late_is_found_again() {
    for method in [Method::Mprotect, Method::Guard] {
        let trace = trace!("py-lmdb-fourth");
        let run = |seed| epochs_of(trace, |memory| Reader::new(memory, 1, method).late(Late::new(seed)));
        let all: Vec<_> = (1..=20).flat_map(|seed| run(seed).into_iter().skip(1)).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!(mean < 0.7, "{method:?}: {mean:.3} of what is read");
    }
}

/// All of it comes from the storage in each epoch, as without us; that something in it looks like an order now and then costs
/// little.
#[test]
fn of_what_follows_no_order_epochs_fetch_no_more() {
    let mut all = Vec::new();
    for (name, trace) in [
        ("py-lmdb-shuffled", trace!("py-lmdb-shuffled")),
        ("numpy-columns", trace!("numpy-columns")),
        ("torch-shuffled", trace!("torch-shuffled")),
        ("sqlite-index", trace!("sqlite-index")),
    ] {
        for method in [Method::Mprotect, Method::Guard] {
            let most = later_epochs(trace, method);
            assert!(most < 1.15, "{name}: {most:.3} of what is read in one epoch");
            all.extend(epochs(trace, method).into_iter().skip(1));
        }
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean < 1.02, "{mean:.3} of what is read");
}
