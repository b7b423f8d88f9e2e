//! Node: V8 has a SIGSEGV handler for WebAssembly.

use crate::{compiled, data, has, source, unnoticed};

#[test]
fn a_mapped_array() {
    if !has("node", &["--version"]) {
        return;
    }
    let addon = compiled("mapped.c", &["-shared", "-fPIC"]).with_extension("node");
    std::fs::copy(addon.with_extension("out"), &addon).expect("the disk has room");
    for report in unnoticed(["node".into(), source("mapped.js").into_os_string(), addon.into_os_string(), data()]) {
        assert!(report.sum("forwarded") >= 1000, "WebAssembly that faults: {:#}", report.0);
    }
}
