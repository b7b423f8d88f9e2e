//! Making one file as accessible as another: owner, mode, access control list.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::unistd::{Gid, Uid, chown};

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

/// Gives `to` the owner, mode and access control list of `from`, as far as this user may.
pub fn copy(from: &Path, to: &Path, mode: Mode) -> io::Result<()> {
    let original = fs::metadata(from)?;
    for (uid, gid) in [(Some(original.uid()), None), (None, Some(original.gid()))] {
        match chown(to, uid.map(Uid::from_raw), gid.map(Gid::from_raw)) {
            // EINVAL: an owner that a user namespace has no number for.
            Ok(()) | Err(nix::Error::EPERM | nix::Error::EINVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    copy_acl(from, to)?;
    // After the list, of which the group's bits are the mask.
    fs::set_permissions(to, fs::Permissions::from_mode(original.mode() & mode.at_most | mode.always))
}

#[cfg(feature = "acl")]
fn copy_acl(from: &Path, to: &Path) -> io::Result<()> {
    use posix_acl::PosixACL;

    let refused = |error: &posix_acl::ACLError| error.as_io_error().and_then(io::Error::raw_os_error);
    let mut list = match PosixACL::read_acl(from) {
        // A file without a list has three entries, which are its mode.
        Ok(list) if list.entries().len() > 3 => list,
        Ok(_) => return Ok(()),
        Err(error) if refused(&error) == Some(libc::EOPNOTSUPP) => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    list.write_acl(to).map_err(|error| match refused(&error) {
        Some(libc::EOPNOTSUPP) => no_lists(to),
        _ => io::Error::other(error),
    })
}

/// The attribute that holds the list is the same on all file systems that keep it as Linux's own do (acl(5)).
#[cfg(not(feature = "acl"))]
fn copy_acl(from: &Path, to: &Path) -> io::Result<()> {
    const ATTRIBUTE: &str = "system.posix_acl_access";
    match xattr::get(from, ATTRIBUTE) {
        Ok(Some(list)) => xattr::set(to, ATTRIBUTE, &list).map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => no_lists(to),
            _ => error,
        }),
        Ok(None) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        Err(error) => Err(error),
    }
}

fn no_lists(to: &Path) -> io::Error {
    io::Error::other(format!(
        "the file system of {} keeps no access control lists, and the original has one; choose an OUT on another",
        to.display()
    ))
}
