//! What simple programs reach that fill beside a plain reader: where these miss a bar, too, it is not precache that does.

use anyhow::Context;

use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::measure::{Launch, Measurement};
use crate::mount::Slow;
use crate::statistics::Ratio;
use crate::storage::Storage;
use crate::verdict::{Bar, Verdict};

/// Ways of `filler`, depth and piece in KiB: each was the best for some latency (docs/results/fuse.md).
const WAYS: [(&str, u32, u32); 4] = [
    ("readahead", 16, 128),
    ("populate-huge", 4, 2048),
    ("populate-huge-random", 6, 2048),
    ("populate-huge-random", 16, 2048),
];

/// The same where read-ahead calls do nothing.
const WAYS_WITHOUT: [(&str, u32, u32); 4] =
    [("read", 16, 128), ("populate", 32, 128), ("populate", 96, 128), ("populate-huge", 4, 2048)];

/// The way that was fastest when each ran once.
pub struct Control {
    launch: Launch,
    what: String,
    runs: Vec<Run>,
}

/// One of them, and the run of ours right after it: seconds, and the share of them that the host took from either.
struct Run {
    simple: f64,
    ours: f64,
    stolen: f64,
}

impl Control {
    pub fn choose(bench: &Bench, storage: &Storage, slow: &Slow) -> anyhow::Result<Self> {
        let mut best: Option<(f64, Self)> = None;
        for (way, depth, kilobytes) in if slow.willneed { WAYS } else { WAYS_WITHOUT } {
            let what = format!("{way}, {depth} x {kilobytes} KiB");
            let launch = launch(bench, storage, way, depth, kilobytes);
            let seconds = launch.run_cold(bench, storage)?.seconds;
            eprintln!("filler: {what}: {seconds:.3} s");
            if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                best = Some((seconds, Self { launch, what, runs: Vec::new() }));
            }
        }
        best.map(|(_, control)| control).context("there is no way to fill")
    }

    /// Runs it, and ours after it.
    pub fn before(
        &mut self,
        bench: &Bench,
        storage: &Storage,
        ours: impl FnOnce() -> anyhow::Result<Measurement>,
    ) -> anyhow::Result<Measurement> {
        let simple = self.launch.run_cold(bench, storage)?;
        let ours = ours()?;
        let stolen = simple.stolen.max(ours.stolen);
        self.runs.push(Run { simple: simple.seconds, ours: ours.seconds, stolen });
        Ok(ours)
    }

    /// Of the `most` runs that were disturbed least; all of them would take `limit` seconds at best.
    pub fn bar(mut self, subject: &str, most: usize, limit: f64) -> Option<Bar> {
        self.runs.sort_by(|one, other| one.stolen.total_cmp(&other.stolen));
        self.runs.truncate(most);
        let times = |of: fn(&Run) -> f64| self.runs.iter().map(of).collect::<Vec<_>>();
        let (simple, ours) = (times(|run| run.simple), times(|run| run.ours));
        let of_limit = Ratio::of(&simple, &vec![limit; simple.len()])?;
        let of_ours = Ratio::of(&ours, &simple)?;
        let requirement = format!("{subject}: a plain reader beside the best simple filler");
        let measured = format!("{}: {of_limit} of the limit; precache takes {of_ours} of it", self.what);
        Some(Bar::new(requirement, measured, Verdict::NoBar))
    }
}

fn launch(bench: &Bench, storage: &Storage, way: &str, depth: u32, kilobytes: u32) -> Launch {
    let mut words = vec![bench.programs.path("filler").into(), storage.file().into()];
    let options = ["--way", way, "--depth", &depth.to_string(), "--kilobytes", &kilobytes.to_string()];
    words.extend(options.map(Into::into));
    Launch { beside: Some(words), ..Launch::new(lmdb_reader(bench, storage, &[])) }
}
