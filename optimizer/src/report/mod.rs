//! What happened in a session, and what was decided and why. `docs/report.md` explains every field.

mod summary;

use serde::{Deserialize, Serialize, Serializer};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// One session: a program and its children.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SessionReport {
    /// The injected library was loaded in the program itself.
    pub loaded: bool,
    /// Processes that mapped a data file.
    pub readers: Vec<ReaderReport>,
    pub files: Vec<FileReport>,
    pub refused: Vec<Refused>,
    /// Programs that were executed without the library.
    pub uninjected: Vec<Refused>,
    /// LMDB lock files, with --private-lock.
    pub locks: Vec<LockReport>,
    /// What kept processes from being served.
    pub troubles: Vec<String>,
}

/// One process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReaderReport {
    /// 0: all processes after the first 200 together.
    pub pid: i32,
    pub processes: u64,
    /// Forked from another reader, whose mappings it inherited.
    pub forked: bool,
    /// Faults that were checkpoints.
    pub trips: u64,
    /// Threads in the handler when the process ended.
    pub in_handler: u64,
    /// Trips that woke the optimizer from its sleep.
    pub wakes: u64,
    /// Trips that met another thread at work on the same mapping.
    pub contended: u64,
    /// Trips that the optimizer did not take in time.
    pub lost: u64,
    /// Times that trips showed no order, and their mapping was followed no more for a while.
    pub disorders: u64,
    /// Faults passed on to the program's own handler or the default action.
    pub forwarded: u64,
    /// System calls for whose buffers checkpoints were lifted.
    pub lifted_for_calls: u64,
    /// Such calls during which no page was closed again, since too many were at work at a time, or never ended.
    pub all_pinned: u64,
    /// Processes forked from it, and from these, that the optimizer never heard of.
    pub unserved: u64,
    /// Why arming ended or did not begin, and how often.
    pub refusals: Vec<Refusals>,
    pub mappings: Vec<MappingReport>,
}

impl ReaderReport {
    /// Adds what another process did to the sums. Each counts as it likes.
    pub fn add(&mut self, other: &Self) {
        self.processes = self.processes.saturating_add(other.processes);
        self.trips = self.trips.saturating_add(other.trips);
        self.in_handler = self.in_handler.saturating_add(other.in_handler);
        self.wakes = self.wakes.saturating_add(other.wakes);
        self.contended = self.contended.saturating_add(other.contended);
        self.lost = self.lost.saturating_add(other.lost);
        self.disorders = self.disorders.saturating_add(other.disorders);
        self.forwarded = self.forwarded.saturating_add(other.forwarded);
        self.lifted_for_calls = self.lifted_for_calls.saturating_add(other.lifted_for_calls);
        self.all_pinned = self.all_pinned.saturating_add(other.all_pinned);
        self.unserved = self.unserved.saturating_add(other.unserved);
        for refusals in &other.refusals {
            match self.refusals.iter_mut().find(|known| known.reason == refusals.reason) {
                Some(known) => known.count = known.count.saturating_add(refusals.count),
                None => self.refusals.push(refusals.clone()),
            }
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusals {
    pub reason: String,
    pub count: u64,
}

/// One mapping of a data file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MappingReport {
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// How checkpoints are protected: `guard` or `mprotect`.
    pub method: String,
    pub trips: u64,
    /// Streams for which something was requested.
    pub streams: usize,
    /// Data faults before the first stream's first request.
    pub faults_before_first_request: Option<u32>,
    /// What the program advised about it (madvise, posix_fadvise, MAP_POPULATE).
    pub advice: u64,
    /// Bytes mapped ahead of the reader.
    pub populated: u64,
    /// How many times as fast it was with that as without, where that was measured.
    pub populate_gain: Option<f64>,
}

/// One data file, whoever mapped it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileReport {
    /// Empty: files after the first 1000 together.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    pub files: u64,
    pub size: u64,
    pub file_system: String,
    pub read_ahead: Option<u64>,
    /// How missing pages were told from cached ones.
    pub residency: String,
    /// How missing pages were brought in, by all sessions; the engine that brought in most comes first.
    pub engines: Vec<EngineShare>,
    /// Bytes that windows asked for, of these read in, and of these found in the page cache.
    pub requested: u64,
    pub fetched: u64,
    pub cached: u64,
    /// Bytes of what was fetched that were dropped again, because there was no room for them.
    pub dropped: u64,
    pub requests: u64,
    pub most_in_flight: u64,
    /// What was done with the file, and why.
    pub decision: String,
}

impl FileReport {
    /// The sums of no file yet.
    pub fn of_many() -> Self {
        Self { decision: "told together: too many files".into(), ..Self::default() }
    }

    /// Adds what was done with another file to the sums.
    pub fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.size = self.size.saturating_add(other.size);
        self.requested += other.requested;
        self.fetched += other.fetched;
        self.cached += other.cached;
        self.dropped += other.dropped;
        self.requests += other.requests;
        self.most_in_flight = self.most_in_flight.max(other.most_in_flight);
        for share in &other.engines {
            match self.engines.iter_mut().find(|known| known.engine == share.engine) {
                Some(known) => known.bytes += share.bytes,
                None => self.engines.push(share.clone()),
            }
        }
        self.engines.sort_by_key(|share| Reverse(share.bytes));
    }

    /// Whether these are sums, of files whose names are not told.
    pub fn is_of_many(&self) -> bool {
        self.path.as_os_str().is_empty()
    }
}

/// What one engine brought in of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineShare {
    pub engine: String,
    pub bytes: u64,
}

/// An LMDB lock file that a reader opened, or a data file that a writer opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockReport {
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// A lock file, and the reader was given a private one; else a data file, and its writer has the shared lock file.
    pub private: bool,
    pub count: u64,
}

/// A file that was mapped, or a program that was executed, and not accelerated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    pub reason: String,
}

/// JSON has nothing but text: bytes of a path that are not UTF-8 show as U+FFFD.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn sums_do_not_overflow() {
        let lying = ReaderReport {
            processes: 1,
            trips: u64::MAX,
            refusals: vec![Refusals { reason: "why".into(), count: u64::MAX }],
            ..Default::default()
        };
        let mut sums = lying.clone();
        sums.add(&lying);
        assert_eq!((sums.processes, sums.trips, sums.refusals[0].count), (2, u64::MAX, u64::MAX));
        let report =
            SessionReport { readers: vec![lying, sums], files: vec![FileReport::default()], ..Default::default() };
        assert!(report.summary().concat().contains(&u64::MAX.to_string()));
    }

    #[test]
    fn any_path_can_be_told() {
        let refused = Refused { file: OsStr::from_bytes(b"/data/\xff.mdb").into(), reason: "why".into() };
        assert_eq!(serde_json::to_value(&refused).unwrap()["file"], "/data/\u{fffd}.mdb");
    }
}
