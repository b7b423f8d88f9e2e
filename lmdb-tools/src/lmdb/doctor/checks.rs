//! The checks: facts in, findings out, no I/O.

use crate::filesystem::{Kind, Locks};
use crate::lmdb::command;
use crate::lmdb::survey::SHUFFLED;
use crate::shell::quoted;
use crate::size::Bytes;

use super::{Facts, Finding, LockFile};

/// Share of the map that is in use from which the next writer may find it full.
const NEARLY_FULL: f64 = 0.9;
/// More than that takes memory from other files and latency from other readers.
const LARGEST_READ_AHEAD: u64 = 16 << 20;
/// Share of the reader slots from which more readers may not fit.
const CROWDED: f64 = 0.8;

pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    vec![
        file_system(facts),
        read_ahead(facts),
        key_order(facts),
        memory(facts),
        locks(facts),
        lock_file(facts),
        readers(facts),
        map_size(facts),
        free_pages(facts),
    ]
}

fn fine(subject: &'static str, text: impl Into<String>) -> Finding {
    Finding { subject, hurts: false, text: text.into(), command: None }
}

fn hurts(subject: &'static str, text: impl Into<String>, command: impl Into<String>) -> Finding {
    Finding { subject, hurts: true, text: text.into(), command: Some(command.into()) }
}

fn file_system(facts: &Facts) -> Finding {
    let name = facts.kind.name();
    match facts.kind {
        Kind::Local(_) => fine("file system", format!("{name}: local to this machine")),
        Kind::Lustre | Kind::Fefs | Kind::BeeGfs => hurts(
            "file system",
            format!("{name}: striped and shared; each page fault is a round trip to a server"),
            format!(
                "precache stripe-advise {} --db {} --batch-size N --gpus N",
                quoted(&facts.location.data),
                quoted(&facts.location.path)
            ),
        ),
        _ => hurts(
            "file system",
            format!(
                "{name}: shared or remote, as far as can be known; each page fault may be a round trip to a server"
            ),
            "precache-run -- PROGRAM ...",
        ),
    }
}

fn read_ahead(facts: &Facts) -> Finding {
    let subject = "read-ahead";
    let record = facts.info.values.map_or(0.0, |values| values.mean);
    let Some(window) = facts.read_ahead else {
        return fine(subject, "unknown: the system does not say what one fault brings in");
    };
    let record_text = Bytes(record as u64);
    if window == 0 {
        let text = "0: each fault brings in what the file system itself decides (on Lustre: its own read-ahead)";
        return fine(subject, text);
    }
    if record > window as f64 && window < LARGEST_READ_AHEAD {
        let setting = facts.read_ahead_setting.as_deref().unwrap_or("/sys/class/bdi/MAJOR:MINOR/read_ahead_kb");
        let kib = (record as u64 * 4).next_power_of_two().min(LARGEST_READ_AHEAD) >> 10;
        let reads = (record / window as f64).ceil();
        return hurts(
            subject,
            format!(
                "{} against records of {record_text}: each takes {reads} reads, one after the other. As root, or run it with \
                 precache-run as anyone",
                Bytes(window)
            ),
            format!("echo {kib} > {setting}"),
        );
    }
    if facts.info.fragmentation > SHUFFLED && (window as f64) > 4.0 * record.max(facts.info.page_size as f64) {
        let waste = window as f64 / record.max(facts.info.page_size as f64);
        let text = format!(
            "{} for records of {record_text} in shuffled order reads up to {waste:.0} times what is used; in the program, open \
             it with MDB_NORDAHEAD (py-lmdb: readahead=False), or mend the order",
            Bytes(window)
        );
        return hurts(subject, text, command::copy_in_order(&facts.location));
    }
    let largest = if window < LARGEST_READ_AHEAD { "" } else { ", and larger it should not be" };
    fine(subject, format!("{} for records of {record_text}{largest}", Bytes(window)))
}

fn key_order(facts: &Facts) -> Finding {
    let percent = facts.info.fragmentation * 100.0;
    if facts.info.fragmentation > SHUFFLED {
        return hurts(
            "key order",
            format!("shuffled: {percent:.0} % of the steps in key order jump in the file, so no reader is sequential"),
            command::copy_in_order(&facts.location),
        );
    }
    fine("key order", format!("that of the file: {percent:.1} % of the steps jump"))
}

