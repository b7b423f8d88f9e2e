//! One run of a reader, and what there is to say about it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use precache::report::FileReport;
use precache::supervisor::RunReport;

use crate::bench::Bench;
use crate::cgroup::Cgroup;
use crate::results::table::{self, mebibytes};
use crate::steal::Watch;
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
    /// Share of the processors' time that the host took meanwhile.
    pub stolen: f64,
}

/// A reader that failed.
#[derive(Debug, thiserror::Error)]
#[error("{command} failed with {status}: {complaint}")]
pub struct Failed {
    command: String,
    pub status: ExitStatus,
    complaint: String,
}

impl Measurement {
    /// What precache's report says of its mappings: file, faults before the first request, trips.
    pub fn mappings(&self) -> impl Iterator<Item = &precache::report::MappingReport> {
        let session = self.report.iter().filter_map(|report| report.session.as_ref());
        session.flat_map(|session| &session.readers).flat_map(|reader| &reader.mappings)
    }

    /// What the reader says after `name=`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.output.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
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
        self.run_in(bench, storage, None, |_| Ok(()))
    }

    /// Runs it with nothing of the data cached.
    pub fn run_cold(&self, bench: &Bench, storage: &Storage) -> anyhow::Result<Measurement> {
        let _memory = storage.make_cold()?;
        self.run(bench, storage)
    }

    /// Runs it with all of the data cached.
    pub fn run_warm(&self, bench: &Bench, storage: &Storage) -> anyhow::Result<Measurement> {
        storage.make_warm()?;
        self.run(bench, storage)
    }

    /// Runs it in a memory cgroup; `hear` is told each line on standard error when it comes.
    pub fn run_in(
        &self,
        bench: &Bench,
        storage: &Storage,
        group: Option<&Cgroup>,
        mut hear: impl FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Measurement> {
        let report_file = bench.programs.home().join("report.json");
        let mut command = self.command(bench, &report_file);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(group) = group {
            join(&mut command, group)?;
        }
        let (start, steal) = (Instant::now(), Watch::begin());
        let beside = self.beside.as_ref().map(|words| Stopped::start(bench, words)).transpose()?;
        if let Some(words) = &self.before {
            let status = quiet(bench, words).status().with_context(|| format!("cannot start {words:?}"))?;
            ensure!(status.success(), "{words:?} failed with {status}");
        }
        let mut reader = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let mut complaint = String::new();
        // Readers write a few lines to standard output: these fit into the pipe meanwhile.
        for line in BufReader::new(reader.stderr.take().context("it was given a pipe")?).lines() {
            let line = line?;
            if let Err(error) = hear(&line) {
                drop(Stopped(reader));
                return Err(error);
            }
            complaint += &line;
        }
        let output = reader.wait_with_output()?;
        let (seconds, stolen) = (start.elapsed().as_secs_f64(), steal.share());
        if let Some(mut beside) = beside {
            let ended = beside.0.try_wait()?;
            ensure!(ended.is_none_or(|status| status.success()), "{:?} failed: {ended:?}", self.beside);
        }
        if !output.status.success() {
            return Err(Failed { command: format!("{command:?}"), status: output.status, complaint }.into());
        }
        let report = match &self.precache {
            Some(_) => Some(serde_json::from_slice(&fs::read(&report_file).context("precache-run wrote no report")?)?),
            None => None,
        };
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let run = Measurement { seconds, output, fetched: storage.fetched()?, report, stolen };
        if let Some(report) = &run.report {
            // Of a run that took longer than the others this tells whether another engine filled, or fewer requests were in flight.
            eprintln!("under precache: {}: {}", table::seconds(seconds), filling(report));
        }
        Ok(run)
    }

    fn command(&self, bench: &Bench, report_file: &Path) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(options) = &self.precache {
            // An old report must not be taken for the new one.
            let _ = fs::remove_file(report_file);
            words.push(bench.programs.path("precache-run").into());
            words.extend(options.iter().map(Into::into));
            words.extend(["--report".into(), report_file.into(), "--".into()]);
        }
        words.extend(self.reader.iter().cloned());
        bench.programs.command(&words)
    }
}

/// What brought in each file, and with how many requests.
fn filling(report: &RunReport) -> String {
    let files = report.session.iter().flat_map(|session| &session.files);
    let describe = |file: &FileReport| {
        if file.engines.is_empty() {
            return "nothing fetched".into();
        }
        let engines = file.engines.iter().map(|share| format!("{} {}", share.engine, mebibytes(share.bytes)));
        let engines = engines.collect::<Vec<_>>().join(", ");
        format!("{engines} in {} requests, {} in flight at most", file.requests, file.most_in_flight)
    };
    files.map(describe).collect::<Vec<_>>().join("; ")
}

/// Has the command start in the cgroup, with all that it starts.
fn join(command: &mut Command, group: &Cgroup) -> anyhow::Result<()> {
    let door = group.door().context("the memory cgroup cannot be joined")?;
    // SAFETY: between fork and exec it only calls write(2), which is async-signal-safe (signal-safety(7)).
    unsafe { command.pre_exec(move || (&door).write_all(b"0")) };
    Ok(())
}

fn quiet(bench: &Bench, words: &[OsString]) -> Command {
    let mut command = bench.programs.command(words);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A process that does not outlive this value.
pub struct Stopped(pub Child);

impl Stopped {
    fn start(bench: &Bench, words: &[OsString]) -> anyhow::Result<Self> {
        Ok(Self(quiet(bench, words).spawn().with_context(|| format!("cannot start {words:?}"))?))
    }

    /// Waits for its end, and returns what it wrote to standard output, for which it needs a pipe.
    pub fn output(mut self) -> anyhow::Result<String> {
        let mut output = String::new();
        self.0.stdout.take().context("it was given a pipe")?.read_to_string(&mut output)?;
        let status = self.0.wait()?;
        ensure!(status.success(), "a reader failed with {status}");
        Ok(output)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let output = "rank 0: records=5 bytes=983150 checksum=00ff\n".to_owned();
        let run = Measurement { seconds: 1.0, output, fetched: None, report: None, stolen: 0.0 };
        assert_eq!(
            (run.field("bytes"), run.field("checksum"), run.field("byte")),
            (Some("983150"), Some("00ff"), None)
        );
    }
}
