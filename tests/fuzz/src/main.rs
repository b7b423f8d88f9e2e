//! The coverage-guided fuzzer: `tests/fuzz/run TARGET`, or `make fuzz` for all targets.
#![no_main]

use std::sync::OnceLock;
use std::{env, ptr};

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use precache_fuzz::{TARGETS, Target, mutation};

mod coverage;
mod walk;

/// The target that the environment names.
static TARGET: OnceLock<Target> = OnceLock::new();

const WALK: &str = "walk";

fn chosen() -> Target {
    let name = env::var("FUZZ_TARGET").unwrap_or_default();
    if name == WALK {
        walk::prepare();
        return walk::walk;
    }
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    target.unwrap_or_else(|| panic!("FUZZ_TARGET={name} is neither {WALK} nor one of {TARGETS:?}")).1
}

fuzz_target!(init: { TARGET.get_or_init(chosen); }, |bytes: &[u8]| {
    TARGET.get().unwrap()(bytes);
});

// Whole databases have little structure in many bytes: half of the time damage is done where that is.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let is_walk = ptr::fn_addr_eq(*TARGET.get().unwrap(), walk::walk as Target);
    if !is_walk || seed.is_multiple_of(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut bytes = data[..size].to_vec();
    mutation::mutate(&mut bytes, &mut mutation::Random(u64::from(seed) << 1 | 1));
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
});
