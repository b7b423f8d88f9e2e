//! The commands that lay a file out as advised, for each kind of file system.

use super::advice::Advice;
use super::lov::Layout;
use crate::filesystem::Kind;
use crate::shell::quoted;
use crate::size::Bytes;

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
        Kind::Lustre => lustre(subject, advice),
        Kind::BeeGfs => beegfs(subject, advice),
        Kind::Gpfs => Plan {
            command: None,
            notes: vec![
                "gpfs: nothing to stripe: it spreads every file over all disks in blocks whose size was fixed when the file \
                 system was made"
                    .into(),
                format!(
                    "see that size with `mmlsfs DEVICE -B`; a file system made for this would have `mmcrfs ... -B {}`",
                    Bytes(advice.stripe_size.next_power_of_two().min(16 << 20)).to_string().replace(" MiB", "M")
                ),
            ],
        },
        kind => Plan {
            command: None,
            notes: vec![format!("{}: nothing to stripe: a file here is not spread over storage targets", kind.name())],
        },
    }
}

fn lustre(subject: &Subject<'_>, advice: &Advice) -> Plan {
    let (stripe, count, path) = (advice.stripe_size, advice.stripe_count, quoted(subject.path));
    if subject.size.is_none_or(|size| size == 0) && subject.layout.is_none_or(|layout| !layout.composite) {
        let fresh = subject.size.is_none();
        let note = if fresh { "the file gets this layout when it is made" } else { "the file is empty" };
        return Plan {
            command: Some(format!("lfs setstripe -S {stripe} -c {count} {path}")),
            notes: vec![note.into()],
        };
    }
    let mut notes = Vec::new();
    if let Some(main) = subject.layout.and_then(|layout| layout.main(subject.size.unwrap_or(0))) {
        if u64::from(main.stripe_size) == stripe && i64::from(main.stripe_count) == count {
            return Plan { command: None, notes: vec![format!("it has that layout already: {main}")] };
        }
        notes.push(format!("now: {main}"));
        if u64::from(main.stripe_size) != stripe {
            let relation =
                if u64::from(main.stripe_size) < stripe { "needs several targets" } else { "shares a stripe" };
            let now = Bytes(main.stripe_size.into());
            notes.push(format!(
                "what a node reads at a time {relation} with stripes of {now}, one with {}",
                Bytes(stripe)
            ));
        }
        if i64::from(main.stripe_count) != count {
            let advised = if count == -1 { "all".into() } else { count.to_string() };
            notes.push(format!("targets: {} now, {advised} advised for what reads it at a time", main.stripe_count));
        }
    }
    // The first stripe alone on one target: opening the database and small files cost one server.
    let command = format!("lfs migrate -E {stripe} -S {stripe} -c 1 -E -1 -S {stripe} -c {count} {path}");
    notes.push(format!(
        "without progressive layouts (Lustre before 2.10, FEFS), copy it: lfs setstripe -S {stripe} -c {count} {path}.new && \
         cp {path} {path}.new && mv {path}.new {path}"
    ));
    notes.push("nobody may write the file meanwhile; readers that have it open keep what they mapped".into());
    Plan { command: Some(command), notes }
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
