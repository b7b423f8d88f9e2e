//! Where data lies while it is read: the local disk, or slowfs with the limits of remote storage.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::cache;
use crate::readahead::ReadAhead;

/// Seconds for the requests that depend on each other before the stream can start.
const START: f64 = 0.02;

/// The kernel's default, in KiB; also that of FUSE and NFS.
const READ_AHEAD: u32 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The disk that the scratch folder is on
    Local,
    /// slowfs: 2 ms per request, 400 MB/s
    RemoteSsd,
    /// slowfs: 10 ms per request, 150 MB/s
    RemoteHdd,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Local, Self::RemoteSsd, Self::RemoteHdd];

    pub fn label(self) -> &'static str {
        match self {
            Self::Local => "local disk",
            Self::RemoteSsd => "remote SSD (slowfs, 2 ms, 400 MB/s)",
            Self::RemoteHdd => "remote HDD (slowfs, 10 ms, 150 MB/s)",
        }
    }

    pub fn is_slow(self) -> bool {
        self.limits().is_some()
    }

    /// Latency of a request, and bytes per second.
    fn limits(self) -> Option<(Duration, u64)> {
        match self {
            Self::Local => None,
            Self::RemoteSsd => Some((Duration::from_millis(2), 400_000_000)),
            Self::RemoteHdd => Some((Duration::from_millis(10), 150_000_000)),
        }
    }

    /// The least time in which these bytes can be read, by someone who needs `warm` seconds when they are cached.
    pub fn limit(self, bytes: u64, warm: f64) -> Option<f64> {
        let (_, bandwidth) = self.limits()?;
        Some(warm.max(bytes as f64 / bandwidth as f64 + START))
    }
}

/// What was asked of the storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fetched {
    pub requests: u64,
    pub bytes: u64,
    pub max_in_flight: u64,
    /// Requests by size, rounded up to a power of two.
    pub sizes: BTreeMap<u64, u64>,
}

#[derive(Deserialize)]
struct Counters {
    total: Fetched,
}

/// One folder of data, as readers see it.
pub struct Storage {
    view: PathBuf,
    source: PathBuf,
    mount: Option<Mount>,
    /// The local disk has the kernel's default, where root may set it, whatever this machine was tuned to.
    _read_ahead: Option<ReadAhead>,
}

impl Storage {
    /// Whether slowfs can be mounted here; says so where it cannot.
    pub fn can_mount() -> bool {
        let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
        device.map_err(|error| eprintln!("no remote storage, only the local disk: /dev/fuse: {error}")).is_ok()
    }

    pub fn attach(bench: &Bench, kind: Kind, source: &Path) -> anyhow::Result<Self> {
        let Some((latency, bandwidth)) = kind.limits() else {
            let read_ahead = ReadAhead::set(READ_AHEAD, source).ok();
            return Ok(Self {
                view: source.to_owned(),
                source: source.to_owned(),
                mount: None,
                _read_ahead: read_ahead,
            });
        };
        let limits = [format!("--latency={}us", latency.as_micros()), format!("--bandwidth={bandwidth}")];
        Self::mounted(bench, source, &limits)
    }

    /// slowfs as fast as it can be.
    pub fn without_limits(bench: &Bench, source: &Path) -> anyhow::Result<Self> {
        Self::mounted(bench, source, &[])
    }

    fn mounted(bench: &Bench, source: &Path, limits: &[String]) -> anyhow::Result<Self> {
        let mount = Mount::new(bench, source, limits)?;
        Ok(Self { view: mount.point.clone(), source: source.to_owned(), mount: Some(mount), _read_ahead: None })
    }

    /// The folder as readers see it.
    pub fn folder(&self) -> &Path {
        &self.view
    }

    /// The LMDB's data file as readers see it.
    pub fn file(&self) -> PathBuf {
        self.view.join("data.mdb")
    }

    pub fn file_size(&self) -> anyhow::Result<u64> {
        Ok(self.source.join("data.mdb").metadata()?.len())
    }

    /// Nothing of the data file is cached for readers, and all of it for slowfs, whose own limits are to be the only
    /// ones.
    pub fn make_cold(&self) -> anyhow::Result<()> {
        let backing = self.source.join("data.mdb");
        if self.mount.is_some() {
            cache::warm(&backing)?;
        }
        cache::cool(&self.file())?;
        self.reset()
    }

    /// All of the data file is cached.
    pub fn make_warm(&self) -> anyhow::Result<()> {
        cache::warm(&self.file())?;
        self.reset()
    }

    fn reset(&self) -> anyhow::Result<()> {
        match &self.mount {
            Some(mount) => fs::write(mount.point.join(".slowfs/reset"), "now").context("slowfs does not reset"),
            None => Ok(()),
        }
    }

    /// What was asked of the storage since it was made cold or warm; nobody counts for the local disk.
    pub fn fetched(&self) -> anyhow::Result<Option<Fetched>> {
        let Some(mount) = &self.mount else { return Ok(None) };
        let text = fs::read(mount.point.join(".slowfs/counters.json")).context("slowfs does not count")?;
        Ok(Some(serde_json::from_slice::<Counters>(&text)?.total))
    }
}

/// A slowfs mount: it ends with this value, or with this process.
struct Mount {
    process: Child,
    point: PathBuf,
}

impl Mount {
    fn new(bench: &Bench, source: &Path, limits: &[String]) -> anyhow::Result<Self> {
        let point = bench.scratch().join("mount");
        fs::create_dir_all(&point).with_context(|| format!("cannot make {}", point.display()))?;
        let mut command = Command::new(bench.programs.path("slowfs"));
        // FUSE would drop the cache at every open, and nothing would ever be warm.
        command.args(["--until-stdin-closes", "--keep-cache", "--readahead", &format!("{READ_AHEAD}K")]).args(limits);
        if bench.programs.is_other_user() {
            command.arg("--allow-other");
        }
        command.arg(source).arg(&point).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("cannot start slowfs")?;
        let mut line = String::new();
        let output = process.stdout.as_mut().context("slowfs was given a pipe")?;
        BufReader::new(output).read_line(&mut line)?;
        let mount = Self { process, point };
        ensure!(line.trim() == "ready", "slowfs did not mount at {}: it says above why", mount.point.display());
        Ok(mount)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        if let Err(error) = self.process.wait() {
            eprintln!("{} may still be mounted: {error}", self.point.display());
        }
    }
}
