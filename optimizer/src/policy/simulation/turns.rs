//! Readers that share a file record by record: threads, whose trips come in one mapping, and workers, each of which leaves out
//! what the others read.

use super::{PAGES_A_MEBIBYTE, WARM, limit, storage, strided};

const MIB: u64 = 1 << 20;

/// Pages of the file.
const PAGES: usize = 2048 * PAGES_A_MEBIBYTE;

/// Seconds that a reader of these pages waits beyond what the bytes need, bytes that it reads, and bytes fetched.
fn run(order: Vec<usize>) -> (f64, u64, u64) {
    let bytes = order.len() as u64 * 4096;
    let machine = super::run(storage(2.0, 400e6), WARM, PAGES, order.into_iter());
    (machine.now - limit(storage(2.0, 400e6), WARM, bytes), bytes, machine.fetched)
}

/// Pages of records that so many threads read in turns, each at its own pace; after each record they wait for each other.
fn in_turns(first: usize, threads: usize, record: usize) -> Vec<usize> {
    let (mut order, mut seed) = (Vec::new(), 7u64);
    for group in (first..PAGES - threads * record).step_by(threads * record) {
        let mut places: Vec<_> =
            (0..threads).map(|thread| group + thread * record..group + (thread + 1) * record).collect();
        while !places.is_empty() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let thread = (seed >> 33) as usize % places.len();
            match places[thread].next() {
                Some(page) => order.push(page),
                None => drop(places.swap_remove(thread)),
            }
        }
    }
    order
}

/// Alone it would wait for half a minute to a minute.
#[test]
fn threads_in_turns_are_one_reader() {
    for (threads, record) in [(2, 16), (2, 49), (4, 49), (8, 49), (4, 64), (4, 256), (8, 256), (2, 1024)] {
        for first in [0, 3] {
            let (waited, _, fetched) = run(in_turns(first, threads, record));
            let megabytes = fetched / MIB;
            assert!(
                waited < 1.5 && fetched <= PAGES as u64 * 4096,
                "{threads} threads, {record} from {first}: {waited:.2} s, {megabytes} MiB"
            );
        }
    }
}

/// The same without waiting for each other: the first one goes ahead of the others.
fn apart(threads: usize, record: usize) -> Vec<usize> {
    let (mut order, mut seed) = (Vec::new(), 7u64);
    let mut places: Vec<_> = (0..threads)
        .map(|thread| (thread * record..PAGES - record).step_by(threads * record).flat_map(|at| at..at + record))
        .collect();
    while !places.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The last one a little more often.
        let thread = ((seed >> 33) as usize % (10 * places.len() + 2) / 10).min(places.len() - 1);
        match places[thread].next() {
            Some(page) => order.push(page),
            None => drop(places.remove(thread)),
        }
    }
    order
}

#[test]
fn threads_that_drift_apart_are_served() {
    for (threads, record) in [(2, 49), (4, 49), (2, 256)] {
        let (waited, _, fetched) = run(apart(threads, record));
        assert!(waited < 12.0, "{threads} threads, {record}: {waited:.2} s, {} MiB", fetched / MIB);
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
