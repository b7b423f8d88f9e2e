//! `lockfile check`: what can be known about who writes and reads a database.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::processes::{self, Process, Scan};
use crate::filesystem::{self, Kind, Locks};
use crate::lmdb::info::Readers;
use crate::lmdb::{Env, Location, ReaderTable};

/// All that can be known from here.
#[derive(Debug, Serialize)]
pub struct Report {
    pub file_system: String,
    /// Processes of this machine that have the data file open for writing.
    pub writers: Vec<Process>,
    /// Processes that have it open for reading only, that were looked into, and that could not be.
    pub reading: usize,
    pub seen: usize,
    pub unseen: usize,
    /// Why this machine may have processes that are not even listed; empty where all are.
    pub hidden: Vec<String>,
    /// Other machines may use the file system: what they do is unknown. By what, in the next field.
    pub other_machines: bool,
    pub shared_by: Option<String>,
    pub transaction: u64,
    /// A transaction was committed while watching.
    pub moved: bool,
    pub watched_seconds: f64,
    /// None where there is none; then the next field says why.
    pub reader_table: Option<Readers>,
    pub no_reader_table: Option<String>,
    /// `honoured`, `ignored`, `refused`, or `unknown`: on this machine.
    pub locks: &'static str,
}

impl Report {
    /// Looks, watches for `seconds`, and looks again.
    pub fn gather(db: &Path, seconds: f64) -> anyhow::Result<Self> {
        let location = Location::of(db)?;
        let Scan { writers, readers, seen, unseen, hidden } = processes::scan(&location.data)?;
        let kind = Kind::of(&location.data)?;
        let shared_by = kind.shared_by();
        let before = Env::open(location.clone())?.transaction;
        thread::sleep(Duration::from_secs_f64(seconds));
        // Opened anew: network file systems look for changes then, and not on a mapping.
        let transaction = Env::open(location.clone())?.transaction;
        let (reader_table, no_reader_table) = match ReaderTable::read(&location.lock) {
            Ok(table) => (Some(Readers::of(&table)), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Ok(Self {
            file_system: kind.name(),
            writers,
            reading: readers,
            seen,
            unseen,
            hidden,
            other_machines: shared_by.is_some(),
            shared_by,
            transaction,
            moved: transaction != before,
            watched_seconds: seconds,
            reader_table,
            no_reader_table,
            locks: match filesystem::locks_of(&location) {
                Ok(Locks::Honoured) => "honoured",
                Ok(Locks::Ignored) => "ignored",
                Ok(Locks::Refused(_)) => "refused",
                Err(_) => "unknown",
            },
        })
    }

    /// Somebody writes, as far as could be seen.
    pub fn writer_seen(&self) -> bool {
        self.moved || !self.writers.is_empty()
    }
}

pub(super) fn run(db: &Path, seconds: f64, json: bool) -> anyhow::Result<ExitCode> {
    let report = Report::gather(db, seconds)?;
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write_text(&report, &mut out)?;
    }
    Ok(if report.writer_seen() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn write_text(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut line = |name: &str, text: String| writeln!(out, "{name:<14}{text}");
    let writers: Vec<_> = report.writers.iter().map(|writer| format!("{} ({})", writer.pid, writer.command)).collect();
    let looked = format!("{} processes looked into, {} of other users could not be", report.seen, report.unseen);
    let looked: String = [looked].into_iter().chain(report.hidden.iter().cloned()).collect::<Vec<_>>().join("; ");
    let found = if writers.is_empty() {
        "none found".into()
    } else {
        format!("{} have it open for writing", writers.join(", "))
    };
    line("writers here", format!("{found}; {looked}"))?;
    let elsewhere = match &report.shared_by {
        Some(by) => format!("unknown on other machines, which may use this file system ({by})"),
        None => format!("none: {} is local to this machine", report.file_system),
    };
    line("elsewhere", elsewhere)?;
    let moved = if report.moved { "committed while watched" } else { "none was committed" };
    line("transaction", format!("{}; {moved} ({} s)", report.transaction, report.watched_seconds))?;
    line(
        "readers",
        match &report.reader_table {
            Some(table) => format!("{} processes have it open; {table}", report.reading),
            None => format!(
                "{} processes have it open; no reader table: {}",
                report.reading,
                report.no_reader_table.as_deref().unwrap_or_default()
            ),
        },
    )?;
    let shared = if report.other_machines { "; unknown on other machines" } else { "" };
    line("locks", format!("{}{shared}", report.locks))?;
    line(
        "replicas",
        match (report.writer_seen(), report.other_machines || report.unseen > 0 || !report.hidden.is_empty()) {
            (true, _) => {
                "not safe: readers with their own lock files would not protect their pages from the writer".into()
            }
            (false, true) => {
                "unknown: somebody may write where it cannot be seen; whether that is so is for you to know".into()
            }
            (false, false) => "safe: nobody writes it".into(),
        },
    )
}
