//! What one run was asked to do, resolved: every size in bytes, every default filled in.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::Way;
use precache_contract::PAGE;

/// Spacing of checkpoints that `auto` starts from.
pub const DEFAULT_DISTANCE: u64 = 8 << 20;

/// Amount pre-cached per trigger that `auto` starts from.
pub const DEFAULT_SIZE: u64 = 50 << 20;

/// Requests in flight on a mount that few can hold against a system: as a rule they are fewer, for `policy::congestion` looks for those
/// that bring bandwidth. A path of 10 ms and 800 MB/s, in requests of 128 KiB, holds 62, and takes 82 to be kept full.
pub const DEFAULT_MAX_INFLIGHT: usize = 128;

/// Sizes of more bytes overflow when they are added up.
pub const LARGEST: u64 = 1 << 60;

/// Requests in flight that can be asked for.
pub const REQUESTS: RangeInclusive<usize> = 1..=1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOptions {
    pub distance: u64,
    pub distance_auto: bool,
    pub size: u64,
    pub size_auto: bool,
    /// Percent of the window after which the next checkpoint triggers.
    pub threshold: u8,
    pub data: Vec<String>,
    pub exclude: Vec<String>,
    pub min_file: u64,
    pub ranges: Vec<DataRange>,
    pub mode: Mode,
    pub protect: Protect,
    pub populate: Populate,
    /// Requests in flight on each mount; measured, if not given.
    pub jobs: Option<usize>,
    /// Never more requests in flight on a mount, whoever asks for them; [`DEFAULT_MAX_INFLIGHT`] or what is asked for, if no
    /// session gives a bound.
    pub max_inflight: Option<NonZeroUsize>,
    /// The only engine to use, as long as it works.
    pub engine: Option<Way>,
    /// Bytes of page cache that data files may take, all together.
    pub cache_limit: Option<u64>,
    /// LMDB readers get lock files of their own.
    pub private_lock: bool,
    /// Stays with the supervisor, who writes it: a path need not be UTF-8, as JSON has to be.
    #[serde(skip)]
    pub report: Option<PathBuf>,
    pub quiet: bool,
    pub verbose: bool,
}

impl RunOptions {
    /// Whether the policy can work with these, whoever sent them.
    pub fn are_sound(&self) -> bool {
        let requests = [self.jobs.unwrap_or(1), self.max_inflight.map_or(1, NonZeroUsize::get)];
        [self.distance, self.size].iter().all(|bytes| (PAGE..=LARGEST).contains(bytes))
            && (1..100).contains(&self.threshold)
            && requests.iter().all(|requests| REQUESTS.contains(requests))
    }
}

/// The process data range of one file: checkpoints lie in it only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRange {
    pub file: PathBuf,
    pub start: u64,
    pub end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Checkpoints and pre-caching
    On,
    /// Checkpoints only: what detecting costs
    Detect,
    /// The program alone
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Protect {
    /// Guard regions on shared read-only mappings of up to 128 MiB where they work, mprotect elsewhere
    Auto,
    /// Guard regions (Linux 6.15) wherever they work: no kernel mapping each, but forks copy page tables
    Guard,
    /// mprotect alone: works everywhere
    Mprotect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Populate {
    /// Where that is faster, by trial
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Detect => "detect",
            Self::Off => "off",
        }
    }
}

impl Populate {
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

impl Protect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Guard => "guard",
            Self::Mprotect => "mprotect",
        }
    }
}
