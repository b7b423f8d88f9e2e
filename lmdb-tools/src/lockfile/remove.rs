//! `lockfile remove`: deleting what replicate made.

use std::fs::{self, File};
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};

use super::replica::{Replica, rank_of};
use super::replicate::{OUT_NOTE, UNFINISHED};
use super::{Error, replica::NOTE};

/// Deletes the replicas in `out`, and `out` itself if replicate made it and nothing else is left. Returns how many.
///
/// All are looked at before the first is deleted: an error leaves everything in place.
///
/// # Errors
/// A replica that is in use, or to which somebody added something.
pub fn remove(out: &Path) -> Result<usize, Error> {
    let mut replicas = Vec::new();
    let mut unfinished = Vec::new();
    for entry in fs::read_dir(out).map_err(Error::at(out))? {
        let entry = entry.map_err(Error::at(out))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if rank_of(name).is_some() {
            match Replica::at(&entry.path()) {
                Ok(replica) => replicas.push(replica),
                // Not ours, then: it stays, and so does OUT.
                Err(Error::InTheWay { .. }) => continue,
                Err(error) => return Err(error),
            }
        } else if name.starts_with(UNFINISHED) {
            unfinished.extend(Replica::at(&entry.path()).ok());
        }
    }
    replicas.iter().try_for_each(may_go)?;
    for replica in replicas.iter().chain(&unfinished) {
        delete(replica)?;
    }
    let note = out.join(OUT_NOTE);
    let is_empty =
        || fs::read_dir(out).is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == OUT_NOTE));
    if note.exists() && is_empty() {
        fs::remove_file(&note).map_err(Error::at(&note))?;
        fs::remove_dir(out).map_err(Error::at(out))?;
    }
    Ok(replicas.len())
}

fn may_go(replica: &Replica) -> Result<(), Error> {
    for entry in fs::read_dir(&replica.directory).map_err(Error::at(&replica.directory))?.flatten() {
        if !replica.contents().contains(&entry.file_name()) {
            let what = entry.file_name().display().to_string();
            return Err(Error::Foreign { path: replica.directory.clone(), what });
        }
    }
    if is_locked(&replica.lock()) {
        return Err(Error::InUse { path: replica.directory.clone() });
    }
    Ok(())
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

fn delete(replica: &Replica) -> Result<(), Error> {
    // The note goes last: what is interrupted here is still known as ours.
    for name in replica.contents().into_iter().filter(|name| name != NOTE) {
        let path = replica.directory.join(name);
        fs::remove_file(&path).map_err(Error::at(&path))?;
    }
    let note = replica.directory.join(NOTE);
    fs::remove_file(&note).map_err(Error::at(&note))?;
    fs::remove_dir(&replica.directory).map_err(Error::at(&replica.directory))
}
