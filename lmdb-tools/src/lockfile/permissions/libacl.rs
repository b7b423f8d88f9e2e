//! Access control lists by way of libacl.

use std::io;
use std::path::Path;

use posix_acl::{ACLError, PosixACL};

/// Gives `to` the access control list of `from`, where that has one.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let refused = |error: &ACLError| error.as_io_error().and_then(io::Error::raw_os_error);
    let mut list = match PosixACL::read_acl(from) {
        // A file without a list has three entries, which are its mode.
        Ok(list) if list.entries().len() > 3 => list,
        Ok(_) => return Ok(()),
        Err(error) if refused(&error) == Some(libc::EOPNOTSUPP) => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    list.write_acl(to).map_err(|error| match refused(&error) {
        Some(libc::EOPNOTSUPP) => super::no_lists(),
        _ => io::Error::other(error),
    })
}
