//! The policy at work: simulated readers go through the true curtain, the policy fetches for them from simulated
//! storage. All is computed, so times are as certain as anything else.

// The curtain is pure code of the injected library, which itself cannot be linked into a program.
mod changes;
#[path = "../../../../inject/src/curtain/mod.rs"]
#[allow(dead_code, reason = "the simulation needs less of it than the library")]
mod curtain;
mod epochs;
mod handler;
mod late;
mod machine;
pub(in crate::policy) mod memory;
mod recorded;
mod turns;

use self::handler::Handler;
use self::late::Late;
use self::machine::Machine;
use crate::policy::congestion::Estimate;
use crate::policy::plan::Plan;
use crate::policy::storage::Storage;
use crate::policy::stream::Streams;
use crate::policy::window::Sizing;
use precache_contract::{PAGE, segment::Method};
use std::collections::BTreeSet;
use std::time::Duration;

const PAGES_A_MEBIBYTE: usize = 256;

fn storage(milliseconds: f64, bandwidth: f64) -> Storage {
    Storage {
        bandwidth,
        latency: Duration::from_secs_f64(milliseconds / 1e3),
        depth: 32,
        chunk: 128 << 10,
        ..Storage::default()
    }
}

/// Seconds and bytes for a reader of these pages, and the machine after it.
fn run(storage: Storage, page: f64, pages: usize, order: impl Iterator<Item = usize>) -> Machine {
    let mut machine = Machine::new(pages, storage, page, true);
    order.for_each(|page| machine.read(page));
    machine
}

/// Seconds that these bytes need whatever one does.
fn limit(storage: Storage, page: f64, bytes: u64) -> f64 {
    let read = bytes as f64 / 4096.0 * page;
    (bytes as f64 / storage.bandwidth + storage.latency.as_secs_f64()).max(read)
}

/// Pages of records of `length` pages every `period` pages.
fn strided(pages: usize, first: usize, period: usize, length: usize) -> Vec<usize> {
    (first..pages - length).step_by(period).flat_map(|start| start..start + length).collect()
}

const WARM: f64 = 0.5e-6;

#[test]
fn sequential_reading_is_as_fast_as_the_storage() {
    for (milliseconds, bandwidth, depth) in
        [(0.2, 200e6, 32), (2.0, 200e6, 32), (10.0, 200e6, 32), (0.2, 800e6, 32), (2.0, 800e6, 32), (10.0, 800e6, 128)]
    {
        let storage = Storage { depth, ..storage(milliseconds, bandwidth) };
        let pages = 1024 * PAGES_A_MEBIBYTE;
        let machine = run(storage, WARM, pages, 3..pages);
        let ratio = machine.now / limit(storage, WARM, (pages as u64) * 4096);
        assert!(ratio < 1.05, "{ratio} at {milliseconds} ms, {bandwidth}");
        assert!(machine.fetched <= pages as u64 * 4096);
    }
}

#[test]
fn the_first_100_megabytes_come_in_time() {
    for (milliseconds, bandwidth) in [(0.2, 200e6), (2.0, 400e6), (10.0, 200e6), (2.0, 800e6)] {
        let storage = storage(milliseconds, bandwidth);
        let machine = run(storage, WARM, 1024 * PAGES_A_MEBIBYTE, 3..100 * PAGES_A_MEBIBYTE);
        let ratio = machine.now / limit(storage, WARM, 100 << 20);
        assert!(ratio < 1.3, "{ratio} at {milliseconds} ms, {bandwidth}");
    }
}

