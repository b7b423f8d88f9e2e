//! Files that appear as a whole, and of which nothing is left behind by a death before that.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Who may do what with the file.
#[derive(Clone, Copy)]
pub enum Access {
    /// As far as the umask lets them.
    Masked(u32),
    Exactly(u32),
}

impl Access {
    fn masked(self) -> u32 {
        let (Self::Masked(mode) | Self::Exactly(mode)) = self;
        mode
    }

    fn fill(self, file: &mut File, content: &[u8]) -> io::Result<()> {
        file.write_all(content)?;
        match self {
            Self::Masked(_) => Ok(()),
            Self::Exactly(mode) => file.set_permissions(Permissions::from_mode(mode)),
        }
    }
}

/// Writes the file under no name, then gives it its own, in place of what is there (open(2), `O_TMPFILE`).
///
/// # Errors
/// What the file system says.
pub fn publish(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match nameless(folder, access) {
        Ok(mut file) => {
            access.fill(&mut file, content)?;
            match name(&file, path) {
                Err(Errno::EEXIST) => replace(&file, folder, path),
                named => Ok(named?),
            }
        }
        // Not every file system has it (NFS, FUSE), nor every container /proc.
        Err(_) => {
            let permissions = Permissions::from_mode(access.masked());
            let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
            access.fill(file.as_file_mut(), content)?;
            Ok(file.persist(path).map(drop)?)
        }
    }
}

fn nameless(folder: &Path, access: Access) -> io::Result<File> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).mode(access.masked()).open(folder)?;
    fs::metadata(by_number(&file)).map(|_| file)
}

fn by_number(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn name(file: &File, path: &Path) -> Result<(), Errno> {
    linkat(AT_FDCWD, by_number(file).as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW)
}

/// Nothing gives a name that is taken: another one first, for a moment.
fn replace(file: &File, folder: &Path, path: &Path) -> io::Result<()> {
    let named = |other: &Path| name(file, other).map_err(io::Error::from);
    let temporary = tempfile::Builder::new().make_in(folder, named)?;
    Ok(temporary.into_temp_path().persist(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// New, and in place of another.
    #[test]
    fn all_of_it_is_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        for content in ["first", "second"] {
            publish(&path, content.as_bytes(), Access::Exactly(0o604)).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o604);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_file_that_nobody_named_goes_with_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = nameless(folder.path(), Access::Masked(0o600)).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
