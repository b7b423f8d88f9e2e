//! The commands that lay a file out as advised, for each kind of file system.

use super::advice::Advice;
use super::lov::{Component, Layout};
use crate::filesystem::Kind;
use crate::shell::quoted;
use crate::size::{self, Bytes};

/// What the advice is about.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    pub kind: Kind,
    pub path: &'a str,
    /// None where it does not exist yet.
    pub size: Option<u64>,
    /// Its present layout, where the file system says.
    pub layout: Option<&'a Layout>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The command to run; none where there is nothing to do.
    pub command: Option<String>,
    /// Why, and what else there is to know; a line each.
    pub notes: Vec<String>,
}

pub fn plan(subject: &Subject<'_>, advice: &Advice) -> Plan {
    match subject.kind {
        Kind::Lustre | Kind::Fefs => lustre(subject, advice),
        Kind::BeeGfs => beegfs(subject, advice),
        Kind::Gpfs => Plan {
            command: None,
            notes: vec![
                "gpfs: nothing to stripe: it spreads every file over all disks in blocks whose size was fixed when the file \
                 system was made"
                    .into(),
                format!(
                    "see that size with `mmlsfs DEVICE -B`; a file system made for this would have `mmcrfs ... -B {}`",
                    size::flag(advice.stripe_size.next_power_of_two().min(16 << 20))
                ),
            ],
        },
        kind => Plan {
            command: None,
            notes: vec![format!("{}: nothing to stripe: a file here is not spread over storage targets", kind.name())],
        },
    }
}

/// Layouts are given when a file is made. Lustre makes it anew by itself; FEFS has no word for that, nor for layouts in parts.
fn lustre(subject: &Subject<'_>, advice: &Advice) -> Plan {
    let (stripe, count, path) = (advice.stripe_size, advice.stripe_count, quoted(subject.path));
    let main = subject.layout.and_then(|layout| layout.main(subject.size.unwrap_or(0)));
    // What an administrator chose for the file stays: without a word a new layout is in no pool.
    let pool = main.and_then(|main| main.pool.as_ref()).map(|pool| format!(" -p {}", quoted(pool))).unwrap_or_default();
    let layout = format!("-S {stripe} -c {count}{pool}");
    if subject.size.is_none() {
        return Plan {
            command: Some(format!("lfs setstripe {layout} {path}")),
            notes: vec!["the file gets this layout when it is made".into()],
        };
    }
    let mut notes = match main.map(|main| differences(main, advice)) {
        Some(Differences::None(why)) => return Plan { command: None, notes: vec![why] },
        Some(Differences::Some(why)) => why,
        None => Vec::new(),
    };
    let mirrors = subject.layout.map_or(1, |layout| layout.mirrors);
    if mirrors > 1 {
        notes.push(format!(
            "it has {mirrors} mirrors, each with a layout of its own: add one with the advised layout (`lfs mirror extend -N \
             {layout} {path}`), then drop an old one (`lfs mirror split -d --mirror-id ID {path}`; `lfs getstripe` has the ids)"
        ));
        return Plan { command: None, notes };
    }
    let new = quoted(format!("{}.new", subject.path));
    let copy = format!("lfs setstripe {layout} {new} && cp -p {path} {new} && mv {new} {path}");
    let command = if subject.kind == Kind::Fefs {
        notes.push("where lfs is that of Lustre 1.8, the option for the stripe size is -s".into());
        copy
    } else {
        notes.push(format!("without progressive layouts (Lustre before 2.10), copy it: {copy}"));
        // The first stripe alone on one target: opening the database and small files cost one server.
        format!("lfs migrate -E {stripe} -S {stripe} -c 1{pool} -E -1 {layout} {path}")
    };
    notes.push("nobody may write the file meanwhile; readers that have it open keep what they mapped".into());
    Plan { command: Some(command), notes }
}

/// How a present layout compares with the advised one.
enum Differences {
    /// It is as good; why.
    None(String),
    Some(Vec<String>),
}

fn differences(main: &Component, advice: &Advice) -> Differences {
    let (stripe, count) = (advice.stripe_size, advice.stripe_count);
    let (size_now, count_now) = (u64::from(main.stripe_size), i64::from(main.stripe_count));
    let mut notes = vec![format!("now: {main}")];
    if main.on_metadata_target {
        return Differences::Some(notes);
    }
    if size_now == stripe && count == -1 {
        let note = format!("it has that stripe size already: {main}; to have their number judged, give --osts N");
        return Differences::None(note);
    }
    if size_now == stripe && count_now == count {
        return Differences::None(format!("it has that layout already: {main}"));
    }
    if size_now != stripe {
        let relation = if size_now < stripe { "needs several targets" } else { "shares a stripe" };
        let (now, then) = (Bytes(size_now), Bytes(stripe));
        notes.push(format!("what a node reads at a time {relation} with stripes of {now}, one with {then}"));
    }
    if count_now != count {
        let number = |count: i64| if count == -1 { "all".into() } else { count.to_string() };
        let (now, then) = (number(count_now), number(count));
        notes.push(format!("targets: {now} now, {then} advised for what reads it at a time"));
    }
    Differences::Some(notes)
}

/// BeeGFS keeps patterns for directories and gives them to new files. It has no word for "all targets".
fn beegfs(subject: &Subject<'_>, advice: &Advice) -> Plan {
    let (chunk, count) = (advice.stripe_size, advice.stripe_count);
    if count == -1 {
        let note = "the command needs a number of targets: give --osts N (`beegfs-ctl --listtargets` counts them)";
        return Plan { command: None, notes: vec![note.into()] };
    }
    let directory = match subject.path.rsplit_once('/') {
        None => ".",
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
    };
    let directory = quoted(directory);
    let mut notes = vec![format!("BeeGFS 8: beegfs entry set --chunk-size={chunk} --num-targets={count} {directory}")];
    if subject.size.is_some() {
        let path = quoted(subject.path);
        let new = quoted(format!("{}.new", subject.path));
        notes.push(format!("it holds for new files only, so then: cp {path} {new} && mv {new} {path}"));
    }
    let command = format!("beegfs-ctl --setpattern --chunksize={chunk} --numtargets={count} {directory}");
    Plan { command: Some(command), notes }
}

#[cfg(test)]
mod tests;
