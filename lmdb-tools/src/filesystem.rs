//! What can be asked of the file system that a file lies on.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::statfs::statfs;

use crate::lmdb::Location;

/// File systems that matter here; the names of the rest are for people only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Lustre,
    /// Fujitsu's descendant of Lustre; known by name only, for what it calls itself in statfs(2) is not documented.
    Fefs,
    BeeGfs,
    Gpfs,
    /// Another one that several machines may share.
    Shared(&'static str),
    /// A FUSE file system: local or remote, which cannot be told from its type.
    Fuse,
    /// One that only this machine uses.
    Local(&'static str),
    /// A type number (`f_type` of statfs(2)) that is not in the table.
    Unknown(u64),
}

impl Kind {
    /// The file system of `path`, or of its nearest ancestor that exists.
    pub fn of(path: &Path) -> io::Result<Self> {
        let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
        Ok(Self::from_magic(statfs(existing).map_err(io::Error::from)?.filesystem_type().0 as u64))
    }

    /// Numbers from linux/magic.h and statfs(2); those of Lustre, BeeGFS and GPFS from their own headers.
    fn from_magic(magic: u64) -> Self {
        match magic & 0xFFFF_FFFF {
            0x0BD0_0BD0 => Self::Lustre,
            0x1983_0326 => Self::BeeGfs,
            0x4750_4653 => Self::Gpfs,
            0x6969 => Self::Shared("nfs"),
            0xFF53_4D42 | 0xFE53_4D42 | 0x517B => Self::Shared("smb"),
            0x00C3_6400 => Self::Shared("ceph"),
            0x5346_414F => Self::Shared("afs"),
            0x0102_1997 => Self::Shared("9p"),
            0x0116_1970 => Self::Shared("gfs2"),
            0x7461_636F => Self::Shared("ocfs2"),
            0x6573_5546 => Self::Fuse,
            0xEF53 => Self::Local("ext4"),
            0x5846_5342 => Self::Local("xfs"),
            0x9123_683E => Self::Local("btrfs"),
            0x2FC1_2FC1 => Self::Local("zfs"),
            0x0102_1994 => Self::Local("tmpfs"),
            0x794C_7630 => Self::Local("overlay"),
            0xF2F5_2010 => Self::Local("f2fs"),
            unknown => Self::Unknown(unknown),
        }
    }

    pub fn name(self) -> String {
        match self {
            Self::Lustre => "lustre".into(),
            Self::Fefs => "fefs".into(),
            Self::BeeGfs => "beegfs".into(),
            Self::Gpfs => "gpfs".into(),
            Self::Fuse => "fuse".into(),
            Self::Shared(name) | Self::Local(name) => name.into(),
            Self::Unknown(magic) => format!("unknown ({magic:#x})"),
        }
    }

    /// By what other machines may use the same files, as far as can be known (no news is bad news); none where they cannot.
    pub fn shared_by(self) -> Option<String> {
        match self {
            Self::Local(name) => is_nfs_server().then(|| format!("{name}, and this machine is an NFS server")),
            other => Some(other.name()),
        }
    }
}

/// Whether the kernel serves files of this machine to others. Those who use them from there have no process here.
fn is_nfs_server() -> bool {
    // What it serves at present, and what exportfs(8) told it to.
    let tables = ["/proc/fs/nfsd/exports", "/var/lib/nfs/etab"];
    tables.into_iter().any(|table| fs::read_to_string(table).is_ok_and(|table| has_exports(&table)))
}

/// Whether a table of exports has entries: lines other than comments (exports(5)).
fn has_exports(table: &str) -> bool {
    table.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

/// The read-ahead of the mount that `path` lies on, in bytes; none where the system does not say.
pub fn read_ahead(path: &Path) -> Option<u64> {
    let kib: u64 = fs::read_to_string(read_ahead_setting(path)?).ok()?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The file in which the read-ahead of that mount, in KiB, is read and set.
pub fn read_ahead_setting(path: &Path) -> Option<PathBuf> {
    let device = fs::metadata(path).ok()?.dev();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let of_mount = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
    // A partition shares the setting of its disk.
    let of_disk = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/../queue/read_ahead_kb"));
    [of_mount, of_disk].into_iter().find(|setting| setting.exists())
}

/// What happens to the kind of lock that liblmdb needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locks {
    /// Another process of this machine sees the lock. Whether other machines do cannot be seen from here.
    Honoured,
    /// Taken without an error, yet another process does not see it.
    Ignored,
    /// The system call fails.
    Refused(nix::Error),
}

/// Tries a lock on a database's lock file, or else, where that is missing or closed to this user, on its data file.
pub fn locks_of(location: &Location) -> io::Result<Locks> {
    locks(&location.lock).or_else(|_| locks(&location.data))
}

/// Tries a lock on a file, without changing the file: a read lock far behind its end, and a question about it.
fn locks(path: &Path) -> io::Result<Locks> {
    let (taking, asking) = (File::open(path)?, File::open(path)?);
    if let Err(error) = fcntl(&taking, FcntlArg::F_SETLK(&far_behind_the_end(libc::F_RDLCK))) {
        return Ok(Locks::Refused(error));
    }
    // A lock of a process is never in its own way, but in that of an open file description (fcntl(2)), even of the same
    // process: it sees what another process would see. Closing the files drops the lock.
    let mut question = far_behind_the_end(libc::F_WRLCK);
    match fcntl(&asking, FcntlArg::F_OFD_GETLK(&mut question)) {
        Ok(_) if question.l_type == libc::F_UNLCK as libc::c_short => Ok(Locks::Ignored),
        Ok(_) => Ok(Locks::Honoured),
        Err(error) => Ok(Locks::Refused(error)),
    }
}

/// One byte where no program keeps a lock: liblmdb's are at process ids and at the first byte of the lock file.
fn far_behind_the_end(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 1 << 61,
        l_len: 1,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_file_system_honours_locks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(locks(file.path()).unwrap(), Locks::Honoured);
    }

    #[test]
    fn exports() {
        let none = "# Version 1.1\n# Path Client(Flags) # IPs\n";
        assert!(!has_exports("") && !has_exports(none));
        assert!(has_exports(&format!("{none}/data\t*(ro,root_squash,sync,wdelay)\n")));
    }

    #[test]
    fn kinds() {
        assert_eq!(Kind::from_magic(0x0BD0_0BD0), Kind::Lustre);
        assert_eq!(Kind::from_magic(0xFFFF_FFFF_FF53_4D42), Kind::Shared("smb"));
        assert_eq!(Kind::Fuse.shared_by().as_deref(), Some("fuse"));
        assert!(Kind::Unknown(1).shared_by().is_some());
        assert!(Kind::of(Path::new("/no/such/file")).is_ok());
    }
}
