//! The injected library: it travels in this executable, and the loader wants it as a file.
//!
//! It is unpacked once, into a folder named after its content, and checked before every use: whoever could change that
//! file could run code in the user's programs. Where there is no such folder, it lies in memory, and the loader reaches
//! it through our descriptor in /proc, for as long as we live.
//!
//! What root starts may become another user and execute programs: root's library can be read by everybody, in a folder
//! that everybody can look into.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::geteuid;

use super::publish::{Access, publish};

static CONTENT: &[u8] = include_bytes!(env!("PRECACHE_LIBRARY"));
const HASH: &str = env!("PRECACHE_LIBRARY_HASH");
const NAME: &str = "libprecache_inject.so";

/// Root's folder for caches (Filesystem Hierarchy Standard 5.5): others cannot look into its home.
const EVERYBODYS_CACHE: &str = "/var/cache";

/// Writable by others than its owner.
const FOREIGN_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

#[derive(Debug, thiserror::Error)]
#[error(
    "cannot unpack the library that is to be injected: {folder}, and in memory: {memory}; set XDG_CACHE_HOME to a folder of yours"
)]
pub struct LibraryError {
    folder: FolderError,
    memory: Errno,
}

/// Why the library cannot lie in a folder.
#[derive(Debug, thiserror::Error)]
enum FolderError {
    #[error("neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoHome,
    #[error("the loader would misread the path {0:?}")]
    Unspeakable(PathBuf),
    #[error("{0:?} is not ours alone to write")]
    Exposed(PathBuf),
    #[error("{0:?} lies on a file system mounted noexec")]
    NoExec(PathBuf),
    #[error("{0:?}: {1}")]
    Io(PathBuf, io::Error),
}

#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    /// Keeps the path alive.
    _memory: Option<OwnedFd>,
}

