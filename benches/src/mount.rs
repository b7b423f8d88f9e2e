//! slowfs, mounted with the limits and faults of the storage that it stands in for.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::bench::Bench;
use crate::storage::READ_AHEAD;

/// What slowfs is to be like.
#[derive(Clone, Debug)]
pub struct Slow {
    pub latency: Duration,
    /// Bytes per second; 0 is unlimited.
    pub bandwidth: u64,
    /// Whether read-ahead calls do something; on Lustre they do not.
    pub willneed: bool,
    /// Whether a file's pages stay cached when it is opened again; FUSE drops them by default.
    pub keep_cache: bool,
    /// Background requests in flight (`max_background`); none for what the kernel has, 12.
    pub background: Option<u16>,
    /// As slowfs takes them: `stall:5s@1M`.
    pub faults: Vec<String>,
}

impl Slow {
    pub fn new(latency: Duration, bandwidth: u64) -> Self {
        Self { latency, bandwidth, willneed: true, keep_cache: true, background: None, faults: Vec::new() }
    }

    /// As fast as it can be.
    pub fn unlimited() -> Self {
        Self::new(Duration::ZERO, 0)
    }

    pub fn forgetful(self) -> Self {
        Self { keep_cache: false, ..self }
    }

    pub fn with_fault(mut self, fault: String) -> Self {
        self.faults.push(fault);
        self
    }

    pub fn label(&self) -> String {
        let milliseconds = self.latency.as_secs_f64() * 1e3;
        let willneed = if self.willneed { "" } else { ", --no-willneed" };
        let background = self.background.map(|most| format!(", --max-background {most}")).unwrap_or_default();
        format!("slowfs {milliseconds} ms, {} MB/s{willneed}{background}", self.bandwidth / 1_000_000)
    }

    fn arguments(&self) -> Vec<String> {
        let mut words = vec![
            format!("--latency={}us", self.latency.as_micros()),
            format!("--bandwidth={}", self.bandwidth),
            format!("--readahead={READ_AHEAD}K"),
        ];
        words.extend(self.keep_cache.then(|| "--keep-cache".into()));
        words.extend((!self.willneed).then(|| "--no-willneed".into()));
        words.extend(self.background.map(|most| format!("--max-background={most}")));
        words.extend(self.faults.iter().map(|fault| format!("--fault={fault}")));
        words
    }
}

/// A slowfs mount: it ends with this value, or with this process.
pub struct Mount {
    process: Child,
    pub point: PathBuf,
}

impl Mount {
    pub fn new(bench: &Bench, source: &Path, slow: &Slow) -> anyhow::Result<Self> {
        let point = bench.scratch().join("mount");
        fs::create_dir_all(&point).with_context(|| format!("cannot make {}", point.display()))?;
        let mut command = Command::new(bench.programs.path("slowfs"));
        command.arg("--until-stdin-closes").args(slow.arguments());
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
