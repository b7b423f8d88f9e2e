//! Mono: its handler turns faults into NullReferenceExceptions, and signals stop its threads.

use crate::{data, has, make, source, unnoticed};
use precache_tests::storage::scratch;
use std::process::Command;

/// With its threads stopped for the collector in this way.
fn mapped(suspend: &str) {
    if !has("mono", &["--version"]) || !has("mcs", &["--version"]) {
        return;
    }
    let program = scratch().join(format!("Mapped-{suspend}.exe"));
    let out = format!("-out:{}", program.display());
    make(Command::new("mcs").args(["-unsafe", "-optimize", "-r:System.Core.dll", &out]).arg(source("Mapped.cs")));
    let suspend = format!("MONO_THREADS_SUSPEND={suspend}");
    let words = ["/usr/bin/env".into(), suspend.into(), "mono".into(), program.into_os_string(), data()];
    for report in unnoticed(words) {
        assert!(report.sum("forwarded") >= 1000, "null checks that fault: {:#}", report.0);
    }
}

#[test]
fn stopped_by_signals() {
    mapped("preemptive");
}

#[test]
fn stopped_where_they_offer() {
    mapped("coop");
}
