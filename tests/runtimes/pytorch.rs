//! PyTorch's DataLoader: its workers fork or are spawned, and install a SIGSEGV handler of their own.

use crate::{data, has, source, unnoticed};
use precache_tests::runs::Report;
use precache_tests::storage::lmdb;
use std::ffi::OsString;

const PYTHON: &str = "/usr/bin/python3";

fn loader(data: OsString, how: &[&str]) -> Vec<Report> {
    if !has(PYTHON, &["-c", "import lmdb, numpy, torch"]) {
        return Vec::new();
    }
    let how = how.iter().map(OsString::from);
    unnoticed([PYTHON.into(), source("loader.py").into_os_string(), data].into_iter().chain(how))
}

#[test]
fn forked_workers_read_a_memmap() {
    for report in loader(data(), &["fork", "memmap"]) {
        assert!(report.active_readers() >= 3, "{:#}", report.0);
    }
}

#[test]
fn spawned_workers_read_a_memmap() {
    for report in loader(data(), &["spawn", "memmap"]) {
        assert!(report.active_readers() >= 2, "{:#}", report.0);
    }
}

#[test]
fn forked_workers_read_an_lmdb() {
    for report in loader(lmdb(96).into_os_string(), &["fork", "lmdb"]) {
        assert!(report.active_readers() >= 2, "{:#}", report.0);
    }
}

#[test]
fn spawned_workers_read_an_lmdb() {
    for report in loader(lmdb(96).into_os_string(), &["spawn", "lmdb"]) {
        assert!(report.active_readers() >= 2, "{:#}", report.0);
    }
}

#[test]
fn the_death_of_a_worker_is_told_in_the_same_words() {
    loader(data(), &["fork", "memmap", "9"]);
}
