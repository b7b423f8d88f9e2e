//! The soak: random operations of `program/` on mapped files, natively and under precache, and no difference.
//!
//! One round is one seed: it decides on all operations, and so on what each finds. Rounds go on for
//! `PRECACHE_SOAK_SECONDS`, from `PRECACHE_SOAK_SEED` on, with `PRECACHE_SOAK_OPERATIONS` each. What fails names the seed and
//! the operation; the same seed and number of operations do the same again.

#[path = "../hostile/run.rs"]
#[allow(dead_code, reason = "not all ways are taken here")]
mod run;

use precache_tests::programs::compile;
use precache_tests::storage::scratch;
use run::{Left, Run, Way, run};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Many checkpoints in files that are not large.
const OPTIONS: [&str; 3] = ["--min-file=1M", "--distance=1M", "--size=4M"];

const WAYS: [Way; 3] = [Way::Guard, Way::Mprotect, Way::OptimizerKilled];

/// What the environment says of how long to go on.
struct Plan {
    duration: Duration,
    seed: u64,
    operations: u64,
}

impl Plan {
    fn from_environment() -> Self {
        let number = |name: &str, otherwise| match std::env::var(name) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
            Err(_) => otherwise,
        };
        Self {
            duration: Duration::from_secs(number("PRECACHE_SOAK_SECONDS", 120)),
            seed: number("PRECACHE_SOAK_SEED", 1),
            operations: number("PRECACHE_SOAK_OPERATIONS", 25_000),
        }
    }
}

/// The program, and the names of its operations by their numbers.
struct Soak {
    program: PathBuf,
    kinds: Vec<String>,
}

/// What a run of a round leaves behind.
struct Round {
    left: Left,
    /// A word for each operation.
    log: Vec<u8>,
    took: Duration,
}

impl Soak {
    fn build() -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("soak/program");
        let program = scratch().join("soak");
        let others = ["arena.c", "calls.c", "files.c", "memory.c", "processes.c", "signals.c", "threads.c"];
        let others = others.map(|name| sources.join(name).to_str().expect("UTF-8").to_owned());
        let flags: Vec<&str> = others.iter().map(String::as_str).chain(["-g", "-Wextra", "-pthread"]).collect();
        compile(&sources.join("soak.c"), &program, &flags).expect("the soak compiles");
        let listed = Command::new(&program).output().expect("it starts").stdout;
        Self { program, kinds: String::from_utf8(listed).expect("names").lines().map(str::to_owned).collect() }
    }

    fn round(&self, seed: u64, operations: u64, way: Way) -> Result<Option<Round>, String> {
        let log = scratch().join("soak.log");
        let words: [OsString; 5] = [
            self.program.clone().into(),
            scratch().into(),
            seed.to_string().into(),
            operations.to_string().into(),
            log.clone().into(),
        ];
        let started = Instant::now();
        let Some(Run { left, report, hit, .. }) = run(&words, way, &OPTIONS)? else { return Ok(None) };
        // What readers count that come and go before an optimizer is killed goes with it.
        let least = if way == Way::OptimizerKilled { 1 } else { operations / 20 };
        if let Some(hit) = hit.filter(|hit| way != Way::Native && *hit < least) {
            return Err(format!("only {hit} checkpoints were hit: {:#}", report.0));
        }
        let log = fs::read(&log).map_err(|error| error.to_string())?;
        Ok(Some(Round { left, log, took: started.elapsed() }))
    }

    /// Where two runs part.
    fn first_difference(&self, native: &[u8], injected: &[u8]) -> String {
        let word = |log: &[u8], at: usize| {
            log.chunks_exact(8).nth(at).map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        };
        let same = native.chunks_exact(8).zip(injected.chunks_exact(8)).take_while(|(one, other)| one == other).count();
        match (word(native, same), word(injected, same)) {
            (None, None) => "no operation found anything else".into(),
            (found, None) => format!("operation {same} ({}) was the last one", self.kind(found)),
            (found, Some(_)) => format!("operation {same} ({}) found something else", self.kind(found)),
        }
    }

    fn kind(&self, word: Option<u64>) -> &str {
        word.and_then(|word| self.kinds.get((word >> 56) as usize)).map_or("none", String::as_str)
    }
}

/// What is compared of a run. The last line, what the program has more of, is not if the optimizer was killed: its segment
/// stays mapped, for other threads may be at work with it.
fn seen(left: &Left, way: Way) -> ((Option<i32>, Option<i32>), &str, &str) {
    let stdout = match left.stdout.trim_end().rsplit_once('\n') {
        Some((before, _)) if way == Way::OptimizerKilled => before,
        _ => left.stdout.trim_end(),
    };
    (left.status, stdout, &left.stderr)
}

#[test]
fn random_operations_find_what_they_find_natively() {
    let plan = Plan::from_environment();
    let soak = Soak::build();
    let started = Instant::now();
    let mut done = 0;
    for seed in plan.seed.. {
        let round =
            |way| soak.round(seed, plan.operations, way).unwrap_or_else(|what| panic!("seed {seed}, {way:?}: {what}"));
        let native = round(Way::Native).expect("it runs natively");
        let whole = native.log.len() as u64 == plan.operations * 8;
        assert!(whole && native.left.status == (Some(0), None), "seed {seed} fails natively: {}", native.left);
        let mut pace = format!("natively {:.1} s", native.took.as_secs_f64());
        for way in WAYS {
            let Some(injected) = round(way) else { continue };
            assert!(
                seen(&injected.left, way) == seen(&native.left, way) && injected.log == native.log,
                "seed {seed}, {} operations, {way:?}: {}\nnatively: {}\n{way:?}: {}",
                plan.operations,
                soak.first_difference(&native.log, &injected.log),
                native.left,
                injected.left
            );
            pace += &format!(", {way:?} {:.1} s", injected.took.as_secs_f64());
            done += plan.operations;
        }
        eprintln!("seed {seed}: {} operations: {pace}", plan.operations);
        if started.elapsed() >= plan.duration {
            break;
        }
    }
    eprintln!("{done} operations under precache: no difference");
}
