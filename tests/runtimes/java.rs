//! OpenJDK: its handler turns faults into NullPointerExceptions and safepoints.

use crate::{data, has, source, unnoticed};
use std::path::PathBuf;

/// `java OPTIONS Mapped.java FILE`; `preload` is the value of LD_PRELOAD, in which `$LD_PRELOAD` is ours.
fn mapped(options: &str, preload: &str) {
    if !has("java", &["-version"]) {
        return;
    }
    let command = format!("{preload} exec java {options} -Xmx256m \"$@\"");
    for report in
        unnoticed(["sh".into(), "-c".into(), command.into(), "sh".into(), source("Mapped.java").into(), data()])
    {
        assert!(report.sum("forwarded") >= 1000, "null checks that fault: {:#}", report.0);
    }
}

/// The library that lets others' handlers and Java's live together, of the `java` on the path.
fn libjsig() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let java = std::env::split_paths(&path).map(|folder| folder.join("java")).find(|java| java.is_file())?;
    let library = java.canonicalize().ok()?.parent()?.parent()?.join("lib/libjsig.so");
    library.is_file().then_some(library)
}

fn with_libjsig(preload: impl Fn(&str) -> String) {
    match libjsig() {
        Some(library) => mapped("-Xcheck:jni", &preload(library.to_str().expect("a path in UTF-8"))),
        None => precache_tests::storage::lacking("libjsig.so"),
    }
}

#[test]
fn compiled() {
    mapped("", "");
}

#[test]
fn interpreted_and_checked() {
    mapped("-Xint -Xcheck:jni", "");
}

#[test]
fn with_libjsig_before_us() {
    with_libjsig(|library| format!("LD_PRELOAD=\"{library} $LD_PRELOAD\""));
}

#[test]
fn with_libjsig_after_us() {
    with_libjsig(|library| format!("LD_PRELOAD=\"$LD_PRELOAD {library}\""));
}
