//! Other libraries in the program under test: one in place of ours, or one behind it.
//!
//! A shell between `precache-run` and the program changes the environment that the program gets; what `precache-run`
//! embeds stays what it is.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names a library that takes the place of the injected one in every program that a test runs under precache.
pub const REPLACEMENT: &str = "PRECACHE_TESTS_LIBRARY";

/// The library that is tested in place of ours, if one is.
pub fn replacement() -> Option<PathBuf> {
    env::var_os(REPLACEMENT).map(PathBuf::from)
}

/// The words that start the program with this library in place of ours. LD_PRELOAD begins with ours, and
/// PRECACHE_READER names it in one of its entries.
pub fn in_place_of_ours(library: &Path, program: &[OsString]) -> Vec<OsString> {
    let script = r#"
        [ -n "$PRECACHE_READER" ] || exec "$@"
        ours=${PRECACHE_READER#*library=}; ours=${ours%%"$(printf '\036')"*}
        case $LD_PRELOAD in "$ours"*) ;; *) echo "LD_PRELOAD=$LD_PRELOAD does not begin with $ours" >&2; exit 99 ;; esac
        export LD_PRELOAD="$0${LD_PRELOAD#"$ours"}"
        export PRECACHE_READER="${PRECACHE_READER%%library=*}library=$0${PRECACHE_READER#*library="$ours"}"
        exec "$@""#;
    with_shell(script, library, program)
}

/// The words that start the program with this library too, behind ours.
pub fn behind_ours(library: &Path, program: &[OsString]) -> Vec<OsString> {
    with_shell(r#"export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0"; exec "$@""#, library, program)
}

fn with_shell(script: &str, library: &Path, program: &[OsString]) -> Vec<OsString> {
    let shell = ["sh".into(), "-c".into(), script.into(), library.into()];
    shell.into_iter().chain(program.iter().cloned()).collect()
}
