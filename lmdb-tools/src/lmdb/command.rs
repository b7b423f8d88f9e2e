//! Commands for a database, to be printed: they depend on which of liblmdb's two conventions it follows.

use super::Location;
use crate::shell::quoted;

/// Writes the database anew in key order and without free pages, as NEW.
pub fn copy_in_order(location: &Location) -> String {
    let path = quoted(&location.path);
    if location.subdir { format!("mkdir NEW && mdb_copy -c {path} NEW") } else { format!("mdb_copy -n -c {path} NEW") }
}

/// Writes the database anew as NEW, with a map of `map_size` bytes; `named` where it holds several, by their names.
pub fn copy_with_room(location: &Location, named: bool, map_size: u64) -> String {
    let (make, no_subdir) = if location.subdir { ("mkdir NEW && ", "") } else { ("", " -n") };
    let all = if named { " -a" } else { "" };
    let path = quoted(&location.path);
    format!("{make}mdb_dump{no_subdir}{all} {path} | sed 's/^mapsize=.*/mapsize={map_size}/' | mdb_load{no_subdir} NEW")
}

/// Frees the slots of readers that are gone.
pub fn clear_stale_readers(location: &Location) -> String {
    let no_subdir = if location.subdir { "" } else { " -n" };
    format!("mdb_stat{no_subdir} -rr {}", quoted(&location.path))
}

/// Gives each reader a lock file of its own, in a place where nobody else can put anything. `assume` where it cannot be
/// known whether anybody writes the database.
pub fn replicate(location: &Location, assume: bool) -> String {
    let assume = if assume { " --assume-read-only # if you know that nobody writes it" } else { "" };
    let path = quoted(&location.path);
    format!("OUT=$(mktemp -d) && precache lockfile replicate {path} \"$OUT\"/replicas -n PROCESSES{assume}")
}
