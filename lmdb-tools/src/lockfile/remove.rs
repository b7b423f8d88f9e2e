//! `lockfile remove`: deleting what replicate made.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};

use super::Error;
use super::opened::Opened;
use super::replica::{NOTE, Replica, rank_of};
use super::replicate::{OUT_NOTE, UNFINISHED};

/// Deletes the replicas in `out`, and `out` itself if replicate made it and nothing else is left. Returns how many; none
/// where `out` does not exist (any more).
///
/// All are looked at before the first is deleted: one that may not go keeps the others. An error of the file system may
/// come half-way; what is left is still known as ours, and the next call deletes it. Any number may run at once.
///
/// # Errors
/// A replica that is in use, or to which somebody added something; an `out` with nothing of ours in it.
pub fn remove(out: &Path) -> Result<usize, Error> {
    let entries = match fs::read_dir(out) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(Error::at(out))?,
    };
    let (mut replicas, mut unfinished, mut others) = (Vec::new(), Vec::new(), 0);
    for entry in entries {
        let entry = entry.map_err(Error::at(out))?;
        let name = entry.file_name();
        match name.to_str() {
            Some(name) if rank_of(name).is_some() => match Replica::at(&entry.path()) {
                Ok(replica) => replicas.push(replica),
                // Not ours, then: it stays, and so does OUT.
                Err(Error::InTheWay { .. }) => others += 1,
                // Another remove was faster.
                Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            },
            Some(name) if name.starts_with(UNFINISHED) => unfinished.push(entry.path()),
            Some(OUT_NOTE) => {}
            _ => others += 1,
        }
    }
    let note = out.join(OUT_NOTE);
    if replicas.is_empty() && unfinished.is_empty() && others > 0 && !note.exists() {
        return Err(Error::NotOut { path: out.into() });
    }
    replicas.iter().try_for_each(may_go)?;
    let mut removed = 0;
    for replica in &replicas {
        if let Some(aside) = set_aside(out, replica)? {
            removed += 1;
            unfinished.push(aside);
        }
    }
    unfinished.iter().try_for_each(|directory| delete(directory))?;
    let only_note = || {
        fs::read_dir(out).is_ok_and(|mut left| left.all(|entry| entry.is_ok_and(|entry| entry.file_name() == OUT_NOTE)))
    };
    if note.exists() && only_note() {
        gone(&note, fs::remove_file(&note))?;
        gone(out, fs::remove_dir(out))?;
    }
    Ok(removed)
}

fn may_go(replica: &Replica) -> Result<(), Error> {
    let foreign =
        |what: &Path| Err(Error::Foreign { path: replica.directory.clone(), what: what.display().to_string() });
    let Ok(entries) = fs::read_dir(&replica.directory) else { return Ok(()) };
    for entry in entries.flatten() {
        if !replica.contents().contains(&entry.file_name()) {
            return foreign(Path::new(&entry.file_name()));
        }
    }
    // What took the place of the link is not ours. One look: another remove may be at it.
    match fs::read_link(replica.directory.join(&replica.link)) {
        Ok(target) if target == replica.data => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        _ => return foreign(Path::new(&replica.link)),
    }
    if is_locked(&replica.lock()) {
        return Err(Error::InUse { path: replica.directory.clone() });
    }
    Ok(())
}

/// Gives a replica the name of one that is not complete, in one step; none where another remove was faster.
fn set_aside(out: &Path, replica: &Replica) -> Result<Option<PathBuf>, Error> {
    let name = replica.directory.file_name().unwrap_or_default().display();
    let mut number = 0;
    loop {
        let aside = out.join(format!("{UNFINISHED}{}-{number}-{name}", std::process::id()));
        match fs::rename(&replica.directory, &aside) {
            Ok(()) => return Ok(Some(aside)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // What a remove of the same number left that was killed.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => number += 1,
            Err(error) => return Err(Error::at(&replica.directory)(error)),
        }
    }
}

/// Success, too, where there is nothing (any more).
fn gone(path: &Path, result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::at(path)(error)),
        _ => Ok(()),
    }
}

/// Whether a process has an environment open with this lock file: liblmdb keeps parts of it locked for as long.
fn is_locked(lock: &Path) -> bool {
    let mut whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let asked = File::open(lock).is_ok_and(|file| fcntl(&file, FcntlArg::F_GETLK(&mut whole)).is_ok());
    asked && whole.l_type != libc::F_UNLCK as libc::c_short
}

/// Deletes what replicate put into a directory that is out of the way, as far as it came with that, and the directory.
fn delete(directory: &Path) -> Result<(), Error> {
    match Opened::directory(directory) {
        Ok(opened) => empty(&opened.path)?,
        failed => return gone(directory, failed.map(drop)),
    }
    gone(directory, fs::remove_dir(directory))
}

/// Deletes what replicate put into a directory.
fn empty(directory: &Path) -> Result<(), Error> {
    // The trailing dot makes a directory of the link in /proc.
    if let Ok(replica) = Replica::at(&directory.join(".")) {
        let link = directory.join(&replica.link);
        if replica.has_link() {
            gone(&link, fs::remove_file(&link))?;
        }
        gone(&replica.lock(), fs::remove_file(replica.lock()))?;
    }
    // The note goes last: what is interrupted here is still known as ours. One that cannot be read stands alone.
    let note = directory.join(NOTE);
    gone(&note, fs::remove_file(&note))
}
