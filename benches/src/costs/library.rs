//! The injected library's length.

use std::fs;

use super::{output_of, under_precache};
use crate::bench::Bench;
use crate::verdict::{Bar, Verdict};

/// KiB.
const BAR: u64 = 150;

pub fn judge(bench: &Bench) -> anyhow::Result<Bar> {
    let words = under_precache(bench, &[], ["sh", "-c", "echo \"$LD_PRELOAD\""].map(Into::into).to_vec());
    let path = output_of(&mut bench.programs.command(&words))?;
    let length = fs::metadata(path.trim())?.len();
    let requirement = format!("the injected library, stripped, has at most {BAR} KiB");
    Ok(Bar::new(requirement, format!("{} KiB", length.div_ceil(1024)), Verdict::is(length <= BAR << 10)))
}
