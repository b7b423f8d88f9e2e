//! Readers that change their order where trips are quiet: how much is fetched in vain, and how long they wait, before it is
//! noticed.

use super::machine::Machine;
use super::{PAGES_A_MEBIBYTE, WARM, limit, storage, strided};

const MIB: u64 = 1 << 20;

/// MiB of the file, and where readers change their order once more.
const SIZE: usize = 2048;
const HALF: usize = 1024;

/// MiB in a window of these readers, at most.
const WINDOW: u64 = 64;

/// A machine whose reader has gone so many MiB forward, through a file of so many.
fn forward(length: usize, size: usize) -> Machine {
    let mut machine = Machine::new(size * PAGES_A_MEBIBYTE, storage(2.0, 400e6), WARM, true);
    (0..length * PAGES_A_MEBIBYTE).for_each(|page| machine.read(page));
    machine
}

/// Mebibytes fetched, and seconds, for these pages.
fn cost(machine: &mut Machine, pages: impl IntoIterator<Item = usize>) -> (u64, f64) {
    let (fetched, begun) = (machine.fetched, machine.now);
    pages.into_iter().for_each(|page| machine.read(page));
    ((machine.fetched - fetched) / MIB, machine.now - begun)
}

/// Seconds beyond those that so many bytes need.
fn waited(time: f64, bytes: u64) -> f64 {
    time - limit(storage(2.0, 400e6), WARM, bytes)
}

/// Seconds for so many MiB by the kernel's own read-ahead.
fn alone(mebibytes: u64) -> f64 {
    (mebibytes * 8) as f64 * (2e-3 + 131_072.0 / 400e6)
}

/// Where the change comes: at places of every kind between two thresholds.
const PLACES: [usize; 4] = [201, 213, 226, 240];

/// Of each order, records whose starts lie on the grid too; not at checkpoints alone, where nothing tells.
const ORDERS: [(usize, usize); 8] =
    [(196, 49), (98, 49), (392, 49), (256, 64), (256, 128), (1024, 256), (400, 100), (400, 200)];

/// A reader that begins to leave something out is learned anew at its third checkpoint left out; where they lie on a grid, it goes in
/// small steps from the first on. Until then two windows are fetched at most, and some of the next, and it waits for a few records.
#[test]
fn a_reader_that_begins_to_skip_is_noticed() {
    for (place, (period, record)) in PLACES.into_iter().flat_map(|place| ORDERS.map(|order| (place, order))) {
        let mut machine = forward(place, SIZE);
        let order = strided(HALF * PAGES_A_MEBIBYTE, place * PAGES_A_MEBIBYTE, period, record);
        let bytes = order.len() as u64 * 4096;
        let (fetched, time) = cost(&mut machine, order);
        let (vain, waited) = (fetched - bytes / MIB, waited(time, bytes));
        assert!(
            vain <= 2 * WINDOW + WINDOW / 8 && waited < 0.9,
            "{record} of {period} at {place}: {vain} MiB in vain, {waited:.2} s"
        );
    }
}

/// One that leaves nothing out any more, at its second checkpoint in a gap: at the latest its fourth one, which are 32 MiB apart
/// at most, and until then it reads as it would without us.
#[test]
fn a_reader_that_ceases_to_skip_is_noticed() {
    for (place, (period, record)) in PLACES.into_iter().flat_map(|place| ORDERS.map(|order| (place, order))) {
        let mut machine = forward(place, SIZE);
        strided(HALF * PAGES_A_MEBIBYTE, place * PAGES_A_MEBIBYTE, period, record)
            .into_iter()
            .for_each(|page| machine.read(page));
        let (_, time) = cost(&mut machine, HALF * PAGES_A_MEBIBYTE..SIZE * PAGES_A_MEBIBYTE);
        let waited = waited(time, (SIZE - HALF) as u64 * MIB);
        assert!(waited < alone(4 * 32), "{record} of {period} at {place}: waited for {waited:.2} s");
    }
}

/// What has been requested is all that is fetched in vain for one that reads anywhere from then on.
#[test]
fn a_reader_that_loses_its_order_is_noticed() {
    for place in PLACES {
        let mut seed = 7u64;
        let mut anywhere = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % (SIZE * PAGES_A_MEBIBYTE)
        };
        let order: Vec<_> = (0..1000).map(|_| anywhere()).collect();
        let mut plain = Machine::new(SIZE * PAGES_A_MEBIBYTE, storage(2.0, 400e6), WARM, false);
        (0..place * PAGES_A_MEBIBYTE).for_each(|page| plain.read(page));
        let (native, _) = cost(&mut plain, order.iter().copied());
        let (fetched, _) = cost(&mut forward(place, SIZE), order);
        assert!(fetched <= native + WINDOW, "at {place}: {fetched} MiB instead of {native}");
    }
}

/// A second reader, which begins ahead of the first and goes as fast, waits no longer than four checkpoints, 8 MiB apart.
#[test]
fn a_second_reader_is_noticed() {
    for (place, ahead) in PLACES.into_iter().flat_map(|place| [3, 8, 20, 50, 100].map(|ahead| (place, ahead))) {
        let mut machine = forward(place, SIZE);
        let first = place * PAGES_A_MEBIBYTE;
        let second = first + ahead * PAGES_A_MEBIBYTE;
        let (fetched, time) = cost(&mut machine, (0..900 * 256).flat_map(|page| [first + page, second + page]));
        let bytes = 900 + ahead as u64;
        let waited = waited(time, bytes * MIB);
        assert!(fetched == bytes && waited < alone(2 * 4 * 8), "{ahead} from {place}: {fetched} MiB, {waited:.2} s");
    }
}

/// One that goes on as it did wakes the optimizer once a window, and trips once a distance and twice a window.
#[test]
fn nobody_is_woken_for_what_is_expected() {
    for place in PLACES {
        let mut machine = forward(place, SIZE);
        let (trips, wakes) = (machine.trips.len(), machine.wakes);
        let _ = cost(&mut machine, place * PAGES_A_MEBIBYTE..SIZE * PAGES_A_MEBIBYTE);
        let (trips, wakes) = (machine.trips.len() - trips, machine.wakes - wakes);
        let windows = (SIZE - place).div_ceil(WINDOW as usize / 2);
        assert!(wakes <= windows, "{wakes} wakes for {windows} windows");
        assert!(trips <= (SIZE - place) / 8 + 2 * wakes, "{trips} trips and {wakes} wakes");
    }
}
