//! The detector (`hostile/detector.c`): ends a program in whose SIGSEGV handler memory is allocated or a lock taken.

use crate::preload::behind_ours;
use crate::programs::compile;
use crate::storage::scratch;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The words that start the program with the detector behind our library.
pub fn watched(program: &[OsString]) -> Result<Vec<OsString>, String> {
    Ok(behind_ours(detector()?, program))
}

/// Built once.
fn detector() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile/detector.c");
        let library = scratch().join("libdetector.so");
        // -fexceptions: a thread can be cancelled in what it stands in front of.
        let flags = ["-shared", "-fPIC", "-fexceptions", "-static-libgcc"];
        compile(&source, &library, &flags).map(|()| library)
    };
    BUILT.get_or_init(build).as_deref().map_err(Clone::clone)
}
