//! What is built and run: the broken libraries, and the test programs that must notice.

use crate::rules::RULES;
use precache_tests::preload::REPLACEMENT;
use precache_tests::storage::scratch;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// What does not end within so many seconds hangs: a broken rule may well show in that.
const PATIENCE: &str = "20";

fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command
}

/// TARGET_DIR/PROFILE, where this test is in a folder of.
fn profile_folder() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    test.ancestors().nth(2).expect("Cargo puts tests two folders deep").to_owned()
}

/// The injected library, made as `optimizer/build.rs` makes it, with these features too.
pub fn library(name: &str, features: &str) -> Result<PathBuf, String> {
    // They come out under one name.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let target = profile_folder().join("sabotage");
    let output = cargo()
        .args(["rustc", "--quiet", "--locked", "--package", "precache-inject", "--lib", "--crate-type", "cdylib"])
        .args(["--profile", "inject", "--features", &format!("preload {features}")])
        .arg("--target-dir")
        .arg(&target)
        .args(["--", "-C", "force-frame-pointers=yes"])
        .args(["-C", "llvm-args=-inline-threshold=40 -inlinehint-threshold=40"])
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // The detector knows the library by this part of its name.
    let library = scratch().join(format!("libprecache_inject-{name}.so"));
    std::fs::copy(target.join("inject/libprecache_inject.so"), &library).map_err(|error| error.to_string())?;
    Ok(library)
}

/// The test programs that rules name, as Cargo builds them for the whole workspace.
fn programs() -> &'static BTreeMap<String, PathBuf> {
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = profile_folder();
        let name = profile.file_name().and_then(|name| name.to_str()).unwrap_or("debug");
        let wanted: BTreeSet<_> = RULES.iter().flat_map(|rule| rule.red).map(|(program, _)| *program).collect();
        let output = cargo()
            .args(["test", "--quiet", "--workspace", "--no-run", "--message-format", "json"])
            .args(wanted.iter().flat_map(|program| ["--test", program]))
            .args(["--profile", if name == "debug" { "dev" } else { name }, "--target-dir"])
            .arg(profile.parent().expect("a profile's folder has a parent"))
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo starts");
        assert!(output.status.success(), "cannot build the tests");
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let programs = messages.filter_map(|message| {
            let program = message["executable"].as_str()?;
            Some((message["target"]["name"].as_str()?.to_owned(), program.into()))
        });
        programs.filter(|(name, _): &(String, PathBuf)| wanted.contains(name.as_str())).collect()
    })
}

/// Runs one test with this library in place of ours; the answer is whether it passed, and what it said.
pub fn passes(program: &str, test: &str, library: &Path) -> Result<(bool, String), String> {
    let path = programs().get(program).ok_or(format!("there is no test program {program}"))?;
    let output = Command::new(path)
        .args(["--exact", "--nocapture", test])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env(REPLACEMENT, library)
        .env("HOSTILE_PATIENCE", PATIENCE)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !said.contains("running 1 test\n") {
        return Err(format!("{program} has no test {test}:\n{said}"));
    }
    Ok((output.status.success(), said))
}
