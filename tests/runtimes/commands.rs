//! Commands that map what they read.

use crate::{data, has, make};
use precache_tests::runs::{Program, Report};
use precache_tests::storage::scratch;
use precache_tests::ways;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// They are over before anybody could kill an optimizer.
fn quickly<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Vec<Report> {
    let program = Program::new(words);
    ways::all_but_deaths(&program, &program.alone())
}

/// Has the shell do this with a folder, `$1`.
fn in_folder(script: &str, folder: &Path) -> Vec<OsString> {
    ["sh", "-euc", script, "sh"].map(OsString::from).into_iter().chain([folder.into()]).collect()
}

#[test]
fn ripgrep() {
    if has("rg", &["--version"]) {
        let words = ["rg", "--mmap", "--text", "--threads=1", "--count-matches", "ab|ba"].map(OsString::from);
        quickly(words.into_iter().chain([data()]));
    }
}

#[test]
fn sqlite() {
    if !has("sqlite3", &["--version"]) {
        return;
    }
    let database = scratch().join("sqlite.db");
    let fill = "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) \
                SELECT i, hex(randomblob(110)) AS text FROM n; CREATE INDEX by_text ON t(text);";
    make(Command::new("sqlite3").arg(&database).arg(fill));
    let ask = "PRAGMA mmap_size = 1000000000; SELECT count(*), sum(i), max(text) FROM t; \
               BEGIN; UPDATE t SET i = 0 WHERE i % 1000 = 0; SELECT sum(i) FROM t; ROLLBACK; \
               SELECT i FROM t ORDER BY text LIMIT 5; PRAGMA integrity_check;";
    quickly(["sqlite3".into(), database.into_os_string(), ask.into()]);
}

#[test]
fn git() {
    if !has("git", &["--version"]) {
        return;
    }
    let folder = scratch().join("git");
    let commit = "mkdir $1; cd $1; git init --quiet; for i in 1 2 3 4; do head -c 16M /dev/urandom > $i; done; git add .; \
                  git -c user.name=A -c user.email=a@example.org commit --quiet --message=data; git repack -adq";
    let commit = in_folder(commit, &folder);
    make(Command::new(&commit[0]).args(&commit[1..]));
    let read = "cd $1; git fsck --full --no-progress; git archive HEAD | cksum; \
                git cat-file --batch-check --batch-all-objects";
    quickly(in_folder(read, &folder));
}