impl Library {
    pub fn unpack() -> Result<Self, LibraryError> {
        let folder = match in_folder() {
            Ok(path) => {
                return Ok(Self { path, _memory: None });
            }
            Err(why) => why,
        };
        in_memory().map_err(|memory| LibraryError { folder, memory })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// `${XDG_CACHE_HOME:-$HOME/.cache}/precache/HASH/libprecache_inject.so`; root's is `/var/cache` without XDG_CACHE_HOME.
fn in_folder() -> Result<PathBuf, FolderError> {
    let mut why = FolderError::NoHome;
    for base in cache_homes() {
        match below(&base) {
            Ok(path) => return Ok(path),
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn below(base: &Path) -> Result<PathBuf, FolderError> {
    let at_base = |error| FolderError::Io(base.to_owned(), error);
    if base != Path::new(EVERYBODYS_CACHE) {
        create_folder(base).map_err(at_base)?;
    }
    let base = fs::canonicalize(base).map_err(at_base)?;
    if !is_speakable(&base) {
        return Err(FolderError::Unspeakable(base));
    }
    for parent in base.ancestors() {
        require_safe_parent(parent)?;
    }
    let folder = base.join("precache").join(HASH);
    for own in [base.join("precache"), folder.clone()] {
        create_folder(&own).map_err(|error| FolderError::Io(own.clone(), error))?;
        require_own_folder(&own)?;
    }
    let path = folder.join(NAME);
    if !is_intact(&path) {
        publish(&path, CONTENT, Access::Exactly(modes().1)).map_err(|error| FolderError::Io(path.clone(), error))?;
    }
    Ok(path)
}

/// Folders for caches, the best first.
fn cache_homes() -> Vec<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(chosen) = absolute("XDG_CACHE_HOME") {
        return vec![chosen];
    }
    let everybodys = geteuid().is_root().then(|| PathBuf::from(EVERYBODYS_CACHE));
    everybodys.into_iter().chain(absolute("HOME").map(|home| home.join(".cache"))).collect()
}

/// Modes of our folders and of the file.
fn modes() -> (u32, u32) {
    if geteuid().is_root() { (0o755, 0o555) } else { (0o700, 0o500) }
}

/// LD_PRELOAD is split at spaces and colons, and the loader expands `$ORIGIN` and its like.
fn is_speakable(path: &Path) -> bool {
    let is_special = |byte: &u8| matches!(byte, b':' | b'$') || byte.is_ascii_whitespace();
    !path.as_os_str().as_bytes().iter().any(is_special)
}

/// The folder itself; its parents have to be there, except for the `.cache` of a home.
fn create_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Nobody but root and us may be able to put another folder in this one's place. In a sticky folder others cannot
/// replace what is not theirs, and what follows is checked to be ours.
fn require_safe_parent(path: &Path) -> Result<(), FolderError> {
    let metadata = fs::symlink_metadata(path).map_err(|error| FolderError::Io(path.to_owned(), error))?;
    let owned = metadata.uid() == 0 || metadata.uid() == geteuid().as_raw();
    let closed = metadata.mode() & FOREIGN_WRITE == 0 || metadata.mode() & STICKY != 0;
    if owned && closed { Ok(()) } else { Err(FolderError::Exposed(path.to_owned())) }
}

fn require_own_folder(path: &Path) -> Result<(), FolderError> {
    let at = |error| FolderError::Io(path.to_owned(), error);
    let folder =
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path).map_err(at)?;
    let metadata = folder.metadata().map_err(at)?;
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & FOREIGN_WRITE != 0 {
        return Err(FolderError::Exposed(path.to_owned()));
    }
    // Made under a umask, or by another version.
    if metadata.mode() & 0o777 != modes().0 {
        folder.set_permissions(Permissions::from_mode(modes().0)).map_err(at)?;
    }
    let file_system = fstatvfs(&folder).map_err(|errno| at(errno.into()))?;
    if file_system.flags().contains(FsFlags::ST_NOEXEC) {
        return Err(FolderError::NoExec(path.to_owned()));
    }
    Ok(())
}

/// Ours, as we leave it, and byte by byte what this executable holds.
fn is_intact(path: &Path) -> bool {
    let is_ours = |file: &File| {
        file.metadata().is_ok_and(|metadata| {
            metadata.is_file()
                && metadata.uid() == geteuid().as_raw()
                && metadata.mode() & 0o777 == modes().1
                && metadata.len() == CONTENT.len() as u64
        })
    };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let Some(mut file) = file.ok().filter(is_ours) else {
        return false;
    };
    let mut content = Vec::with_capacity(CONTENT.len());
    file.read_to_end(&mut content).is_ok() && content == CONTENT
}

fn in_memory() -> Result<Library, Errno> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let executable = MFdFlags::from_bits_retain(libc::MFD_EXEC);
    // Kernels before 6.3 do not know MFD_EXEC, and need not be asked for it.
    let memory =
        memfd_create(c"precache_inject", flags | executable).or_else(|_| memfd_create(c"precache_inject", flags))?;
    let mut file = File::from(memory);
    file.write_all(CONTENT).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::ENOMEM)))?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals | SealFlag::F_SEAL_SEAL))?;
    let path =
        descriptor_in_proc(&file).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::ESTALE)))?;
    Ok(Library { path, _memory: Some(file.into()) })
}

/// Our number is that of the PID namespace to which /proc belongs, which need not be ours: by another one it would be somebody else's
/// descriptor.
fn descriptor_in_proc(file: &File) -> io::Result<PathBuf> {
    let path = Path::new("/proc").join(fs::read_link("/proc/self")?).join("fd").join(file.as_raw_fd().to_string());
    let (there, own) = (fs::metadata(&path)?, file.metadata()?);
    let is_own = (there.dev(), there.ino()) == (own.dev(), own.ino());
    is_own.then_some(path).ok_or_else(|| Errno::ESTALE.into())
}

/// The value of LD_PRELOAD with the library before what is there already.
pub fn preload(library: &Path, existing: Option<&OsStr>) -> std::ffi::OsString {
    let mut value = library.as_os_str().to_owned();
    match existing {
        // One precache-run within another.
        Some(existing) if existing.as_bytes().starts_with(value.as_bytes()) => existing.to_owned(),
        Some(existing) if !existing.is_empty() => {
            value.push(":");
            value.push(existing);
            value
        }
        _ => value,
    }
}
