//! Builds the injected library, which the executables carry inside.
//!
//! It needs a profile of its own (no unwinding, small) and features that no other build of its crate has, so that it
//! cannot be an ordinary dependency: a second Cargo builds it, in a target directory below this one's.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = variable("CARGO_MANIFEST_DIR").join("../inject/Cargo.toml");
    let target = variable("OUT_DIR").join("inject");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../inject");

    let library = build(&manifest, &target);
    let content = fs::read(&library).unwrap_or_else(|error| panic!("cannot read {}: {error}", library.display()));
    assert!(
        !is_sabotage(&content),
        "{} is broken on purpose (inject/src/sabotage.rs): it is not embedded",
        library.display()
    );
    println!("cargo:rustc-env=PRECACHE_LIBRARY={}", library.display());
    println!("cargo:rustc-env=PRECACHE_LIBRARY_HASH={:016x}", hash(&content));
}

fn build(manifest: &Path, target: &Path) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    // What describes this build, and would be taken for the wishes of the other.
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_this_build(name)) {
        cargo.env_remove(name);
    }
    cargo
        .args(["rustc", "--package", "precache-inject", "--lib"])
        .args(["--crate-type", "cdylib", "--features", "preload"])
        .args(["--profile", "inject", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target);
    let mut folder = target.to_owned();
    let (host, triple) = (variable("HOST"), variable("TARGET"));
    if host != triple {
        cargo.arg("--target").arg(&triple);
        folder.push(&triple);
    }
    if manifest.with_file_name("../Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    // For profilers that follow them; and the tables of unwinders are a fifth shorter. The others: less is copied to its callers than
    // elsewhere where code is to be small, and `#[inline]`, which much of `core` bears, counts for nothing.
    cargo.args(["--", "-C", "force-frame-pointers=yes"]);
    cargo.args(["-C", "llvm-args=-inline-threshold=40 -inlinehint-threshold=40"]);
    let status = cargo.status().unwrap_or_else(|error| panic!("cannot start {cargo:?}: {error}"));
    assert!(status.success(), "{cargo:?} failed: {status}");
    folder.join("inject/libprecache_inject.so")
}

fn is_of_this_build(name: &OsString) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let kept = name == "CARGO_HOME"
        || ["CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
    name.starts_with("CARGO") && !kept
        || name.starts_with("RUSTC")
        || matches!(name, "RUSTFLAGS" | "PROFILE" | "OPT_LEVEL" | "DEBUG" | "TARGET" | "HOST" | "NUM_JOBS" | "OUT_DIR")
}

/// Whether the library was built to break a rule, for the tests of the tests.
fn is_sabotage(content: &[u8]) -> bool {
    const MARK: &[u8] = b"PRECACHE_SABOTAGE";
    content.windows(MARK.len()).any(|bytes| bytes == MARK)
}

/// Names the content; every use of it compares the content itself.
fn hash(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(content);
    hasher.finish()
}

fn variable(name: &str) -> PathBuf {
    match env::var_os(name) {
        Some(value) => PathBuf::from(value),
        None => panic!("Cargo sets {name} for build scripts"),
    }
}
