//! Language runtimes, libraries of file formats, commands, preloaded libraries and debuggers, as people have them: with both
//! ways of protecting pages, with the optimizer killed at their first checkpoint, and with the detector of what signal context
//! may not do, they leave behind what they leave behind without precache.

mod commands;
mod debuggers;
mod formats;
mod go;
mod java;
mod mono;
mod node;
mod preloaded;
mod pytorch;

use precache_tests::runs::{Program, Report};
use precache_tests::storage::{flat_file, lacking, scratch};
use precache_tests::ways;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: usize = 64;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("runtimes/programs").join(name)
}

/// Whether a command is there; says so where it is not.
fn has(command: &str, arguments: &[&str]) -> bool {
    let there = Command::new(command).args(arguments).output().is_ok_and(|output| output.status.success());
    if !there {
        lacking(&format!("{command} that takes {arguments:?}"));
    }
    there
}

/// Runs a maker of programs, which must succeed.
fn make(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The program in all ways.
fn unnoticed<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Vec<Report> {
    let program = Program::new(words);
    ways::all(&program, &program.alone())
}

/// A C program or library of `programs/`.
fn compiled(name: &str, flags: &[&str]) -> PathBuf {
    let program = scratch().join(name).with_extension("out");
    precache_tests::programs::compile(&source(name), &program, flags).expect("cc compiles it");
    program
}

fn data() -> OsString {
    flat_file(MIB).into_os_string()
}

/// The book has a row for each hostile case.
#[test]
fn every_case_is_in_the_table_of_interactions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("../docs/interactions.md")).expect("the book has it");
    let cases = std::fs::read_dir(root.join("hostile/cases")).expect("the cases can be listed").flatten();
    let names = cases.map(|case| case.path()).filter(|path| path.extension().is_none_or(|extension| extension != "h"));
    let missing: Vec<_> = names
        .map(|path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned())
        .filter(|name| !table.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/interactions.md has no row for {missing:?}");
}

/// And each test that it names is there.
#[test]
fn every_test_in_the_table_of_interactions_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("../docs/interactions.md")).expect("the book has it");
    let files = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap_or_else(|_| panic!("there is no tests/{folder}"));
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    let has_file =
        |folder: &str, name: &str| files(folder).iter().any(|file| file.file_stem().is_some_and(|s| s == name));
    let has_function = |folder: &str, name: &str| {
        let declared = format!("fn {name}()");
        files(folder).iter().any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains(&declared)))
    };
    // The last column; names are every other part between the signs.
    let cells = table.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.rsplit('|').next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let (there, missing): (Vec<_>, Vec<_>) = names.partition(|name| match name.split_once(": ") {
        Some((folder, name)) => has_file(folder, name) || has_function(folder, name),
        None => has_file("hostile/cases", name),
    });
    assert!(missing.is_empty(), "docs/interactions.md names {missing:?}, which do not exist");
    assert!(there.len() > 50, "only {} tests are named", there.len());
}