/// Pieces of 2 MiB, few at a time, as a mapping is populated.
#[test]
fn large_pieces_come_without_a_pause() {
    for (milliseconds, bandwidth) in
        [(0.2, 200e6), (2.0, 200e6), (10.0, 200e6), (0.2, 800e6), (2.0, 800e6), (10.0, 600e6)]
    {
        let storage = Storage { depth: 4, chunk: 2 << 20, ..storage(milliseconds, bandwidth) };
        let pages = 1024 * PAGES_A_MEBIBYTE;
        let mut machine = Machine::new(pages, storage, WARM, true);
        let in_flight = u64::from(storage.depth) * storage.chunk;
        machine.streams.measured(Estimate { bandwidth: bandwidth / 2.0, latency: storage.latency, in_flight });
        (3..pages).for_each(|page| machine.read(page));
        let ratio = machine.now / limit(storage, WARM, (pages as u64) * 4096);
        assert!(ratio < 1.05, "{ratio} at {milliseconds} ms, {bandwidth}");
    }
}

/// One of four records of 49 pages and the like.
#[test]
fn skipping_readers_get_their_records_and_no_gaps() {
    for (period, length) in [(196, 49), (98, 49), (392, 49), (200, 50), (256, 50), (400, 100)] {
        let (storage, pages) = (storage(2.0, 400e6), 2048 * PAGES_A_MEBIBYTE);
        let order = strided(pages, 7, period, length);
        let bytes = order.len() as u64 * 4096;
        let machine = run(storage, WARM, pages, order.into_iter());
        let (time, amount) = (machine.now / limit(storage, WARM, bytes), machine.fetched as f64 / bytes as f64);
        assert!(time < 1.25 && amount < 1.15, "{length} of {period}: {time:.3} of the time, {amount:.3} of the bytes");
    }
}

/// What lies between small records costs nothing where each request takes long. Here it is four times the bytes, which shows when
/// two windows have been fetched.
#[test]
fn gaps_that_turn_out_dear_are_left_out() {
    let (storage, pages) = (storage(0.2, 100e6), 4096 * PAGES_A_MEBIBYTE);
    let order = strided(pages, 7, 32, 8);
    let bytes = order.len() as u64 * 4096;
    let machine = run(storage, WARM, pages, order.into_iter());
    let (time, amount) = (machine.now / limit(storage, WARM, bytes), machine.fetched as f64 / bytes as f64);
    assert!(time < 1.5 && amount < 1.5, "{time:.3} of the time, {amount:.3} of the bytes");
}

/// Records of 1 to 8 MiB, which look like sequential reading until they end.
#[test]
fn long_records_are_told_from_the_gaps() {
    for (period, length) in [(800, 200), (800, 300), (1000, 260), (1568, 392), (3136, 784), (8000, 400), (8000, 2000)] {
        let (storage, pages) = (storage(2.0, 400e6), 8192 * PAGES_A_MEBIBYTE);
        let order = strided(pages, 7, period, length);
        let bytes = order.len() as u64 * 4096;
        let machine = run(storage, WARM, pages, order.into_iter());
        let (time, amount) = (machine.now / limit(storage, WARM, bytes), machine.fetched as f64 / bytes as f64);
        assert!(time < 1.25 && amount < 1.15, "{length} of {period}: {time:.3} of the time, {amount:.3} of the bytes");
    }
}

#[test]
fn backward_reading_is_as_fast_as_the_storage() {
    for record in [1, 16, 64, 256] {
        let (storage, pages) = (storage(2.0, 400e6), 1024 * PAGES_A_MEBIBYTE);
        let starts = (0..pages / record).rev().map(|number| number * record);
        let machine = run(storage, WARM, pages, starts.flat_map(|start| start..start + record));
        let time = machine.now / limit(storage, WARM, pages as u64 * 4096);
        assert!(time < 1.1, "records of {record} pages: {time:.3}");
    }
}

