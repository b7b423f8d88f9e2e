//! What precache costs a program, seen from inside it: trips, interposed calls, children, waits. Run with and without precache; it
//! prints numbers, and judges nothing.

mod bare;
mod calls;
mod children;
mod halves;
mod mapping;
mod sleeper;
mod trips;

use std::env;
use std::path::Path;

use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    let words: Vec<_> = env::args_os().skip(1).collect();
    let (what, value) = match &words[..] {
        [what, value] => (what.to_str(), value),
        _ => bail!("usage: cost-reader trips FILE | calls FILE | halves FILE | children NUMBER"),
    };
    match what {
        Some("trips") => trips::run(Path::new(value)),
        Some("calls") => calls::run(Path::new(value)),
        Some("halves") => halves::run(Path::new(value)),
        Some("children") => {
            children::run(value.to_str().and_then(|number| number.parse().ok()).context("not a number")?)
        }
        _ => bail!("{what:?} is none of trips, calls, halves, children"),
    }
}
