//! Where a database's files are: liblmdb's two conventions, told apart by what is there.

use std::fs;
use std::path::{Path, PathBuf};

use super::Error;

/// The files of one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// What a program hands to `mdb_env_open`.
    pub path: PathBuf,
    pub data: PathBuf,
    /// May not exist: liblmdb makes it when a program first opens the database with locks.
    pub lock: PathBuf,
    /// A directory with `data.mdb` and `lock.mdb`, or else (MDB_NOSUBDIR) a file `x` with `x-lock` beside it.
    pub subdir: bool,
}

impl Location {
    /// Finds the database at `path`: its directory, its data file, or `DIR/data.mdb`, which means `DIR`.
    ///
    /// # Errors
    /// When there is no data file at that place.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let metadata = fs::metadata(path).map_err(|error| Error::NotFound { path: path.into(), error })?;
        if metadata.is_dir() {
            let data = path.join("data.mdb");
            return match fs::metadata(&data) {
                Ok(_) => Ok(Self::in_directory(path)),
                Err(error) => Err(Error::NoDataFile { path: path.into(), error }),
            };
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if path.file_name().is_some_and(|name| name == "data.mdb") && !beside(path).exists() {
            return Ok(Self::in_directory(directory.unwrap_or(Path::new("."))));
        }
        Ok(Self { path: path.into(), data: path.into(), lock: beside(path), subdir: false })
    }

    /// Looks at the beginning of the data file.
    ///
    /// # Errors
    /// What it is instead of an LMDB 0.9 data file of this machine's byte order.
    pub fn check(&self) -> Result<(), Error> {
        super::header::check(&self.data)
    }

    /// How much of the data file there is, and how much there should be by its header, in bytes; none where nothing is known
    /// to be missing. Pages that were never written may be missing at the end of a healthy file, too.
    pub fn shortfall(&self) -> Option<(u64, u64)> {
        super::header::shortfall(&self.data)
    }

    fn in_directory(directory: &Path) -> Self {
        Self {
            path: directory.into(),
            data: directory.join("data.mdb"),
            lock: directory.join("lock.mdb"),
            subdir: true,
        }
    }
}

/// The lock file of a database that is a file by itself: liblmdb appends `-lock` to the name.
fn beside(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push("-lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_conventions() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("db")).unwrap();
        assert!(matches!(Location::of(&at("db")), Err(Error::NoDataFile { .. })));
        assert!(matches!(Location::of(&at("nothing")), Err(Error::NotFound { .. })));

        fs::write(at("db/data.mdb"), "").unwrap();
        let directory = Location::of(&at("db")).unwrap();
        assert_eq!((directory.lock.clone(), directory.subdir), (at("db/lock.mdb"), true));
        assert_eq!(Location::of(&at("db/data.mdb")).unwrap(), directory);

        fs::write(at("train.mdb"), "").unwrap();
        let file = Location::of(&at("train.mdb")).unwrap();
        assert_eq!((file.lock, file.subdir), (at("train.mdb-lock"), false));
    }

    #[test]
    fn a_file_named_data_mdb_with_its_own_lock_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data.mdb");
        fs::write(&data, "").unwrap();
        fs::write(dir.path().join("data.mdb-lock"), "").unwrap();
        assert!(!Location::of(&data).unwrap().subdir);
    }
}
