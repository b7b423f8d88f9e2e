//! Files by their descriptors: what somebody puts in their place meanwhile is not touched.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::Error;

/// An open file or directory, and a path that leads to it whatever has become of its name: a link of /proc, which the kernel
/// resolves to the open file itself (proc(5)).
pub(super) struct Opened {
    pub file: File,
    pub path: PathBuf,
}

impl Opened {
    /// Opens a directory, and nothing else that has its name.
    pub fn directory(path: &Path) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        Ok(Self::of(File::options().read(true).custom_flags(flags).open(path)?))
    }

    /// Makes a file where there is nothing.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Ok(Self::of(File::create_new(path)?))
    }

    fn of(file: File) -> Self {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Self { file, path }
    }
}

/// Refuses what somebody else could change, or has put there for others to fall into: a directory that belongs neither to
/// this user nor to root, nor to whom the database's data file or directory belongs, who can change that, too.
pub(super) fn check_owner(path: &Path, data: &Path) -> Result<(), Error> {
    let owner = |path: &Path| fs::metadata(path).map(|found| found.uid());
    // By itself, and where it leads if it is a symbolic link.
    let owners =
        fs::symlink_metadata(path).and_then(|itself| Ok([itself.uid(), owner(path)?])).map_err(Error::at(path))?;
    let originals = [Some(data), data.parent()].into_iter().flatten().filter_map(|path| owner(path).ok());
    let trusted: Vec<_> = originals.chain([0, geteuid().as_raw()]).collect();
    match owners.into_iter().find(|owner| !trusted.contains(owner)) {
        Some(owner) => Err(Error::Stranger { path: path.into(), owner }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_name_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("ours")).unwrap();
        fs::create_dir(at("theirs")).unwrap();
        let ours = Opened::directory(&at("ours")).unwrap();
        fs::rename(at("ours"), at("moved")).unwrap();
        std::os::unix::fs::symlink(at("theirs"), at("ours")).unwrap();
        let made = Opened::create_new(&ours.path.join("file")).unwrap();
        fs::remove_file(at("moved/file")).unwrap();
        std::os::unix::fs::symlink(at("theirs"), at("moved/file")).unwrap();
        super::super::permissions::set(&made.path, 0o640).unwrap();
        assert_eq!(made.file.metadata().unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::metadata(at("theirs")).unwrap().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(at("theirs")).unwrap().count(), 0);
        assert!(Opened::directory(&at("ours")).is_err(), "a link");
    }
}
