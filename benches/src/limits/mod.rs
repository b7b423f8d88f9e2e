//! How near to the storage's limit precache comes, and that it is never in the way: measured and judged, row by row.

mod compute;
mod control;
mod engines;
mod hostile;
mod local;
mod memory;
mod passive;
mod peers;
mod populate;
mod sequential;
mod sharing;
mod skipping;
mod start;

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::machine::Machine;
use crate::mount::Slow;
use crate::new_page;
use crate::pairs::WrongOutput;
use crate::results::table::{Table, mebibytes};
use crate::results::{publish, write};
use crate::steal::Watch;
use crate::storage::Kind;
use crate::verdict::{Bar, Verdict};

/// Requests of an LMDB reader that each need the answer to the one before, until it is known where its records lie: the
/// header, the root page, a leaf, and the first record.
const DEPENDENT: u32 = 4;

/// One row of the table, or a few that are measured together.
struct Case {
    name: String,
    /// What is read, how, on which storage.
    subject: String,
    judge: Box<Judge>,
}

type Judge = dyn Fn(&Bench, &str) -> anyhow::Result<Vec<Bar>>;

impl Case {
    fn new(
        name: impl Into<String>,
        subject: impl Into<String>,
        judge: impl Fn(&Bench, &str) -> anyhow::Result<Vec<Bar>> + 'static,
    ) -> Self {
        Self { name: name.into(), subject: subject.into(), judge: Box::new(judge) }
    }

    /// What cannot be measured says why, and does not keep the others from being measured.
    fn bars(&self, bench: &Bench) -> Vec<Bar> {
        eprintln!("{}", self.name);
        (self.judge)(bench, &self.subject).unwrap_or_else(|error| {
            let why = format!("{error:#}").replace('\n', " ");
            vec![match error.downcast_ref::<WrongOutput>() {
                Some(_) => Bar::new(self.subject.as_str(), why, Verdict::NotMet),
                None => Bar::not_measured(self.subject.as_str(), why),
            }]
        })
    }
}

/// A bar, and when it was last measured.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    /// Of the case.
    name: String,
    #[serde(flatten)]
    bar: Bar,
    when: String,
    /// Where, if not on the machine that the table names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Share of the processors' time that the host took while the case was measured.
    stolen: f64,
    /// Microseconds for a page of memory that nobody had before, right after; 0: not measured.
    #[serde(default)]
    new_page: f64,
}

/// The part of an earlier document that is read again.
#[derive(Deserialize)]
struct Earlier {
    machine: Machine,
    results: Vec<Row>,
}

pub fn run(bench: &Bench, only: &[String]) -> anyhow::Result<()> {
    let cases: Vec<Case> = [
        sequential::cases(),
        local::cases(),
        skipping::cases(),
        compute::cases(),
        start::cases(),
        passive::cases(),
        memory::cases(),
        sharing::cases(),
        populate::cases(),
        hostile::cases(),
        engines::cases(),
        peers::cases(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let unknown = only.iter().find(|only| !names.iter().any(|name| is_meant(only, name, &names)));
    ensure!(unknown.is_none(), "no row is called {}: the rows are {}", unknown.unwrap(), names.join(", "));
    let is_chosen = |name: &str| only.is_empty() || only.iter().any(|only| is_meant(only, name, &names));

    let title = if bench.programs.is_other_user() { "limits-as-user" } else { "limits" };
    let machine = Machine::here(bench.scratch(), bench.settings.as_user.as_deref());
    let when = when(bench, &machine);
    let place = |row: &Row| names.iter().position(|name| *name == row.name);
    let mut rows = earlier(bench, &machine, title)?;
    rows.retain(|row| place(row).is_some());
    let table = |rows: &[Row]| {
        let bar = as_user(bench, &names, rows);
        let user = Row { name: "user".into(), bar, when: when.clone(), machine: None, stolen: 0.0, new_page: 0.0 };
        [rows, &[user]].concat()
    };
    let heading = "At the storage's limit, and never in the way";
    for case in cases.iter().filter(|case| is_chosen(&case.name)) {
        let steal = Watch::begin();
        let bars = case.bars(bench);
        let stolen = steal.share();
        let new_page = new_page::time()?.as_secs_f64() * 1e6;
        let row = |bar| Row { name: case.name.clone(), bar, when: when.clone(), machine: None, stolen, new_page };
        rows.retain(|row| row.name != case.name);
        rows.extend(bars.into_iter().map(row));
        rows.sort_by_key(place);
        // All take over an hour: what is measured is kept if the rest is not.
        let table = table(&rows);
        write(bench, &machine, title, heading, &describe(&table).to_string(), &table)?;
    }
    let table = table(&rows);
    publish(bench, &machine, title, heading, &describe(&table).to_string(), &table)
}

/// Whether a row is asked for: by its name, or else by the beginning of its name.
fn is_meant(only: &str, name: &str, names: &[&str]) -> bool {
    if names.contains(&only) { name == only } else { name.starts_with(only) }
}

/// What stands behind the figures of a row.
fn when(bench: &Bench, machine: &Machine) -> String {
    let commit = machine.commit.as_deref().unwrap_or("no commit");
    format!("{}, {commit}, size {} x {}", machine.date, mebibytes(bench.size()), bench.settings.repetitions)
}

/// The rows of the last run.
fn earlier(bench: &Bench, machine: &Machine, title: &str) -> anyhow::Result<Vec<Row>> {
    let path = bench.settings.results.join(format!("{title}.json"));
    let text = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| path.display().to_string())?,
    };
    let earlier: Earlier = serde_json::from_slice(&text).with_context(|| {
        format!("{} holds no rows that could be kept: remove it, or name other --results", path.display())
    })?;
    Ok(earlier.rows_beside(&machine.hardware()))
}