/// However long windows are beside the spacing of checkpoints: what it comes to has been asked for, once it is known.
#[test]
fn a_backward_reader_stays_inside_what_is_requested() {
    for (size, distance) in [(8, 8), (16, 8), (50, 8), (16, 32)] {
        let pages = 512 * PAGES_A_MEBIBYTE;
        let sizing = Sizing { size: size << 20, is_auto: false, threshold: 75 };
        let plan = Plan::sequential(0..pages as u64 * PAGE);
        let mut streams = Streams::new(plan, 0, sizing, distance << 20, false, Storage::default());
        let mut handler = Handler::new(pages, true, Method::Mprotect);
        let (mut is_requested, mut early, mut now) = (vec![false; pages], 0, 0.0);
        for page in (0..pages / 64).rev().flat_map(|record| record * 64..record * 64 + 64) {
            now += WARM;
            if handler.is_closed(page) {
                let heard = handler.trip(page, now);
                for offset in heard.iter().flatten() {
                    let request = streams.observe(*offset, Duration::from_secs_f64(now)).request;
                    for part in request.into_iter().flat_map(|(_, extents)| extents) {
                        is_requested[(part.start / PAGE) as usize..part.end.div_ceil(PAGE) as usize].fill(true);
                    }
                }
                heard.is_some().then(|| handler.hear(&streams));
            }
            early += usize::from(!is_requested[page]);
        }
        assert!(early < 3 * 64, "windows of {size} MiB, {distance} MiB apart: {early} pages");
    }
}

/// On a machine that is busy trips are heard of several at a time now and then: what is told then comes too late for the reader
/// to show by it how long its records are.
#[test]
fn records_are_as_long_where_trips_are_heard_of_late() {
    for (seed, (period, length, distance)) in (0..20).flat_map(|seed| {
        [(196, 49, 1), (196, 49, 2), (392, 49, 2), (400, 100, 2), (196, 49, 4)].map(|kind| (seed, kind))
    }) {
        let pages = 1024 * PAGES_A_MEBIBYTE;
        let sizing = Sizing { size: 50 << 20, is_auto: true, threshold: 75 };
        let plan = Plan::sequential(0..pages as u64 * PAGE);
        let mut streams = Streams::new(plan, 0, sizing, distance << 20, false, Storage::default());
        let mut handler = Handler::new(pages, true, Method::Mprotect);
        let (mut is_requested, mut now, mut late) = (vec![false; pages], 0.0, Late::new(seed));
        let (mut trips, mut together) = (Vec::new(), 1);
        let order = strided(pages, 7, period, length);
        for &page in &order {
            now += WARM;
            if handler.is_closed(page) {
                trips.extend(handler.trip(page, now).into_iter().flatten());
            }
            if trips.len() >= together {
                together = late.together();
                let left = (0..trips.len()).rev();
                for (offset, left) in trips.drain(..).zip(left) {
                    streams.fall_behind(left > 0);
                    let request = streams.observe(offset, Duration::from_secs_f64(now)).request;
                    for part in request.into_iter().flat_map(|(_, extents)| extents) {
                        is_requested[(part.start / PAGE) as usize..part.end.div_ceil(PAGE) as usize].fill(true);
                    }
                    if left > 0 {
                        streams.told_late();
                    }
                }
                handler.hear(&streams);
            }
        }
        let is_cut = |record: &&[usize]| is_requested[record[length / 2]] && !is_requested[record[length - 1]];
        let cut = order.chunks(length).filter(is_cut).count();
        assert!(cut < 3, "{length} of {period}, seed {seed}: {cut} records are cut short");
    }
}

/// A reader slower than the storage waits only until it is known.
#[test]
fn a_reader_that_computes_does_not_wait() {
    let (storage, pages, page) = (storage(2.0, 400e6), 1024 * PAGES_A_MEBIBYTE, 30e-6);
    let machine = run(storage, page, pages, 0..pages);
    assert!(machine.now < 1.02 * page * pages as f64, "{}", machine.now);
}

/// Random places cost no byte more than without us.
#[test]
fn random_reading_is_left_alone() {
    let (storage, pages) = (storage(2.0, 400e6), 1024 * PAGES_A_MEBIBYTE);
    for length in [1, 16, 49] {
        let mut seed = 7u64;
        let mut place = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % (pages - 100)
        };
        let order: Vec<_> = (0..1000).map(|_| place()).flat_map(|start| start..start + length).collect();
        let mut plain = Machine::new(pages, storage, WARM, false);
        order.iter().for_each(|&page| plain.read(page));
        let under = run(storage, WARM, pages, order.into_iter());
        let (time, amount) = (under.now / plain.now, under.fetched as f64 / plain.fetched as f64);
        assert!(time < 1.01 && amount < 1.02, "{length} pages: {time:.3} of the time, {amount:.3} of the bytes");
    }
}

