//! slowfs, the throttled file system of the demos, where it can be built and mounted.

#![allow(dead_code, reason = "each test uses its part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::lacking;

/// A mount that ends with the test.
pub struct Mount {
    server: Child,
    pub path: PathBuf,
}

/// Shows `source` as slow storage at `path`; none, with the reason on stderr, where that is not possible.
pub fn mount(source: &Path, path: &Path, options: &[&str]) -> Option<Mount> {
    if !Path::new("/dev/fuse").exists() {
        lacking("/dev/fuse, for slowfs");
        return None;
    }
    let program = program()?;
    std::fs::create_dir(path).unwrap();
    let mut server = Command::new(program)
        .args(options)
        .args(["--readahead", "128K", "--until-stdin-closes", source.to_str().unwrap(), path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    if line.trim() != "ready" {
        lacking("way to mount slowfs");
        server.wait().unwrap();
        return None;
    }
    Some(Mount { server, path: path.into() })
}

/// Beside the program under test, or built there by the cargo that built this.
fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_precache-lmdb")).with_file_name("slowfs");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = program.parent().and_then(Path::parent).unwrap();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--quiet", "--package", "precache-demos", "--bin", "slowfs"]).current_dir(workspace);
    if !program.ancestors().any(|dir| dir.file_name().is_some_and(|name| name == "debug")) {
        cargo.arg("--release");
    }
    let built = cargo.env("CARGO_TARGET_DIR", target).status().is_ok_and(|status| status.success());
    if !built {
        lacking("way to build slowfs");
    }
    built.then_some(program)
}

impl Mount {
    /// What was read of a file, counted by the storage; starts counting anew.
    pub fn take_counts(&self, file: &str) -> Counts {
        let counters = std::fs::read_to_string(self.path.join(".slowfs/counters.json")).unwrap();
        let counters: serde_json::Value = serde_json::from_str(&counters).unwrap();
        std::fs::write(self.path.join(".slowfs/reset"), "x").unwrap();
        let files = counters["files"].as_object().unwrap();
        let counts = &files.iter().find(|(name, _)| name.ends_with(file)).unwrap().1;
        let [bytes, requests, in_flight] =
            ["bytes", "requests", "max_in_flight"].map(|field| counts[field].as_u64().unwrap());
        Counts { bytes, requests, in_flight }
    }
}

/// What a storage was asked for.
#[derive(Debug)]
pub struct Counts {
    pub bytes: u64,
    pub requests: u64,
    /// At the same time, at most.
    pub in_flight: u64,
}

impl Mount {
    /// The server answers nothing until the result is dropped.
    pub fn stop(&self) -> Stopped {
        let server = Pid::from_raw(self.server.id() as i32);
        kill(server, Signal::SIGSTOP).unwrap();
        Stopped(server)
    }
}

pub struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        kill(self.0, Signal::SIGCONT).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}
