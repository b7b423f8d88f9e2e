//! What precache must reach, measured and judged.

mod bytes;
mod faults;
mod output;
mod overhead;
mod slowfs;
mod speed;
mod vast;

use crate::bench::Bench;
use crate::machine::Machine;
use crate::results::publish;
use crate::verdict::table;

pub fn run(bench: &Bench) -> anyhow::Result<()> {
    let machine = Machine::here(bench.scratch(), bench.settings.as_user.as_deref());
    let subjects =
        [slowfs::judge, faults::judge, bytes::judge, vast::judge, output::judge, speed::judge, overhead::judge];
    let mut bars = Vec::new();
    for judge in subjects {
        bars.extend(judge(bench)?);
    }
    publish(bench, &machine, "bars", "What it must reach", &table(&bars).to_string(), &bars)
}
