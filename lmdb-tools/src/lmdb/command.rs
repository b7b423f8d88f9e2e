//! Commands for a database, to be printed: they depend on which of liblmdb's two conventions it follows.

use super::Location;
use crate::shell::quoted;

/// Writes the database anew in key order and without free pages, as NEW.
pub fn copy_in_order(location: &Location) -> String {
    let path = quoted(&location.path);
    match location.subdir {
        true => format!("mkdir NEW && mdb_copy -c {path} NEW"),
        false => format!("mdb_copy -n -c {path} NEW"),
    }
}

/// Frees the slots of readers that are gone.
pub fn clear_stale_readers(location: &Location) -> String {
    let no_subdir = if location.subdir { "" } else { " -n" };
    format!("mdb_stat{no_subdir} -rr {}", quoted(&location.path))
}

/// Gives each reader a lock file of its own.
pub fn replicate(location: &Location) -> String {
    format!("precache lockfile replicate {} /tmp/replicas -n PROCESSES", quoted(&location.path))
}
