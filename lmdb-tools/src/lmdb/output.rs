//! The file that a command writes instead of stdout: never one of the database's, and complete or not there.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::ptr;

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{SigId, low_level};
use tempfile::TempPath;

use super::{Error, Location, NoTable, ReaderTable, header};

/// A file to be written.
pub(super) struct Output {
    file: File,
    place: PathBuf,
    aside: Option<Aside>,
}

/// Where a file is until it is complete; none of it is left if it never is.
enum Aside {
    /// Without a name in the directory of its place: the kernel deletes it with the last process that has it open.
    Nameless,
    /// Under a name, where the file system has no files without (NFS, FUSE).
    Named(Name),
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
            // A device or a pipe: there is nothing to replace.
            let file = File::options().write(true).open(&place).map_err(cannot)?;
            return Ok(Self { file, place, aside: None });
        }
        if there.is_some() && is_lmdb(&place) {
            return Err(Error::OutputIsLmdb { path: path.into() });
        }
        let (file, aside) = aside(&place).map_err(cannot)?;
        // What is there keeps its mode; a new file has that of any other, less the umask.
        if let Some(there) = there {
            file.set_permissions(fs::Permissions::from_mode(there.mode() & 0o777)).map_err(cannot)?;
        }
        Ok(Self { file, place, aside: Some(aside) })
    }

    /// What the process that writes it is given.
    pub fn stdio(&self) -> Result<Stdio, Error> {
        let clone = self.file.try_clone();
        clone.map(Stdio::from).map_err(|error| Error::Write { path: self.place.clone(), error })
    }

    /// Puts it into its place. Without this, nothing is left of it.
    pub fn keep(self) -> Result<(), Error> {
        let Some(aside) = self.aside else { return Ok(()) };
        // A network file system may find out only here that there is no room for what it took before.
        let kept = self.file.sync_all().and_then(|()| match aside {
            Aside::Named(name) => name.become_(&self.place),
            Aside::Nameless => put(&self.file, &self.place),
        });
        kept.map_err(|error| Error::Write { path: self.place, error })
    }
}

/// A new file in the directory of `place`.
fn aside(place: &Path) -> io::Result<(File, Aside)> {
    let directory = place.parent().unwrap_or(Path::new("/"));
    match File::options().write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(directory) {
        Ok(file) => Ok((file, Aside::Nameless)),
        // What file systems without such files say, and kernels without the flag: open(2).
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => {
            let (file, name) =
                Name::beside(place, |path| File::options().write(true).create_new(true).mode(0o666).open(path))?;
            Ok((file, Aside::Named(name)))
        }
        Err(error) => Err(error),
    }
}

/// Gives a file without a name that of `place`, whatever was there.
fn put(file: &File, place: &Path) -> io::Result<()> {
    // By way of /proc: by its descriptor alone only root may link a file (open(2), O_TMPFILE).
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |to: &Path| -> io::Result<()> {
        Ok(linkat(AT_FDCWD, from.as_str(), AT_FDCWD, to, AtFlags::AT_SYMLINK_FOLLOW)?)
    };
    match link(place) {
        // linkat(2) replaces nothing; rename(2) does.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Name::beside(place, link)?.1.become_(place),
        linked => linked,
    }
}

/// A name that does not stay: gone when dropped, and when a signal that can be caught ends this process.
struct Name {
    path: TempPath,
    _signals: Unlinking,
}

impl Name {
    /// Has `make` make something under a name of its own in the directory of `place`.
    fn beside<T>(place: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, Self)> {
        let mut signals = None;
        let directory = place.parent().unwrap_or(Path::new("/"));
        let made = tempfile::Builder::new().prefix(".precache-map-").make_in(directory, |path| {
            signals = Some(Unlinking::on_signals(path)?);
            make(path)
        })?;
        let (made, path) = made.into_parts();
        let signals = signals.expect("set before anything was made");
        Ok((made, Self { path, _signals: signals }))
    }

    fn become_(self, place: &Path) -> io::Result<()> {
        Ok(self.path.persist(place)?)
    }
}

/// Deletes a file when a signal ends this process.
struct Unlinking(Vec<SigId>);

impl Unlinking {
    fn on_signals(path: &Path) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let mut unlinking = Self(Vec::new());
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)) {
            let name = name.clone();
            let end = move || {
                // SAFETY: unlink(2) is async-signal-safe (signal-safety(7)); the name is a C string that this closure owns.
                unsafe { libc::unlink(name.as_ptr()) };
                let _ = low_level::emulate_default_handler(signal);
            };
            // SAFETY: the action makes async-signal-safe calls only; of `emulate_default_handler` its documentation says so.
            unlinking.0.push(unsafe { low_level::register(signal, end) }?);
        }
        Ok(unlinking)
    }
}

impl Drop for Unlinking {
    fn drop(&mut self) {
        for signal in self.0.drain(..) {
            low_level::unregister(signal);
        }
    }
}

/// Whether this process was started so that it survives a signal: nohup(1).
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, sigaction(2) only writes the present one; all its fields may be zero.
    let action = unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
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

/// Whether a file is of another database: it begins with LMDB's magic number, as lock files do, or with a meta page.
fn is_lmdb(file: &Path) -> bool {
    let is_data = || matches!(header::check(file), Ok(()) | Err(Error::Version { .. }));
    !matches!(ReaderTable::read(file), Err(NoTable::Foreign | NoTable::Unused | NoTable::Io(_))) || is_data()
}
