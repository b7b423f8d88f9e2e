//! `lockfile replicate`: making the replicas, by any number of processes at once.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::opened::{Opened, check_owner};
use super::replica::{Replica, directory};
use super::{Error, permissions, processes};
use crate::filesystem::Kind;
use crate::lmdb::Location;

/// Marks an OUT that replicate made, so that remove may delete it.
pub(super) const OUT_NOTE: &str = ".precache-replicas";

/// Prefix of directories that are not complete yet.
pub(super) const UNFINISHED: &str = ".precache-unfinished-";

/// What can be known about writers of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Safety {
    /// Nobody who could be looked at writes it, and everybody could be.
    NoWriter,
    /// Why it cannot be known.
    Unknown(String),
}

impl Safety {
    /// Looks at this machine's processes and at the file system.
    ///
    /// # Errors
    /// When a writer is found, or /proc cannot be read.
    pub fn of(data: &Path) -> Result<Self, Error> {
        let scan = processes::scan(data).map_err(Error::at(data))?;
        let doubts = scan.doubts();
        if let Some(writer) = scan.writers.into_iter().next() {
            return Err(Error::Writer { path: data.into(), pid: writer.pid, command: writer.command });
        }
        let kind = Kind::of(data).map_err(Error::at(data))?;
        let mut why = Vec::new();
        if let Some(by) = kind.shared_by() {
            why.push(format!("other machines may use this file system ({by})"));
        }
        why.extend(doubts);
        Ok(if why.is_empty() { Self::NoWriter } else { Self::Unknown(why.join(", and ")) })
    }
}

/// Makes the replicas of ranks 0 to `count` - 1 of the database `db` in `out`; those that are there already stay.
///
/// # Errors
/// A writer; doubt, unless `assume_read_only`; something else where a replica belongs, or what a stranger made there, or one
/// that this user may not use; the file system's own errors.
pub fn replicate(db: &Path, out: &Path, count: u32, assume_read_only: bool) -> Result<(), Error> {
    let location = Location::of(db)?;
    location.check()?;
    // The link must lead there from wherever the replica lies.
    let data = fs::canonicalize(&location.data).map_err(Error::at(&location.data))?;
    if let Safety::Unknown(why) = Safety::of(&data)?
        && !assume_read_only
    {
        return Err(Error::CannotKnow { path: data, why });
    }
    make_out(out, &data)?;
    (0..count).try_for_each(|rank| make(&location, &data, out, rank))
}

fn make_out(out: &Path, data: &Path) -> Result<(), Error> {
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).map_err(Error::at(parent))?;
    }
    match fs::create_dir(out) {
        Ok(()) => furnish_out(out, data).map_err(Error::at(out)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && out.is_dir() => check_owner(out, data),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::OutIsAFile { path: out.into() }),
        Err(error) => Err(Error::at(out)(error)),
    }
}

fn furnish_out(out: &Path, data: &Path) -> io::Result<()> {
    let out = Opened::directory(out)?;
    File::create_new(out.path.join(OUT_NOTE))?;
    open_up(&out, data)
}

/// Makes one replica aside and renames it into place: a directory of that name is complete or not there.
fn make(location: &Location, data: &Path, out: &Path, rank: u32) -> Result<(), Error> {
    let place = directory(out, rank);
    if fs::symlink_metadata(&place).is_ok() {
        return same(&place, data);
    }
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(out).map_err(Error::at(out))?;
    let furnish = || {
        let opened = Opened::directory(unfinished.path())?;
        Replica::fill(&opened.path, location, data)?;
        open_up(&opened, data)
    };
    furnish().map_err(Error::at(unfinished.path()))?;
    // rename(2) replaces an empty directory only: whoever comes second, with one that is filled, is told.
    match fs::rename(unfinished.path(), &place) {
        Ok(()) => {
            // Nothing is left under the old name.
            let _ = unfinished.keep();
            Ok(())
        }
        Err(_) if fs::symlink_metadata(&place).is_ok() => same(&place, data),
        Err(error) => Err(Error::Io { path: place, error }),
    }
}

/// Lets in whoever may enter the database's own directory, whatever the umask is; a temporary directory is closed to all but
/// its owner anyway.
fn open_up(directory: &Opened, data: &Path) -> io::Result<()> {
    permissions::copy(data.parent().unwrap_or(Path::new("/")), &directory.path, permissions::DIRECTORY)
}

fn same(place: &PathBuf, data: &Path) -> Result<(), Error> {
    let replica = Replica::at(place)?;
    if replica.data == data {
        return replica.check();
    }
    Err(Error::OfAnother { path: place.into(), other: replica.data, data: data.into() })
}
