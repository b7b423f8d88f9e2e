//! The programs under test, as Cargo builds them beside the tests, and C programs made for one test.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of `precache-run`, built like the test that asks for it.
pub fn precache_run() -> PathBuf {
    program("precache-run")
}

/// The path of one of the programs of `precache` or of the demos.
pub fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build).join(name)
}

/// `cargo test` does not build the programs of other crates: do so once, into the same folder.
fn build() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    // TARGET_DIR/PROFILE/deps/TEST
    let folder = test.ancestors().nth(2).expect("Cargo puts tests two folders deep");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--package",
            "precache",
            "--package",
            "precache-demos",
            "--bins",
            "--profile",
            profile,
        ])
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"))
        .arg("--target-dir")
        .arg(folder.parent().expect("a profile's folder has a parent"))
        .status()
        .expect("cargo starts");
    assert!(built.success(), "cannot build precache-run");
    folder.to_owned()
}

/// Compiles one C file. Returns the compiler's complaint where it cannot make such a program on this machine.
pub fn compile(source: &Path, program: &Path, flags: &[&str]) -> Result<(), String> {
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-o"])
        .arg(program)
        .arg(source)
        .args(flags)
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Copies a program. Another process does it: a child forked meanwhile by another thread would hold a file written here
/// open, and a program that is open for writing cannot be executed (`ETXTBSY`).
pub fn install(program: &Path, to: &Path) {
    let installed = Command::new("install").args(["-m", "755"]).arg(program).arg(to).status();
    assert!(installed.expect("install starts").success(), "cannot install {}", to.display());
}

/// Writes a script that can be executed, in the same way.
pub fn executable(path: &Path, content: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).arg(content);
    assert!(shell.status().expect("a shell starts").success(), "cannot write {}", path.display());
}
