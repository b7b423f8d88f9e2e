//! The test of the tests: libraries that break one rule each must turn the tests that are named for it red.
//!
//! A test is listed for each rule of [`rules`]. `make sabotage` tries all of them, `cargo test` those that are marked
//! there.

mod programs;
mod rules;

use libtest_mimic::{Arguments, Failed, Trial};
use precache_tests::preload::{REPLACEMENT, in_place_of_ours};
use precache_tests::programs::precache_run;
use precache_tests::storage::scratch;
use programs::{library, passes};
use rules::{RULES, Rule};
use std::collections::BTreeSet;
use std::env;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// Set by `make sabotage`.
const ALL: &str = "PRECACHE_TESTS_SABOTAGE";

/// How often a test is run that does not notice: some rules are about races, which have to be met.
const TRIES: usize = 3;

fn main() {
    assert!(env::var_os(REPLACEMENT).is_none(), "{REPLACEMENT} is for the tests that are tested");
    let all = env::var_os(ALL).is_some_and(|value| value == "all");
    let mut arguments = Arguments::from_args();
    // The tests that are run are many threads and processes themselves.
    arguments.test_threads.get_or_insert(2);
    let tried = move || RULES.iter().filter(move |rule| all || rule.always);
    let mut trials = vec![
        Trial::test("a_fault_in_the_handler_ends_the_program_and_is_told", || own_fault().map_err(Failed::from)),
        Trial::test("every_rule_is_named", || every_rule_is_named().map_err(Failed::from)),
        Trial::test("unbroken", move || nothing_is_broken(tried()).map_err(Failed::from)),
    ];
    trials.extend(RULES.iter().map(|rule| {
        let trial = Trial::test(rule.name, move || is_noticed(rule).map_err(Failed::from));
        trial.with_ignored_flag(!all && !rule.always)
    }));
    libtest_mimic::run(&arguments, trials).exit()
}

/// The kernel ends a program whose handler faults where the signal is blocked, at once; nothing in the program can say why.
fn own_fault() -> Result<(), String> {
    let library = library("fault-in-handler", "sabotage-fault-in-handler")?;
    let file = scratch().join("read-by-own-fault");
    File::create(&file).and_then(|file| file.set_len(64 << 20)).map_err(|error| error.to_string())?;
    let script = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n\
                  sum(m[at] for at in range(0, len(m), 4096))";
    let reader = ["python3".into(), "-c".into(), script.into(), file.into()];
    let output = Command::new(precache_run())
        .args(in_place_of_ours(&library, &reader))
        .output()
        .map_err(|error| format!("precache-run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.signal() {
        Some(libc::SIGSEGV) if said.contains("crashed while precache's handler was at work") => Ok(()),
        _ => Err(format!("{}: {said}", output.status)),
    }
}

/// Here and among the features of the library.
fn every_rule_is_named() -> Result<(), String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inject/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).map_err(|error| error.to_string())?;
    let features = manifest.lines().filter_map(|line| line.strip_prefix("sabotage-")?.split(' ').next());
    let (features, rules): (BTreeSet<_>, BTreeSet<_>) =
        (features.collect(), RULES.iter().map(|rule| rule.name).collect());
    match features.symmetric_difference(&rules).next() {
        Some(name) => Err(format!("{name} is not both a feature and a rule")),
        None => Ok(()),
    }
}

/// What makes tests fail is the sabotage, and not how they are run here: they pass with a library that breaks nothing.
fn nothing_is_broken<'r>(rules: impl Iterator<Item = &'r Rule>) -> Result<(), String> {
    let library = library("unbroken", "")?;
    let tests: BTreeSet<_> = rules.flat_map(|rule| rule.red).collect();
    for (program, test) in tests {
        if let (false, said) = passes(program, test, &library)? {
            return Err(format!("{program} {test} fails, with nothing broken:\n{said}"));
        }
    }
    Ok(())
}

fn is_noticed(rule: &Rule) -> Result<(), String> {
    let library = library(rule.name, &format!("sabotage-{}", rule.name))?;
    let content = std::fs::read(&library).map_err(|error| error.to_string())?;
    if !content.windows(17).any(|bytes| bytes == b"PRECACHE_SABOTAGE") {
        return Err("it does not have the mark by which optimizer/build.rs refuses it".into());
    }
    for (program, test) in rule.red {
        notices(program, test, &library)?;
    }
    Ok(())
}

/// Fails if the test passes with this library.
fn notices(program: &str, test: &str, library: &Path) -> Result<(), String> {
    for _ in 0..TRIES {
        match passes(program, test, library)? {
            (true, said) if said.contains("not all is tested") => {
                eprintln!("{test} cannot be run here:\n{said}");
                return Ok(());
            }
            (true, _) => {}
            (false, _) => return Ok(()),
        }
    }
    Err(format!("{program} {test} passes all the same"))
}
