//! The file that a command writes instead of stdout: never one of the database's, and complete or not there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::NamedTempFile;

use super::{Error, Location};

/// A file to be written.
pub(super) enum Output {
    /// Written aside, in the directory of `place`, which it replaces at the end.
    Aside { file: NamedTempFile, place: PathBuf },
    /// A device or a pipe: there is nothing to replace.
    InPlace { file: File, place: PathBuf },
}

impl Output {
    /// Begins to write what is to become `path`.
    ///
    /// # Errors
    /// When that is a file of the database itself, or cannot be written.
    pub fn create(path: &Path, database: &Location) -> Result<Self, Error> {
        let cannot = |error| Error::Write { path: path.into(), error };
        // Through a symbolic link, as opening it would.
        let place = fs::canonicalize(path).or_else(|_| beside(path)).map_err(cannot)?;
        if is_of(&place, database) {
            return Err(Error::OutputIsDatabase { path: path.into(), database: database.path.clone() });
        }
        let there = fs::metadata(&place).ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(&place).map_err(cannot)?;
            return Ok(Self::InPlace { file, place });
        }
        // What is there keeps its mode; a new file has that of any other, less the umask.
        let mode = there.map_or(0o666, |there| there.mode() & 0o777);
        let file = tempfile::Builder::new()
            .prefix(".precache-map-")
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(place.parent().unwrap_or(Path::new("/")))
            .map_err(cannot)?;
        Ok(Self::Aside { file, place })
    }

    /// What the process that writes it is given.
    pub fn stdio(&self) -> Result<Stdio, Error> {
        let (file, place) = match self {
            Self::Aside { file, place } => (file.as_file(), place),
            Self::InPlace { file, place } => (file, place),
        };
        file.try_clone().map(Stdio::from).map_err(|error| Error::Write { path: place.clone(), error })
    }

    /// Puts it into its place. Without this, nothing is left of it.
    pub fn keep(self) -> Result<(), Error> {
        match self {
            Self::InPlace { .. } => Ok(()),
            Self::Aside { file, place } => match file.persist(&place) {
                Ok(_) => Ok(()),
                Err(error) => Err(Error::Write { path: place, error: error.error }),
            },
        }
    }
}

/// The path of a file that does not exist yet, by way of its directory, which does.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(fs::canonicalize(directory.unwrap_or(Path::new(".")))?.join(name))
}

/// Whether `place` is the data file or the lock file, by whatever name; or would be the lock file once it exists.
fn is_of(place: &Path, database: &Location) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let output = identity(place);
    [&database.data, &database.lock]
        .into_iter()
        .any(|own| output.is_some() && output == identity(own) || beside(own).is_ok_and(|own| own == place))
}