impl Earlier {
    /// Its rows in a table of this machine: each that was measured on another one says on which.
    fn rows_beside(self, machine: &str) -> Vec<Row> {
        let theirs = self.machine.hardware();
        let mark = |row: Row| {
            let measured_on = row.machine.unwrap_or_else(|| theirs.clone());
            Row { machine: (measured_on != machine).then_some(measured_on), ..row }
        };
        self.results.into_iter().map(mark).collect()
    }
}

/// The rows as someone who does not own the data meets them are a run of their own.
fn as_user(bench: &Bench, names: &[&str], rows: &[Row]) -> Bar {
    let subject = "as an ordinary user on a file that root owns: every row";
    if !bench.programs.is_other_user() {
        return Bar::not_measured(subject, "the readers owned the data: repeat with --as-user nobody");
    }
    let count = |verdict| rows.iter().filter(|row| row.bar.verdict == verdict).count();
    let (met, not_met) = (count(Verdict::Met), count(Verdict::NotMet));
    let is_of_here = |name: &str| rows.iter().any(|row| row.name == name && row.machine.is_none());
    let absent = names.iter().filter(|name| !is_of_here(name)).count();
    let bars = rows.len() - count(Verdict::NoBar);
    let verdict = match (not_met, met == bars && absent == 0) {
        (1.., _) => Verdict::NotMet,
        (0, true) => Verdict::Met,
        (0, false) => Verdict::Undecided,
    };
    let absent = if absent == 0 { String::new() } else { format!("; cases never run on this machine: {absent}") };
    Bar::new(subject, format!("{met} of {bars} bars met, {not_met} not met{absent}"), verdict)
}

fn describe(rows: &[Row]) -> Table {
    let mut table = Table::new(["row", "bar ", "measured ", "verdict ", "stolen", "new page", "when "]);
    for Row { name, bar, when, machine, stolen, new_page } in rows {
        let stolen = format!("{:.1} %", 100.0 * stolen);
        let new_page = if *new_page > 0.0 { format!("{new_page:.1} us") } else { "-".into() };
        let when = machine.as_ref().map_or(when.clone(), |machine| format!("{when}, on {machine}"));
        table.row([name, &bar.requirement, &bar.measured, &bar.verdict.to_string(), &stolen, &new_page, &when]);
    }
    table
}

/// The storage of all rows that name none.
fn remote_ssd() -> Slow {
    Kind::RemoteSsd.slow().expect("it is slow")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_asked_for_by_name_or_by_its_beginning() {
        let names = ["warm", "warm-local", "true"];
        let meant = |only| names.into_iter().filter(|name| is_meant(only, name, &names)).collect::<Vec<_>>();
        assert_eq!(meant("warm"), ["warm"]);
        assert_eq!(meant("wa"), ["warm", "warm-local"]);
        assert!(meant("x").is_empty());
    }

    #[test]
    fn rows_of_another_machine_say_so_until_they_are_back_on_it() {
        let row = |machine: Option<&str>| Row {
            name: "warm".into(),
            bar: Bar::not_measured("", ""),
            when: String::new(),
            machine: machine.map(Into::into),
            stolen: 0.0,
            new_page: 0.0,
        };
        let here = Machine::here(std::path::Path::new("/"), None);
        let hardware = here.hardware();
        let beside = |machine: &str| {
            let earlier = Earlier { machine: here.clone(), results: vec![row(None), row(Some("another"))] };
            earlier.rows_beside(machine).into_iter().map(|row| row.machine).collect::<Vec<_>>()
        };
        assert_eq!(beside(&hardware), [None, Some("another".to_owned())]);
        assert_eq!(beside("another"), [Some(hardware.clone()), None]);
        assert_eq!(beside("a third"), [Some(hardware), Some("another".to_owned())]);
    }
}
