//! Access control lists as the raw attribute that holds them, for builds without libacl. It is the same on all file systems
//! that keep lists as Linux's own do (acl(5)).

use std::io;
use std::path::Path;

use super::ACCESS;

/// Gives `to` the access control list of `from`, where that has one.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match xattr::get_deref(from, ACCESS) {
        Ok(Some(list)) => xattr::set_deref(to, ACCESS, &list).map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => super::no_lists(),
            _ => error,
        }),
        Ok(None) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        Err(error) => Err(error),
    }
}
