//! Where data lies while it is read: the local disk, or slowfs with the limits of remote storage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::cache;
use crate::claim::Claim;
use crate::mount::{Mount, Slow};
use crate::readahead::ReadAhead;

/// Seconds for the requests that depend on each other before the stream can start.
const START: f64 = 0.02;

/// The kernel's default, in KiB; also that of FUSE and NFS.
pub const READ_AHEAD: u32 = 128;

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
        self.slow().is_some()
    }

    /// What slowfs is then to be like.
    pub fn slow(self) -> Option<Slow> {
        match self {
            Self::Local => None,
            Self::RemoteSsd => Some(Slow::new(Duration::from_millis(2), 400_000_000)),
            Self::RemoteHdd => Some(Slow::new(Duration::from_millis(10), 150_000_000)),
        }
    }

    /// The least time in which these bytes can be read, by someone who needs `warm` seconds when they are cached.
    pub fn limit(self, bytes: u64, warm: f64) -> Option<f64> {
        Some(warm.max(bytes as f64 / self.slow()?.bandwidth as f64 + START))
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
        match kind.slow() {
            Some(slow) => Self::slow(bench, &slow, source),
            None => Ok(Self {
                view: source.to_owned(),
                source: source.to_owned(),
                mount: None,
                _read_ahead: ReadAhead::set(READ_AHEAD, source).ok(),
            }),
        }
    }

    /// A slowfs like this one.
    pub fn slow(bench: &Bench, slow: &Slow, source: &Path) -> anyhow::Result<Self> {
        ensure!(Self::can_mount(), "slowfs cannot be mounted here");
        let mount = Mount::new(bench, source, slow)?;
        Ok(Self { view: mount.point.clone(), source: source.to_owned(), mount: Some(mount), _read_ahead: None })
    }

    /// The folder as readers see it.
    pub fn folder(&self) -> &Path {
        &self.view
    }

    /// The folder itself.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The LMDB's data file as readers see it.
    pub fn file(&self) -> PathBuf {
        self.view.join("data.mdb")
    }

    pub fn file_size(&self) -> anyhow::Result<u64> {
        Ok(self.source.join("data.mdb").metadata()?.len())
    }

    /// Nothing of the data file is cached for readers, and all of it for slowfs, whose own limits are to be the only
    /// ones. What is returned is to be kept until it is.
    pub fn make_cold(&self) -> anyhow::Result<Claim> {
        let backing = self.source.join("data.mdb");
        if self.mount.is_some() {
            cache::warm(&backing)?;
        }
        cache::cool(&self.file())?;
        self.reset()?;
        Ok(Claim::hold(self.file_size()?)?)
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
