//! Hostile cases: small programs that do what a program with protected pages in it might not survive. Each file of
//! `cases/` is one hazard, and one test: the program must leave behind the same with precache as without.
//!
//! To add a case, put `NN_name.EXTENSION` there (`NN` is the hazard's number). [`header`] says what its first comment
//! holds, [`run`] in which ways it is run, `cases/hostile.h` what C programs share.

mod case;
mod header;
mod run;

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the cases can be listed")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let trials = files.into_iter().filter(|file| file.extension().is_none_or(|extension| extension != "h"));
    let trials = trials.map(|file| {
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        Trial::test(name, move || case::must_not_notice(&file).map_err(Into::into))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit()
}
