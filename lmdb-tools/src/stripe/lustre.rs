//! What the Lustre client of this machine tells: of one file, and of the file system.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use super::lov::Layout;

/// The present layout, from the attribute `lustre.lov`; what keeps it from being known is told.
pub fn present(file: &Path) -> Option<Layout> {
    match xattr::get_deref(file, "lustre.lov") {
        Ok(attribute) => layout(file, &attribute?),
        // A file that is yet to be made, and another file system than the one that advice is wanted for.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP)) => None,
        Err(error) => {
            warn(file, &error);
            None
        }
    }
}

/// The layout that a value of the attribute describes.
pub fn layout(file: &Path, attribute: &[u8]) -> Option<Layout> {
    Layout::parse(attribute).inspect_err(|error| warn(file, error)).ok()
}

fn warn(file: &Path, why: &dyn Display) {
    eprintln!("warning: {}: its present layout is not taken into account: {why}", file.display());
}

/// The number of targets that the Lustre client of this machine knows, where it is mounted once.
pub fn known_targets() -> Option<u32> {
    let clients = ["/sys/fs/lustre/lov", "/proc/fs/lustre/lov"].into_iter().filter_map(|dir| fs::read_dir(dir).ok());
    let mut counts = clients
        .flatten()
        .flatten()
        .filter_map(|client| fs::read_to_string(client.path().join("numobd")).ok()?.trim().parse::<u32>().ok());
    match (counts.next(), counts.next()) {
        (Some(count), None) if count > 0 => Some(count),
        _ => None,
    }
}
