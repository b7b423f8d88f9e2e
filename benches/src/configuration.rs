//! The ways to run a reader that are compared: those of the paper, and those of its peers.

use std::ffi::OsString;
use std::io;

use serde::Serialize;

use crate::bench::Bench;
use crate::measure::{Launch, Measurement};
use crate::programs::Programs;
use crate::readahead::ReadAhead;
use crate::storage::Storage;

/// What read-ahead is raised to, where root may.
const RAISED_KILOBYTES: u32 = 8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Configuration {
    /// The reader alone, cold.
    Baseline,
    /// Checkpoints without pre-caching, cold.
    PrefetchOff,
    /// Checkpoints and pre-caching, cold.
    PrefetchOn,
    /// The reader alone, everything cached.
    Warm,
    /// A program that maps the file and reads all of it, cold: what the next one is to be compared with.
    PlainMap,
    /// The same, after madvise(MADV_SEQUENTIAL).
    Sequential,
    /// `vmtouch -t`, then the reader; the time is that of both.
    Vmtouch,
    /// `cat` of the file beside the reader.
    Cat,
    /// The reader alone, with the kernel's read-ahead at 8 MiB.
    ReadAhead,
}

impl Configuration {
    pub const PAPER: [Self; 4] = [Self::Baseline, Self::PrefetchOff, Self::PrefetchOn, Self::Warm];
    pub const PEERS: [Self; 5] = [Self::PlainMap, Self::Sequential, Self::Vmtouch, Self::Cat, Self::ReadAhead];

    /// Those of them that any reader can be run beside or after, whatever it reads.
    pub const PEERS_OF_ANY: [Self; 3] = [Self::Vmtouch, Self::Cat, Self::ReadAhead];

    /// Whether it is what one could do instead, the plain reader included.
    pub fn is_peer(self) -> bool {
        self == Self::Baseline || Self::PEERS.contains(&self)
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::PrefetchOff => "prefetch-off",
            Self::PrefetchOn => "prefetch-on",
            Self::Warm => "warm cache",
            Self::PlainMap => "plain map",
            Self::Sequential => "MADV_SEQUENTIAL map",
            Self::Vmtouch => "vmtouch -t, then run",
            Self::Cat => "cat beside",
            Self::ReadAhead => "read-ahead 8 MiB",
        }
    }

    /// Why it cannot run here.
    pub fn obstacle(self, storage: &Storage) -> Option<String> {
        match self {
            Self::Vmtouch if Programs::installed("vmtouch").is_none() => Some("vmtouch is not installed".into()),
            Self::ReadAhead => {
                let raised = ReadAhead::set(RAISED_KILOBYTES, storage.folder());
                raised.err().map(|error: io::Error| format!("the read-ahead cannot be raised: {error}"))
            }
            _ => None,
        }
    }

    /// Prepares the cache and runs the reader once, in this way.
    pub fn run(self, bench: &Bench, storage: &Storage) -> anyhow::Result<Measurement> {
        self.run_reading(&[], bench, storage)
    }

    /// The same of a reader that reads in this pattern.
    pub fn run_reading(self, pattern: &[&str], bench: &Bench, storage: &Storage) -> anyhow::Result<Measurement> {
        let _memory = match self {
            Self::Warm => storage.make_warm().map(|()| None)?,
            _ => Some(storage.make_cold()?),
        };
        let _raised = match self {
            Self::ReadAhead => Some(ReadAhead::set(RAISED_KILOBYTES, storage.folder())?),
            _ => None,
        };
        self.launch(pattern, bench, storage).run(bench, storage)
    }

    fn launch(self, pattern: &[&str], bench: &Bench, storage: &Storage) -> Launch {
        let file = OsString::from(storage.file());
        let reader = Launch::new(lmdb_reader(bench, storage, pattern));
        let map = |arguments: &[&str]| Launch::new(map_reader(bench, storage, arguments));
        match self {
            Self::Baseline | Self::Warm | Self::ReadAhead => reader,
            Self::PrefetchOff => reader.under_precache(&["--mode", "detect"]),
            Self::PrefetchOn => reader.under_precache(&[]),
            Self::PlainMap => map(&[]),
            Self::Sequential => map(&["--advise", "sequential"]),
            Self::Vmtouch => Launch { before: Some(vec!["vmtouch".into(), "-qt".into(), file]), ..reader },
            Self::Cat => Launch { beside: Some(vec!["cat".into(), file]), ..reader },
        }
    }
}

/// The command of the reader with MPI-Caffe's access patterns.
pub fn lmdb_reader(bench: &Bench, storage: &Storage, arguments: &[&str]) -> Vec<OsString> {
    let mut words = vec![bench.programs.path("lmdb-reader").into(), storage.folder().into()];
    words.extend(arguments.iter().map(Into::into));
    words
}

/// The command of the reader that maps the data file itself.
pub fn map_reader(bench: &Bench, storage: &Storage, arguments: &[&str]) -> Vec<OsString> {
    let mut words = vec![bench.programs.path("map-reader").into(), storage.file().into()];
    words.extend(arguments.iter().map(Into::into));
    words
}
