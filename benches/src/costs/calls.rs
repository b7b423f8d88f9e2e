//! Interposed calls whose buffers lie elsewhere.

use std::collections::BTreeMap;

use anyhow::Context;

use super::{cost_reader, output_of, under_precache, warm_file};
use crate::bench::Bench;
use crate::verdict::{Bar, Verdict};

/// Nanoseconds more than without precache.
const BAR: f64 = 10.0;
/// Runs with and without precache, in turn; the best of each counts.
const RUNS: usize = 3;

/// What was measured, in nanoseconds, by call and place of the buffer.
type Costs = BTreeMap<String, f64>;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let file = warm_file(bench)?;
    let alone = cost_reader(bench, "calls", &file);
    let under = under_precache(bench, &["--distance=1M"], alone.clone());
    let (mut best_alone, mut best_under) = (Costs::new(), Costs::new());
    for _ in 0..RUNS {
        keep_best(&mut best_alone, &output_of(&mut bench.programs.command(&alone))?)?;
        keep_best(&mut best_under, &output_of(&mut bench.programs.command(&under))?)?;
    }
    let mut bars = Vec::new();
    for place in ["stack", "heap", "mmap", "between mappings", "none"] {
        let mut over: Vec<(f64, &str)> = best_under
            .iter()
            .filter_map(|(name, time)| {
                let (call, of) = name.split_once(", ")?;
                (of == place).then_some((time - best_alone.get(name)?, call))
            })
            .collect();
        over.sort_by(|one, other| other.0.total_cmp(&one.0));
        let worst = over.first().with_context(|| format!("nothing was measured with a buffer on the {place}"))?.0;
        let each: Vec<_> = over.iter().map(|(time, call)| format!("{call} {time:+.1}")).collect();
        let requirement = match place {
            "none" => format!("a call by number that has no buffer takes at most {BAR} ns more"),
            "between mappings" => format!("calls whose buffer lies between armed mappings take at most {BAR} ns more"),
            "mmap" => format!("calls whose buffer lies in a mapping of its own take at most {BAR} ns more"),
            place => format!("calls whose buffer lies on the {place} take at most {BAR} ns more"),
        };
        bars.push(Bar::new(requirement, format!("{} ns", each.join(", ")), Verdict::is(worst <= BAR)));
    }
    Ok(bars)
}

fn keep_best(best: &mut Costs, output: &str) -> anyhow::Result<()> {
    for line in output.lines() {
        let (name, time) = line.split_once('\t').context("a name, a tab and a time were expected")?;
        let time: f64 = time.parse()?;
        best.entry(name.to_owned()).and_modify(|best| *best = time.min(*best)).or_insert(time);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_all_runs_is_kept() {
        let mut best = Costs::new();
        keep_best(&mut best, "write, heap\t5.0\nread, heap\t7\n").unwrap();
        keep_best(&mut best, "write, heap\t6.0\nread, heap\t4.5\n").unwrap();
        assert_eq!(best, Costs::from([("read, heap".into(), 4.5), ("write, heap".into(), 5.0)]));
    }
}
