//! Children that map no data file, over those that load an empty library.

use anyhow::Context;

use super::{compile_library, cost_reader, output_of, under_precache};
use crate::bench::Bench;
use crate::statistics::{Median, Spread};
use crate::verdict::{Bar, Verdict};

/// Microseconds more, of each child.
const BAR: f64 = 200.0;
const CHILDREN: &str = "1000";
const PAIRS: usize = 15;

pub fn judge(bench: &Bench) -> anyhow::Result<Bar> {
    let requirement =
        format!("each of {CHILDREN} children takes at most {BAR} us more than one that loads an empty library");
    let library = compile_library(bench, "empty", "")?;
    let words = cost_reader(bench, "children", CHILDREN);
    let under = under_precache(bench, &[], words.clone());
    let (mut over, mut empty) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let with: f64 = output_of(&mut bench.programs.command(&under))?.trim().parse()?;
        let without: f64 = output_of(bench.programs.command(&words).env("LD_PRELOAD", &library))?.trim().parse()?;
        over.push(with - without);
        empty.push(without);
    }
    let over = Median::of(over).context("there were pairs")?;
    let empty = Spread::of(empty).context("there were pairs")?;
    let measured = format!(
        "{:.0} us ({:.0} to {:.0}, {} pairs), with the empty library {:.0} us",
        over.median, over.low, over.high, over.count, empty.median
    );
    Ok(Bar::new(requirement, measured, Verdict::at_most(over.interval(), BAR)))
}