fn memory(facts: &Facts) -> Finding {
    let used = Bytes(facts.info.used_bytes);
    match facts.memory {
        None => fine("memory", format!("unknown; the file has {used}")),
        Some(memory) if facts.info.used_bytes > memory => hurts(
            "memory",
            format!(
                "{used} of file, {} of memory for it: every pass over the file reads all of it again",
                Bytes(memory)
            ),
            "precache-run -- PROGRAM ...",
        ),
        Some(memory) => fine("memory", format!("{used} of file fit the {} that are available", Bytes(memory))),
    }
}

fn locks(facts: &Facts) -> Finding {
    match facts.locks {
        None => fine("locks", "unknown: neither the lock file nor the data file could be opened to try one"),
        Some(Locks::Honoured) if facts.shared => {
            fine("locks", "honoured between processes of this machine; unknown on other machines")
        }
        Some(Locks::Honoured) => fine("locks", "honoured"),
        Some(Locks::Ignored) => hurts(
            "locks",
            "taken and not seen by others: a writer would overwrite what readers read. Never write here; readers:",
            command::replicate(&facts.location, facts.unvouched),
        ),
        Some(Locks::Refused(error)) => hurts(
            "locks",
            format!("refused ({error}): opening the database fails here"),
            command::replicate(&facts.location, facts.unvouched),
        ),
    }
}

fn lock_file(facts: &Facts) -> Finding {
    match &facts.lock_file {
        LockFile::Writable => fine("lock file", "may be written, as readers must"),
        LockFile::Missing { may_be_made: true } => fine("lock file", "none yet; the first reader makes it"),
        LockFile::Missing { may_be_made: false } => hurts(
            "lock file",
            "none, and you may not make it: opening the database fails, or goes without locks on a read-only mount",
            command::replicate(&facts.location, facts.unvouched),
        ),
        LockFile::Refused(why) => hurts(
            "lock file",
            format!("may not be written ({why}); readers must, so opening the database fails"),
            command::replicate(&facts.location, facts.unvouched),
        ),
    }
}

fn readers(facts: &Facts) -> Finding {
    let Some(readers) = &facts.info.readers else {
        let why = facts.info.no_readers.as_deref().unwrap_or_default();
        return fine("readers", format!("no reader table: {why}"));
    };
    let crowded = readers.used as f64 >= readers.slots as f64 * CROWDED;
    let full = if crowded { "; more readers will soon fail with MDB_READERS_FULL" } else { "" };
    if readers.stale > 0 {
        let text = format!("{readers}: no writer can reuse what was freed since those that are gone began{full}");
        return hurts("readers", text, command::clear_stale_readers(&facts.location));
    }
    if crowded {
        return hurts("readers", format!("{readers}{full}"), command::replicate(&facts.location, facts.unvouched));
    }
    fine("readers", readers.to_string())
}

fn map_size(facts: &Facts) -> Finding {
    let (map, used) = (facts.info.map_size, facts.info.used_bytes);
    let text = format!("{} for {} in use", Bytes(map), Bytes(used));
    if used as f64 > map as f64 * NEARLY_FULL {
        let text = format!(
            "{text}: readers do not mind, a writer will soon fail with MDB_MAP_FULL unless it asks for a larger map \
             (map_size); or have it in a copy"
        );
        let named = facts.info.databases.iter().any(|database| database.name.is_some());
        return hurts(
            "map size",
            text,
            command::copy_with_room(&facts.location, named, (2 * used).next_power_of_two()),
        );
    }
    fine("map size", text)
}

fn free_pages(facts: &Facts) -> Finding {
    let free = facts.info.free_pages * facts.info.page_size;
    let text = format!("{} free of {}", Bytes(free), Bytes(facts.info.used_bytes));
    if free * 4 > facts.info.used_bytes && free > 1 << 20 {
        let text = format!("{text}: read-ahead reads them, too");
        return hurts("free pages", text, command::copy_in_order(&facts.location));
    }
    fine("free pages", text)
}

#[cfg(test)]
mod tests;
