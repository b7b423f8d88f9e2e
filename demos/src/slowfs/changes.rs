//! Changes to the source, which a writable mount passes through unthrottled.

use std::fs::{DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown, fchown};
use std::path::Path;
use std::time::SystemTime;

use fuser::{OpenAccMode, OpenFlags, Request, TimeOrNow};

/// New attributes of a file; None leaves one as it is.
pub struct Attributes {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<TimeOrNow>,
    pub mtime: Option<TimeOrNow>,
}

impl Attributes {
    pub fn apply(self, path: &Path) -> io::Result<()> {
        if let Some(size) = self.size {
            OpenOptions::new().write(true).open(path)?.set_len(size)?;
        }
        // Before the mode: a change of owner clears the set-user-id bits.
        if self.uid.is_some() || self.gid.is_some() {
            chown(path, self.uid, self.gid)?;
        }
        if let Some(mode) = self.mode {
            std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        if self.atime.is_some() || self.mtime.is_some() {
            let mut times = FileTimes::new();
            if let Some(time) = self.atime {
                times = times.set_accessed(resolve(time));
            }
            if let Some(time) = self.mtime {
                times = times.set_modified(resolve(time));
            }
            File::open(path)?.set_times(times)?;
        }
        Ok(())
    }
}

fn resolve(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

/// Creates and opens a file that belongs to the user who asked.
pub fn create(path: &Path, mode: u32, flags: i32, req: &Request) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(OpenFlags(flags).acc_mode() != OpenAccMode::O_WRONLY)
        // Always writable: O_CREAT with O_RDONLY is allowed, but not by std.
        .write(true)
        .create(true)
        .truncate(flags & libc::O_TRUNC != 0)
        .mode(mode)
        .custom_flags(libc::O_NOFOLLOW | flags & libc::O_EXCL)
        .open(path)?;
    if nix::unistd::geteuid().is_root() {
        fchown(&file, Some(req.uid()), Some(req.gid()))?;
    }
    Ok(file)
}

/// Creates a directory that belongs to the user who asked.
pub fn make_directory(path: &Path, mode: u32, req: &Request) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    if nix::unistd::geteuid().is_root() {
        chown(path, Some(req.uid()), Some(req.gid()))?;
    }
    Ok(())
}
