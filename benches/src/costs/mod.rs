//! What precache costs a program beside its reading: trips, interposed calls, children, its start, waits, its size.

mod calls;
mod children;
mod library;
mod start;
mod trips;
mod waits;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::bench::Bench;
use crate::machine::Machine;
use crate::results::publish;
use crate::verdict::table;

/// Of the file that is mapped, in bytes.
const SIZE: u64 = 256 << 20;

pub fn run(bench: &Bench) -> anyhow::Result<()> {
    let machine = Machine::here(bench.scratch(), bench.settings.as_user.as_deref());
    let mut bars = trips::judge(bench)?;
    bars.extend(calls::judge(bench)?);
    for judge in [children::judge, start::judge, library::judge] {
        bars.push(judge(bench)?);
    }
    bars.extend(waits::judge(bench)?);
    publish(bench, &machine, "costs", "What it costs the program", &table(&bars).to_string(), &bars)
}

/// A file whose pages are all in the page cache.
fn warm_file(bench: &Bench) -> anyhow::Result<PathBuf> {
    let path = bench.scratch().join("costs");
    if fs::metadata(&path).map(|file| file.len()).ok() != Some(SIZE) {
        let block = vec![1u8; 1 << 20];
        let mut file = File::create(&path)?;
        for _ in 0..SIZE >> 20 {
            std::io::Write::write_all(&mut file, &block)?;
        }
        file.sync_all()?;
    }
    let mut block = vec![0; 1 << 20];
    let mut file = File::open(&path)?;
    while file.read(&mut block)? > 0 {}
    Ok(path)
}

/// A library to be preloaded, of this name and C source.
fn compile_library(bench: &Bench, name: &str, source: &str) -> anyhow::Result<PathBuf> {
    let path = |ending: &str| bench.scratch().join(name).with_extension(ending);
    let (source_file, library) = (path("c"), path("so"));
    fs::write(&source_file, source)?;
    let compiled = Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).args([&library, &source_file]).status();
    ensure!(compiled.context("there is no cc to make a library")?.success(), "cc makes no library of {name}.c");
    Ok(library)
}

/// The words that start the program which measures from inside.
fn cost_reader(bench: &Bench, what: &str, value: impl Into<OsString>) -> Vec<OsString> {
    vec![bench.programs.path("cost-reader").into(), what.into(), value.into()]
}

/// The same under precache.
fn under_precache(bench: &Bench, options: &[&str], words: Vec<OsString>) -> Vec<OsString> {
    let options = ["-q"].iter().chain(options).map(Into::into);
    [bench.programs.path("precache-run").into()].into_iter().chain(options).chain(["--".into()]).chain(words).collect()
}

/// Runs a command that must succeed; the answer is what it prints.
fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed with {}: {complaint}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
