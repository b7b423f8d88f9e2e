//! Go: makes its system calls itself, and installs handlers that insist on alternate stacks.

use crate::{MIB, data, has, make, source, unnoticed};
use precache_tests::methods::METHODS;
use precache_tests::runs::Program;
use precache_tests::storage::{flat_file, scratch};
use std::path::PathBuf;
use std::process::Command;

const WITHOUT_A_BUILD_ID: &str = "-ldflags=-s -w -buildid=";

fn built(name: &str, output: &str, flags: &[&str], with_c: bool) -> Option<PathBuf> {
    if !has("go", &["version"]) {
        return None;
    }
    let program = scratch().join(output);
    let mut command = Command::new("go");
    command.env("GO111MODULE", "off").env("GOCACHE", scratch().join("go-cache"));
    command.env("CGO_ENABLED", if with_c { "1" } else { "0" });
    make(command.arg("build").args(flags).arg("-o").arg(&program).arg(source(name)));
    Some(program)
}

/// Left alone, for a reason that the report tells: the runtime may hand mapped memory to raw system calls.
fn left_alone(program: PathBuf, reason: &str) {
    let program = Program::new([program.into_os_string(), flat_file(MIB).into_os_string()]);
    let alone = program.alone();
    assert!(alone.status.success(), "{alone:?}");
    for method in METHODS {
        let (under, report) = program.under(&[method, "--distance=1M", "--size=8M"]);
        assert_eq!(under, alone);
        assert_eq!(report.trips(), 0, "{:#}", report.0);
        assert!(report.text().contains(reason), "{:#}", report.0);
    }
}

#[test]
fn without_c() {
    if let Some(program) = built("without_c.go", "go-without-c", &[], false) {
        left_alone(program, "statically linked");
    }
}

#[test]
fn with_c() {
    if let Some(program) = built("with_c.go", "go-with-c", &[], true) {
        left_alone(program, "makes system calls past libc");
    }
}

/// As many are released: without the note by which the runtime is told otherwise.
#[test]
fn with_c_and_without_a_build_id() {
    if let Some(program) = built("with_c.go", "go-without-a-build-id", &[WITHOUT_A_BUILD_ID], true) {
        left_alone(program, "makes system calls past libc");
    }
}

#[test]
fn a_library_in_python() {
    for (output, flags) in [("libcollector.so", "-ldflags="), ("libreleased.so", WITHOUT_A_BUILD_ID)] {
        if let Some(library) = built("collector.go", output, &["-buildmode=c-shared", flags], true) {
            let words = ["/usr/bin/python3".into(), source("collector.py").into_os_string(), library.into(), data()];
            for report in unnoticed(words) {
                assert!(report.text().contains("makes system calls past libc"), "{:#}", report.0);
            }
        }
    }
}
