extern crate std;
use super::*;
use std::boxed::Box;

const MIB: u64 = 1 << 20;

/// A mapping of the file from 3 MiB on, with checkpoints every 8 MiB, of which those from 40 to 80 MiB are quiet.
fn mapping(is_exact: u64) -> Box<Mapping> {
    // SAFETY: a Mapping is made of atomics alone, for which zero is a valid value (core::sync::atomic: same in-memory
    // representation as the integer).
    let mapping: Box<Mapping> = unsafe { Box::new_zeroed().assume_init() };
    mapping.offset.store(3 * MIB, Relaxed);
    mapping.distance.store(8 * MIB, Relaxed);
    mapping.watched.store(3, Relaxed);
    let watch = &mapping.watches[2];
    watch.quiet_low.store(40 * MIB, Relaxed);
    watch.quiet_high.store(80 * MIB, Relaxed);
    watch.is_exact.store(is_exact, Relaxed);
    watch.checkpoints[1].store(60 * MIB + 5, Relaxed);
    mapping
}

#[test]
fn only_checkpoints_are_quiet_for_an_exact_reader() {
    let mapping = mapping(1);
    let quiet = [43 * MIB, 75 * MIB, 60 * MIB];
    assert!(quiet.iter().all(|&offset| mapping.is_quiet(offset)));
    let urgent = [35 * MIB, 83 * MIB, 43 * MIB + PAGE, 48 * MIB, 60 * MIB + PAGE, 60 * MIB - PAGE];
    assert!(urgent.iter().all(|&offset| !mapping.is_quiet(offset)));
    mapping.watched.store(2, Relaxed);
    assert!(quiet.iter().all(|&offset| !mapping.is_quiet(offset)));
}

#[test]
fn all_is_quiet_there_for_another() {
    let mapping = mapping(0);
    assert!([40 * MIB, 43 * MIB + PAGE, 80 * MIB - PAGE].iter().all(|&offset| mapping.is_quiet(offset)));
    assert!(![40 * MIB - PAGE, 80 * MIB].iter().any(|&offset| mapping.is_quiet(offset)));
    // Where the grid is not known, nothing is on it.
    let mapping = self::mapping(1);
    mapping.distance.store(0, Relaxed);
    assert!(!mapping.is_quiet(43 * MIB) && mapping.is_quiet(60 * MIB));
}
