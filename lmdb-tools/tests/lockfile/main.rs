//! Replicas of the lock file, with real readers: what fails without them works with them.

mod access;
mod check;
mod remove;
mod replicate;
#[path = "../support/slowfs.rs"]
mod slowfs;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::*;
use tempfile::TempDir;

/// A database of a few records, and an OUT that does not exist yet.
fn database() -> (TempDir, PathBuf, PathBuf) {
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 1000, 500, false);
    let out = dir.path().join("out");
    (dir, db, out)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn make_replicas(db: &Path, out: &Path, count: u32) {
    succeed(&["lockfile", "replicate", text(db), text(out), "-n", &count.to_string(), "--assume-read-only"]);
}

/// Which rank a launcher's variables mean.
fn rank_dir(out: &Path, variables: &[(&str, &str)]) -> String {
    let output = tool().args(["lockfile", "rank-dir", text(out)]).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The program, when it has said that it holds open what it is to hold open.
fn begun(program: &str, args: &[&str]) -> Child {
    use std::io::BufRead;
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    child
}
