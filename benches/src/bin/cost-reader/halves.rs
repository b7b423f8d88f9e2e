//! A reader that stops in the middle, so that something can happen to others meanwhile.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::mapping::Mapping;

const PAGE: usize = 4096;

/// Reads a half of the file, prints `half`, waits for a line, and reads the other half, which it maps anew: so the optimizer is told of it
/// and of trips in it, however much it knew of the first.
pub fn run(path: &Path) -> anyhow::Result<()> {
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize;
    let read = |from: usize, to: usize| -> io::Result<()> {
        let mapping = Mapping::of_program(&file, length)?;
        (from..to).step_by(PAGE).for_each(|at| {
            mapping.touch(at);
        });
        Ok(())
    };
    read(0, length / 2)?;
    println!("half");
    io::stdout().flush()?;
    io::stdin().read_line(&mut String::new())?;
    Ok(read(length / 2, length)?)
}
