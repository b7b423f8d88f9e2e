//! The handler, over a bare fault whose handler opens the same bytes, and over one whose handler wakes another process too:
//! measured in turn in one process.

use serde::Deserialize;

use super::{cost_reader, output_of, under_precache, warm_file};
use crate::bench::Bench;
use crate::statistics::{Median, Spread};
use crate::verdict::{Bar, Verdict};

/// Processes of each protection, in turn. Where a process's memory comes to lie is luck, and lasts as long as it does: so each
/// counts once.
const PROCESSES: usize = 12;

/// The slow or the other rounds of `cost-reader trips`: medians in nanoseconds, those of trips over the bare faults beside them.
#[derive(Deserialize)]
struct Rounds {
    /// Of a reader that takes a millisecond for what lies between two checkpoints: by then the processor's caches hold
    /// little of what a trip needs.
    is_slow: bool,
    bare: Option<f64>,
    /// A bare fault that wakes.
    waking: Option<f64>,
    /// The call by which it does.
    wake: Option<f64>,
    quiet: Option<f64>,
    woken: Option<f64>,
    rearmed: Option<f64>,
    /// Of those that wake, from the access to its end.
    woken_time: Option<f64>,
    counts: Counts,
}

#[derive(Deserialize)]
struct Counts {
    quiet: u64,
    woken: u64,
    rearmed: u64,
    /// All trips, and the pages that they closed again.
    trips: u64,
    rearms: u64,
}

/// One kind of trips.
struct Kind {
    what: &'static str,
    of_slow: bool,
    /// What it takes more than these, in nanoseconds, and what these take.
    than: &'static str,
    more: fn(&Rounds) -> Option<f64>,
    least: fn(&Rounds) -> Option<f64>,
    count: fn(&Counts) -> u64,
    most: Option<f64>,
}

const QUIET: Kind = Kind {
    what: "wakes nobody and closes nothing",
    of_slow: false,
    than: "a bare fault",
    more: |rounds| rounds.quiet,
    least: |rounds| rounds.bare,
    count: |counts| counts.quiet,
    most: Some(500.0),
};
const WOKEN: Kind = Kind {
    what: "wakes the optimizer",
    of_slow: true,
    more: |rounds| rounds.woken,
    count: |counts| counts.woken,
    most: Some(3000.0),
    ..QUIET
};

const KINDS: [Kind; 5] = [
    QUIET,
    Kind { what: "wakes nobody and closes nothing, of a slow reader,", of_slow: true, ..QUIET },
    WOKEN,
    Kind {
        than: "a bare fault that wakes a process",
        more: |rounds| Some(rounds.woken_time? - rounds.waking?),
        least: |rounds| rounds.waking,
        most: Some(500.0),
        ..WOKEN
    },
    Kind {
        what: "closes a page again",
        of_slow: true,
        more: |rounds| rounds.rearmed,
        count: |counts| counts.rearmed,
        most: None,
        ..QUIET
    },
];

/// Of one process.
type Run = Vec<Rounds>;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let file = warm_file(bench)?;
    let mut measured = [("mprotect", Vec::new()), ("guard", Vec::new())];
    for _ in 0..PROCESSES {
        for (protect, runs) in &mut measured {
            let protection = format!("--protect={protect}");
            let words = under_precache(bench, &[&protection, "--distance=1M"], cost_reader(bench, "trips", &file));
            let output = output_of(&mut bench.programs.command(&words))?;
            runs.push(output.lines().map(serde_json::from_str).collect::<Result<Run, _>>()?);
        }
    }
    let bars = measured.iter().flat_map(|(protect, runs)| KINDS.iter().map(move |kind| kind.judge(protect, runs)));
    let rearms = measured.iter().map(|(protect, runs)| rearms(protect, runs));
    let runs = measured.iter().flat_map(|(_, runs)| runs);
    Ok(bars.chain(rearms).chain([wake(runs)]).collect())
}

/// After how many trips the page that had tripped five trips before was closed again: no other is, but for the stops of a reader that
/// skips and what lies ahead.
fn rearms(protect: &str, runs: &[Run]) -> Bar {
    let requirement = format!("{protect}: pages closed again, of those that tripped, for each trip");
    let counts = || runs.iter().flatten().map(|rounds| &rounds.counts);
    let (trips, rearms) = counts().fold((0, 0), |all, counts| (all.0 + counts.trips, all.1 + counts.rearms));
    if trips == 0 {
        return Bar::not_measured(requirement, "there was none");
    }
    let measured = format!("{:.3} ({rearms} pages, {trips} trips)", rearms as f64 / trips as f64);
    Bar::new(requirement, measured, Verdict::NoBar)
}

/// What no handler that wakes a sleeping process can do without.
fn wake<'a>(runs: impl Iterator<Item = &'a Run>) -> Bar {
    let requirement = "FUTEX_WAKE of a process that sleeps, alone, in the handler of a bare fault";
    match Median::of(runs.filter_map(|run| WOKEN.rounds(run)?.wake)) {
        None => Bar::not_measured(requirement, "there was none"),
        Some(Median { median, low, high, count }) => {
            let measured = format!("{median:.0} ns ({low:.0} to {high:.0}, {count} processes)");
            Bar::new(requirement, measured, Verdict::NoBar)
        }
    }
}

impl Kind {
    fn rounds<'a>(&self, run: &'a Run) -> Option<&'a Rounds> {
        run.iter().find(|rounds| rounds.is_slow == self.of_slow)
    }

    fn judge(&self, protect: &str, runs: &[Run]) -> Bar {
        let Self { what, than, .. } = self;
        let requirement = match self.most {
            Some(most) => format!("{protect}: a trip that {what} takes at most {most} ns more than {than}"),
            None => format!("{protect}: a trip that {what}"),
        };
        let of_runs = |time: fn(&Rounds) -> Option<f64>| runs.iter().filter_map(move |run| time(self.rounds(run)?));
        let (Some(more), Some(least)) = (Median::of(of_runs(self.more)), Spread::of(of_runs(self.least))) else {
            return Bar::not_measured(requirement, "there was none");
        };
        let trips: u64 =
            runs.iter().filter_map(|run| self.rounds(run)).map(|rounds| (self.count)(&rounds.counts)).sum();
        let measured = format!(
            "{:.0} ns ({:.0} to {:.0}, {} processes, {trips} trips), {than} {:.0} ns",
            more.median, more.low, more.high, more.count, least.median
        );
        Bar::new(
            requirement,
            measured,
            self.most.map_or(Verdict::NoBar, |most| Verdict::at_most(more.interval(), most)),
        )
    }
}
