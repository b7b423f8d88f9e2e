//! One run of a reader, and what there is to say about it.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use precache::supervisor::RunReport;

use crate::bench::Bench;
use crate::storage::{Fetched, Storage};

/// A reader, how it is started, and what runs beside it.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    pub reader: Vec<OsString>,
    /// Options of precache-run, if the reader runs under it.
    pub precache: Option<Vec<String>>,
    /// A command that must end first; its time counts.
    pub before: Option<Vec<OsString>>,
    /// A command that is started at the same time, and ended when the reader has ended.
    pub beside: Option<Vec<OsString>>,
}

#[derive(Debug)]
pub struct Measurement {
    pub seconds: f64,
    /// What the reader wrote to standard output.
    pub output: String,
    pub fetched: Option<Fetched>,
    pub report: Option<RunReport>,
}

impl Measurement {
    /// What precache's report says of its mappings: file, faults before the first request, trips.
    pub fn mappings(&self) -> impl Iterator<Item = &precache::report::MappingReport> {
        let session = self.report.iter().filter_map(|report| report.session.as_ref());
        session.flat_map(|session| &session.readers).flat_map(|reader| &reader.mappings)
    }
}

impl Launch {
    pub fn new(reader: Vec<OsString>) -> Self {
        Self { reader, ..Self::default() }
    }

    pub fn under_precache(mut self, options: &[&str]) -> Self {
        self.precache = Some(options.iter().map(ToString::to_string).collect());
        self
    }

    /// Runs it. The storage must have been made cold or warm.
    pub fn run(&self, bench: &Bench, storage: &Storage) -> anyhow::Result<Measurement> {
        let report_file = bench.programs.home().join("report.json");
        let mut command = self.command(bench, &report_file);
        let start = Instant::now();
        let beside = self.beside.as_ref().map(|words| Beside::start(bench, words)).transpose()?;
        if let Some(words) = &self.before {
            let status = quiet(bench, words).status().with_context(|| format!("cannot start {words:?}"))?;
            ensure!(status.success(), "{words:?} failed with {status}");
        }
        let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
        let seconds = start.elapsed().as_secs_f64();
        drop(beside);
        ensure!(
            output.status.success(),
            "{command:?} failed with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let report = match &self.precache {
            Some(_) => Some(serde_json::from_slice(&fs::read(&report_file).context("precache-run wrote no report")?)?),
            None => None,
        };
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Measurement { seconds, output, fetched: storage.fetched()?, report })
    }

    fn command(&self, bench: &Bench, report_file: &PathBuf) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(options) = &self.precache {
            // An old report must not be taken for the new one.
            let _ = fs::remove_file(report_file);
            words.push(bench.programs.path("precache-run").into());
            words.extend(options.iter().map(Into::into));
            words.extend(["--report".into(), report_file.into(), "--".into()]);
        }
        words.extend(self.reader.iter().cloned());
        let mut command = bench.programs.command(&words);
        command.stdin(Stdio::null());
        command
    }
}

fn quiet(bench: &Bench, words: &[OsString]) -> Command {
    let mut command = bench.programs.command(words);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A process that does not outlive this value.
struct Beside(Child);

impl Beside {
    fn start(bench: &Bench, words: &[OsString]) -> anyhow::Result<Self> {
        Ok(Self(quiet(bench, words).spawn().with_context(|| format!("cannot start {words:?}"))?))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