/// Sequential, every fourth record, backward: each is found out and served.
#[test]
fn changes_are_noticed() {
    let (storage, third) = (storage(2.0, 400e6), 512 * PAGES_A_MEBIBYTE);
    let mut machine = Machine::new(3 * third, storage, WARM, true);
    let forward = (0..third).collect();
    let skipping = strided(2 * third, third + 7, 196, 49);
    let backward = (2 * third..3 * third).rev().collect();
    for (name, order) in [("forward", forward), ("strided", skipping), ("backward", backward)] {
        let order: Vec<usize> = order;
        let (before, fetched) = (machine.now, machine.fetched);
        order.iter().for_each(|&page| machine.read(page));
        let bytes = order.len() as u64 * 4096;
        let time = (machine.now - before) / limit(storage, WARM, bytes);
        let amount = (machine.fetched - fetched) as f64 / bytes as f64;
        assert!(time < 1.6 && amount < 1.6, "{name}: {time:.3} of the time, {amount:.3} of the bytes");
    }
}

/// Pages requested at the trips of a real run of lmdb-reader, rank 0 or 1 of 4 skipping, as a share of those that it reads: a
/// line of `trips` has microseconds and a page.
fn requested_at(trips: &str, length: u64) -> f64 {
    let sizing = Sizing { size: 50 << 20, is_auto: true, threshold: 75 };
    let mut streams = Streams::new(Plan::sequential(0..length), 0, sizing, 8 << 20, true, Storage::default());
    let mut requested = BTreeSet::new();
    for line in trips.lines() {
        let (time, page) = line.split_once(' ').unwrap();
        let (time, page): (u64, u64) = (time.parse().unwrap(), page.parse().unwrap());
        let decision = streams.observe(page * PAGE, Duration::from_micros(time));
        for extent in decision.repair.into_iter().chain(decision.request).flat_map(|(_, extents)| extents) {
            requested.extend(extent.start / PAGE..extent.end / PAGE);
        }
    }
    requested.len() as f64 / (length / PAGE / 4) as f64
}

/// On a 1 GiB database on slowfs (2 ms, 400 MB/s). The tree's pages lie between the records now and then.
#[test]
fn a_recorded_skipping_reader_is_followed() {
    let share = requested_at(include_str!("recorded/lmdb-reader-skipping.trips"), 1_073_750_016);
    assert!((0.95..1.11).contains(&share), "{share} of what it reads");
}

/// On a busy machine, 384 MiB at 1 ms and 800 MB/s: three times it comes again to a leaf of the tree that it has passed.
#[test]
fn a_recorded_skipping_reader_that_comes_back_to_leaves_is_followed() {
    let share = requested_at(include_str!("recorded/lmdb-reader-leaves-again.trips"), 402_702_336);
    assert!((0.95..1.15).contains(&share), "{share} of what it reads");
}

/// The same with a page of the tree after every 155 records, as in an LMDB.
#[test]
fn records_that_are_pushed_aside_are_followed() {
    let (storage, pages) = (storage(2.0, 400e6), 2048 * PAGES_A_MEBIBYTE);
    let starts = (0..).map(|record| 3 + record * 49 + record / 155);
    let records = starts.step_by(4).take_while(|start| start + 49 <= pages);
    let order: Vec<usize> = records.flat_map(|start| start..start + 49).collect();
    let bytes = order.len() as u64 * 4096;
    let machine = run(storage, WARM, pages, order.into_iter());
    let (time, amount) = (machine.now / limit(storage, WARM, bytes), machine.fetched as f64 / bytes as f64);
    assert!(time < 1.08 && amount < 1.07, "{time:.3} of the time, {amount:.3} of the bytes");
}
