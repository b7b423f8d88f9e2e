//! One replica: a directory with a lock file, a link to the data file, and a note of who made it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::opened::{Opened, check_owner};
use super::{Error, permissions};
use crate::lmdb::Location;

/// Tells a directory that replicate made from one that somebody else did: the first file to be made in it, the last to be
/// deleted. Holds the names of the lock file and of the link, and the path of the data file, each but the last ended by a
/// zero byte, which no path can hold.
pub(super) const NOTE: &str = ".precache-replica";
/// Longer than any note: two names and a path.
const LONGEST_NOTE: u64 = 64 << 10;

/// A replica that replicate made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    pub directory: PathBuf,
    /// The shared data file, where the link points.
    pub data: PathBuf,
    /// The name of the link: `data.mdb`, or that of the data file of an MDB_NOSUBDIR database.
    pub link: OsString,
    /// The name of the lock file that liblmdb looks for beside it.
    lock: OsString,
}

/// The directory of a rank.
pub(super) fn directory(out: &Path, rank: u32) -> PathBuf {
    out.join(format!("rank-{rank:04}"))
}

/// The rank whose directory has this name.
pub(super) fn rank_of(name: &str) -> Option<u32> {
    let rank = name.strip_prefix("rank-")?.parse().ok()?;
    (directory(Path::new(""), rank).as_os_str() == name).then_some(rank)
}

impl Replica {
    /// The replica of `rank` in `out`.
    ///
    /// # Errors
    /// When there is none, or something else in its place, or one that somebody damaged, or may have put there for this
    /// process to fall into, or whose lock file this user may not use.
    pub fn find(out: &Path, rank: u32) -> Result<Self, Error> {
        let directory = directory(out, rank);
        if fs::symlink_metadata(&directory).is_err() {
            let names = fs::read_dir(out).map_err(Error::at(out))?.flatten().map(|entry| entry.file_name());
            let known = names.filter(|name| name.to_str().is_some_and(|name| rank_of(name).is_some())).count();
            return Err(Error::NoSuchRank { out: out.into(), rank, known, wanted: rank + 1 });
        }
        let replica = Self::at(&directory)?;
        check_owner(out, &replica.data)?;
        replica.check()?;
        Ok(replica)
    }

    /// The replica that `directory` is, by its note alone: what else was in it may be gone.
    ///
    /// # Errors
    /// When replicate did not make it.
    pub fn at(directory: &Path) -> Result<Self, Error> {
        let in_the_way = || Error::InTheWay { path: directory.into() };
        let is_directory = fs::symlink_metadata(directory).map_err(Error::at(directory))?.is_dir();
        if !is_directory {
            return Err(in_the_way());
        }
        let note = directory.join(NOTE);
        let note = match read_note(&note) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(in_the_way()),
            read => read.map_err(Error::at(note))?,
        };
        let mut fields = note.splitn(3, |&byte| byte == 0).map(|field| OsString::from_vec(field.to_vec()));
        let is_name = |name: &OsString| Path::new(name).file_name() == Some(name);
        match (fields.next(), fields.next(), fields.next()) {
            (Some(lock), Some(link), Some(data)) if is_name(&lock) && is_name(&link) => {
                Ok(Self { directory: directory.into(), data: data.into(), link, lock })
            }
            _ => Err(in_the_way()),
        }
    }

    /// Whether all is there that replicate made, and a reader of this user may use it.
    ///
    /// # Errors
    /// What is missing, or whose it is.
    pub(super) fn check(&self) -> Result<(), Error> {
        check_owner(&self.directory, &self.data)?;
        let lacks = |what: &OsString| Err(Error::Incomplete { path: self.directory.clone(), what: what.into() });
        if !self.has_link() {
            return lacks(&self.link);
        }
        let lock = self.lock();
        match fs::symlink_metadata(&lock) {
            Ok(there) if there.is_file() => match access(&lock, AccessFlags::R_OK | AccessFlags::W_OK) {
                Ok(()) => Ok(()),
                Err(_) => Err(Error::NotUsable { path: lock, owner: there.uid() }),
            },
            _ => lacks(&self.lock),
        }
    }

    /// The link is there, and leads where replicate made it lead.
    pub(super) fn has_link(&self) -> bool {
        fs::read_link(self.directory.join(&self.link)).is_ok_and(|target| target == self.data)
    }

    /// Fills an empty directory. The caller makes it visible under its name when it is complete.
    pub(super) fn fill(directory: &Path, original: &Location, data: &Path) -> io::Result<()> {
        let link = if original.subdir { "data.mdb".as_ref() } else { data.file_name().unwrap_or_default() };
        let lock = Self::lock_name(link, original.subdir);
        let note = [lock.as_bytes(), link.as_bytes(), data.as_os_str().as_bytes()].join(&0);
        // First, so that whatever comes of the rest is known as ours. Whoever may use the replica reads it.
        let mut made = Opened::create_new(&directory.join(NOTE))?;
        made.file.write_all(&note)?;
        permissions::set(&made.path, 0o644)?;
        std::os::unix::fs::symlink(data, directory.join(link)).map_err(|error| {
            io::Error::other(format!(
                "cannot make a symbolic link to the data file ({error}); choose an OUT on a file system that has them, in \
                 /tmp for example"
            ))
        })?;
        // Empty: the first to open it, who holds it alone, writes its header (mdb.c, `mdb_env_setup_locks`).
        let model = if original.lock.exists() { &original.lock } else { data };
        permissions::copy(model, &Opened::create_new(&directory.join(lock))?.path, permissions::LOCK_FILE)
    }

    /// liblmdb's name for the lock file that belongs to a data file of this name.
    fn lock_name(link: &std::ffi::OsStr, subdir: bool) -> OsString {
        if subdir {
            return "lock.mdb".into();
        }
        let mut name = link.to_owned();
        name.push("-lock");
        name
    }

    pub fn lock(&self) -> PathBuf {
        self.directory.join(&self.lock)
    }

    /// What a program is to open: the directory, or (MDB_NOSUBDIR) the link in it.
    pub fn to_open(&self) -> PathBuf {
        if self.lock == "lock.mdb" { self.directory.clone() } else { self.directory.join(&self.link) }
    }

    /// All that replicate put there.
    pub(super) fn contents(&self) -> [OsString; 3] {
        [self.link.clone(), self.lock.clone(), NOTE.into()]
    }
}

/// Only a file of its own: a pipe in its place would never end.
fn read_note(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let mut note = Vec::new();
    if file.metadata()?.is_file() {
        file.take(LONGEST_NOTE).read_to_end(&mut note)?;
    }
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ranks() {
        assert_eq!(directory(Path::new("out"), 7), Path::new("out/rank-0007"));
        assert_eq!(rank_of("rank-0007"), Some(7));
        assert_eq!(rank_of("rank-12345"), Some(12345));
        for other in ["rank-7", "rank-", "rank-0007x", "ranks", "rank-+007", "rank-00007"] {
            assert_eq!(rank_of(other), None, "{other}");
        }
    }
}
