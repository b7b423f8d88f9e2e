//! What machine-learning programs map, read by the formats' own libraries: Arrow, safetensors, and GGUF by llama.cpp.

use crate::{has, make, source, unnoticed};
use precache_tests::runs::Report;
use precache_tests::storage::scratch;
use std::path::Path;
use std::process::Command;

/// The libraries are not Debian's: `make tools-test` installs them from PyPI, beside what cargo builds.
fn read(script: &str) -> Vec<Report> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("formats").join("bin/python");
    if !has(&python.to_string_lossy(), &["-c", "import ctransformers, gguf, pyarrow, safetensors"]) {
        return Vec::new();
    }
    let script = source(script);
    let data = scratch().join(script.file_name().expect("a file has a name")).with_extension("data");
    make(Command::new(&python).arg(&script).arg("make").arg(&data));
    unnoticed([python.as_os_str(), script.as_os_str(), "read".as_ref(), data.as_os_str()])
}

#[test]
fn arrow() {
    for report in read("arrow_file.py") {
        assert!(report.sum("lifted_for_calls") > 0, "nothing was written from the mapping: {:#}", report.0);
    }
}

#[test]
fn safetensors() {
    read("safetensors_file.py");
}

#[test]
fn gguf() {
    for report in read("gguf_file.py") {
        let is_advised = report.mappings().any(|mapping| mapping["advice"].as_u64() > Some(0));
        assert!(is_advised, "llama.cpp did not say that it will need the file: {:#}", report.0);
    }
}
