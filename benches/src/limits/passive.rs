//! Where there is nothing to gain, precache stays out of the way: nothing later, nothing fetched in vain.

use std::ffi::OsString;

use super::{Case, remote_ssd};
use crate::bench::Bench;
use crate::configuration::{lmdb_reader, map_reader};
use crate::data;
use crate::measure::Launch;
use crate::pairs::{Pairs, fetched};
use crate::results::table::mebibytes;
use crate::storage::{Kind, Storage};
use crate::verdict::{Bar, Verdict};

/// Of the plain reader's time, and seconds more.
const TIME_BAR: f64 = 1.01;
const START_UP: f64 = 0.01;
const BYTES_BAR: f64 = 1.02;
const TINY: u64 = 1 << 20;

/// Something that gains nothing.
#[derive(Clone, Copy)]
enum Idle {
    WarmSlowfs,
    WarmLocal,
    Random,
    Tiny,
    True,
}

pub fn cases() -> Vec<Case> {
    let slowfs = remote_ssd().label();
    let case = |(idle, name, subject): (Idle, &str, String)| {
        Case::new(name, subject, move |bench, subject| idle.judge(bench, subject))
    };
    [
        (Idle::WarmSlowfs, "warm-slowfs", format!("warm file, {slowfs}")),
        (Idle::WarmLocal, "warm-local", "warm file, local disk".into()),
        (Idle::Random, "random", format!("random records of 200 KB, cold, {slowfs}")),
        (Idle::Tiny, "tiny", format!("file of {}, cold, {slowfs}", mebibytes(TINY))),
        (Idle::True, "true", "/bin/true".into()),
    ]
    .map(case)
    .into()
}

impl Idle {
    fn storage(self, bench: &Bench) -> anyhow::Result<Storage> {
        let data = data::lmdb(bench, bench.size() / 2);
        // One pass: a second one over the same mapping takes no faults.
        let large = || data::lmdb(bench, bench.size() * 2);
        match self {
            Self::WarmSlowfs => Storage::slow(bench, &remote_ssd(), &large()?),
            Self::Random => Storage::slow(bench, &remote_ssd(), &data?),
            Self::Tiny => Storage::slow(bench, &remote_ssd(), &data::flat(bench, TINY)?),
            Self::WarmLocal => Storage::attach(bench, Kind::Local, &large()?),
            Self::True => Storage::attach(bench, Kind::Local, &data?),
        }
    }

    fn reader(self, bench: &Bench, storage: &Storage) -> Vec<OsString> {
        // Records that a plain reader reads in five seconds, if the size is the default.
        let records = ((bench.size() * 800) >> 31).to_string();
        match self {
            Self::WarmSlowfs | Self::WarmLocal => lmdb_reader(bench, storage, &[]),
            Self::Random => lmdb_reader(bench, storage, &["--random", "--count", &records]),
            Self::Tiny => map_reader(bench, storage, &[]),
            Self::True => vec!["/bin/true".into()],
        }
    }

    /// As many as it takes to tell one percent.
    fn pairs(self, bench: &Bench) -> u32 {
        match self {
            Self::WarmSlowfs | Self::WarmLocal => 12 * bench.settings.repetitions,
            Self::Random => bench.settings.repetitions,
            Self::Tiny | Self::True => bench.settings.pairs,
        }
    }

    fn judge(self, bench: &Bench, subject: &str) -> anyhow::Result<Vec<Bar>> {
        let storage = self.storage(bench)?;
        let reader = Launch::new(self.reader(bench, &storage));
        let run = |launch: &Launch| match self {
            Self::WarmSlowfs | Self::WarmLocal => launch.run_warm(bench, &storage),
            Self::Random | Self::Tiny | Self::True => launch.run_cold(bench, &storage),
        };
        let ours = reader.clone().under_precache(&[]);
        if matches!(self, Self::WarmSlowfs | Self::WarmLocal) {
            // On slow storage that takes as long as many pairs, to which the time belongs.
            storage.make_warm()?;
        }
        let pairs = Pairs::alternate(bench.count(self.pairs(bench)), || run(&ours), || run(&reader))?;
        let allowed: Vec<f64> = pairs.their_times().iter().map(|plain| TIME_BAR * plain + START_UP).collect();
        let requirement = format!("{subject}: time <= {TIME_BAR} x plain + 10 ms");
        let time = Bar::of_times(requirement, &pairs.our_times(), ("allowed", &allowed), 1.0);
        let bytes = fetched(&pairs.ours).zip(fetched(&pairs.theirs)).map(|(ours, plain)| {
            let allowed = BYTES_BAR * plain.1 as f64;
            Bar::new(
                format!("{subject}: bytes fetched <= {BYTES_BAR} x plain"),
                format!("{}, plain {}", mebibytes(ours.1), mebibytes(plain.1)),
                Verdict::at_most((ours.0 as f64, ours.1 as f64), allowed),
            )
        });
        Ok(time.into_iter().chain(bytes).collect())
    }
}
