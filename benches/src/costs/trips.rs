//! The handler, over a bare fault whose handler opens the same bytes, and over one whose handler wakes another process too:
//! measured in turn in one process.

use serde::Deserialize;

use super::{cost_reader, output_of, under_precache, warm_file};
use crate::bench::Bench;
use crate::statistics::{Median, Spread};
use crate::verdict::{Bar, Verdict};

/// Nanoseconds over the bare fault: of a trip that wakes nobody and closes nothing, and of one that wakes the optimizer.
const QUIET: f64 = 500.0;
const WOKEN: f64 = 3000.0;

/// A round of `cost-reader trips`: medians in nanoseconds.
#[derive(Deserialize)]
struct Round {
    bare: Option<f64>,
    /// A bare fault that wakes.
    waking: Option<f64>,
    quiet: Option<f64>,
    woken: Option<f64>,
    rearmed: Option<f64>,
    counts: Counts,
}

type Time = fn(&Round) -> Option<f64>;

#[derive(Deserialize)]
struct Counts {
    quiet: u64,
    woken: u64,
    rearmed: u64,
}

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let file = warm_file(bench)?;
    let mut bars = Vec::new();
    for protect in ["mprotect", "guard"] {
        let protection = format!("--protect={protect}");
        let words = under_precache(bench, &[&protection, "--distance=1M"], cost_reader(bench, "trips", &file));
        let output = output_of(&mut bench.programs.command(&words))?;
        let rounds: Vec<Round> = output.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let mut bar = |what: &str, time: Time, (than, over): (&str, Time), count: u64, most: Option<f64>| {
            let requirement = match most {
                Some(most) => format!("{protect}: a trip that {what} takes at most {most} ns more than {than}"),
                None => format!("{protect}: a trip that {what}"),
            };
            let more = rounds.iter().filter_map(|round| Some(time(round)? - over(round)?));
            let least = Spread::of(rounds.iter().filter_map(over));
            bars.push(match (Median::of(more), least) {
                (Some(more), Some(least)) => {
                    let measured = format!(
                        "{:.0} ns ({:.0} to {:.0}, {} rounds, {count} trips), {than} {:.0} ns",
                        more.median, more.low, more.high, more.count, least.median
                    );
                    Bar::new(
                        requirement,
                        measured,
                        most.map_or(Verdict::Met, |most| Verdict::at_most(more.interval(), most)),
                    )
                }
                _ => Bar::not_measured(requirement, "there was none"),
            });
        };
        let count = |which: fn(&Counts) -> u64| rounds.iter().map(|round| which(&round.counts)).sum();
        let bare: (_, Time) = ("a bare fault", |round| round.bare);
        let waking: (_, Time) = ("a bare fault that wakes a process", |round| round.waking);
        bar("wakes nobody and closes nothing", |round| round.quiet, bare, count(|c| c.quiet), Some(QUIET));
        bar("wakes the optimizer", |round| round.woken, bare, count(|c| c.woken), Some(WOKEN));
        bar("wakes the optimizer", |round| round.woken, waking, count(|c| c.woken), Some(QUIET));
        bar("closes a page again", |round| round.rearmed, bare, count(|c| c.rearmed), None);
    }
    Ok(bars)
}
