//! Making one file as accessible as another: owner, mode, access control list.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::unistd::{Gid, Uid, chown};

#[cfg(any(not(feature = "acl"), test))]
mod attribute;
#[cfg(feature = "acl")]
mod libacl;

#[cfg(not(feature = "acl"))]
use attribute::copy as copy_list;
#[cfg(feature = "acl")]
use libacl::copy as copy_list;

/// What of a mode is taken over.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// Only root can give files away: for anyone else a copy keeps its owner, who must be able to use it.
    always: u32,
    at_most: u32,
}

pub const LOCK_FILE: Mode = Mode { always: 0o600, at_most: 0o7777 };
/// Of a directory that holds a lock file, to which nobody needs to add anything.
pub const DIRECTORY: Mode = Mode { always: 0o700, at_most: 0o755 };

/// The extended attributes that hold the lists: who may use a file, and what a directory hands down to what is made in it.
const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// Gives `to` the owner, mode and access control list of `from`, as far as this user may. A default list, which only
/// concerns what is made in a directory later, is not taken over.
pub fn copy(from: &Path, to: &Path, mode: Mode) -> io::Result<()> {
    let original = fs::metadata(from)?;
    for (uid, gid) in [(Some(original.uid()), None), (None, Some(original.gid()))] {
        match chown(to, uid.map(Uid::from_raw), gid.map(Gid::from_raw)) {
            // EINVAL: an owner that a user namespace has no number for.
            Ok(()) | Err(nix::Error::EPERM | nix::Error::EINVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    remove_lists(to)?;
    copy_list(from, to)?;
    // After the list, of which the group's bits are the mask.
    fs::set_permissions(to, fs::Permissions::from_mode(original.mode() & mode.at_most | mode.always))
}

/// Gives `path` this mode, whatever the umask and the default list of its directory made of it.
pub fn set(path: &Path, mode: u32) -> io::Result<()> {
    remove_lists(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Removes the lists that came from the default list of the directory in which `path` was made (acl(5)).
fn remove_lists(path: &Path) -> io::Result<()> {
    [ACCESS, DEFAULT].into_iter().try_for_each(|list| match xattr::remove_deref(path, list) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::ENODATA | libc::EOPNOTSUPP)) => Err(error),
        _ => Ok(()),
    })
}

fn no_lists() -> io::Error {
    io::Error::other(
        "this file system keeps no access control lists, and the original has one; choose an OUT on another",
    )
}

#[cfg(test)]
mod tests;
