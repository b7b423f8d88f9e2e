//! The handler, over a bare fault whose handler opens the same bytes, and over one whose handler wakes another process too:
//! measured in turn in one process.

use serde::Deserialize;

use super::{cost_reader, output_of, under_precache, warm_file};
use crate::bench::Bench;
use crate::statistics::{Median, Spread};
use crate::verdict::{Bar, Verdict};

/// Nanoseconds over the bare fault: of a trip that wakes nobody and closes nothing, and of one that wakes the optimizer.
const MOST: f64 = 500.0;
const MOST_WOKEN: f64 = 3000.0;

/// Processes of each protection, in turn. Where a process's memory comes to lie is luck, and lasts as long as it does: of
/// one whole run of 120 rounds each, one took 40 ns less than a bare fault and another 1,100 more.
const PROCESSES: usize = 6;

/// A round of `cost-reader trips`: medians in nanoseconds.
#[derive(Deserialize)]
struct Round {
    /// Of a reader that takes a millisecond for what lies between two checkpoints: by then the processor's caches hold
    /// little of what a trip needs.
    is_slow: bool,
    bare: Option<f64>,
    /// A bare fault that wakes.
    waking: Option<f64>,
    quiet: Option<f64>,
    woken: Option<f64>,
    rearmed: Option<f64>,
    counts: Counts,
}

type Time = fn(&Round) -> Option<f64>;

/// One kind of trips.
#[derive(Clone, Copy)]
struct Kind {
    time: Time,
    count: fn(&Counts) -> u64,
}

const QUIET: Kind = Kind { time: |round| round.quiet, count: |counts| counts.quiet };
const WOKEN: Kind = Kind { time: |round| round.woken, count: |counts| counts.woken };
const REARMED: Kind = Kind { time: |round| round.rearmed, count: |counts| counts.rearmed };

#[derive(Deserialize)]
struct Counts {
    quiet: u64,
    woken: u64,
    rearmed: u64,
}

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let file = warm_file(bench)?;
    let mut bars = Vec::new();
    let mut measured = [("mprotect", Vec::new()), ("guard", Vec::new())];
    for _ in 0..PROCESSES {
        for (protect, rounds) in &mut measured {
            let protection = format!("--protect={protect}");
            let words = under_precache(bench, &[&protection, "--distance=1M"], cost_reader(bench, "trips", &file));
            let output = output_of(&mut bench.programs.command(&words))?;
            for line in output.lines() {
                rounds.push(serde_json::from_str::<Round>(line)?);
            }
        }
    }
    for (protect, rounds) in &measured {
        let (slow, quick): (Vec<&Round>, Vec<&Round>) = rounds.iter().partition(|round| round.is_slow);
        let mut bar = |what: &str, rounds: &[&Round], kind: Kind, (than, over): (&str, Time), most: Option<f64>| {
            let requirement = match most {
                Some(most) => format!("{protect}: a trip that {what} takes at most {most} ns more than {than}"),
                None => format!("{protect}: a trip that {what}"),
            };
            let rounds = || rounds.iter().filter(|round| (kind.time)(round).is_some());
            let more = rounds().filter_map(|round| Some((kind.time)(round)? - over(round)?));
            let least = Spread::of(rounds().filter_map(|round| over(round)));
            bars.push(match (Median::of(more), least) {
                (Some(more), Some(least)) => {
                    let count: u64 =
                        rounds().filter(|round| over(round).is_some()).map(|round| (kind.count)(&round.counts)).sum();
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
        let bare: (_, Time) = ("a bare fault", |round| round.bare);
        let waking: (_, Time) = ("a bare fault that wakes a process", |round| round.waking);
        bar("wakes nobody and closes nothing", &quick, QUIET, bare, Some(MOST));
        bar("wakes nobody and closes nothing, of a slow reader,", &slow, QUIET, bare, Some(MOST));
        bar("wakes the optimizer", &slow, WOKEN, bare, Some(MOST_WOKEN));
        bar("wakes the optimizer", &slow, WOKEN, waking, Some(MOST));
        bar("closes a page again", &slow, REARMED, bare, None);
    }
    Ok(bars)
}
