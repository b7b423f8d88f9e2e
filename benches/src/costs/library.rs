//! The injected library's length.

use std::fs;

use super::{output_of, under_precache};
use crate::bench::Bench;
use crate::verdict::{Bar, Verdict};

const BAR: u64 = 150_000;

pub fn judge(bench: &Bench) -> anyhow::Result<Bar> {
    let words = under_precache(bench, &[], ["sh", "-c", "echo \"$LD_PRELOAD\""].map(Into::into).to_vec());
    let path = output_of(&mut bench.programs.command(&words))?;
    let length = fs::metadata(path.trim())?.len();
    let requirement = format!("the injected library, stripped, is shorter than {BAR} bytes");
    Ok(Bar::new(requirement, format!("{length} bytes"), Verdict::is(length < BAR)))
}
