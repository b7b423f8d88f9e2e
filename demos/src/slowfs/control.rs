//! The virtual directory `.slowfs` at the root of the mount: `counters.json` and `reset`.
//!
//! It is hidden from directory listings, so that tools which copy or scan the tree do not see it.

use std::ffi::OsStr;
use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo};

/// A node of the control directory. Its numbers lie where those of real files never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Directory = -1,
    Counters = -2,
    Reset = -3,
}

impl Control {
    pub fn from_number(ino: INodeNo) -> Option<Self> {
        [Self::Directory, Self::Counters, Self::Reset].into_iter().find(|control| control.number() == ino)
    }

    pub fn find(parent: INodeNo, name: &OsStr) -> Option<Self> {
        match (parent == INodeNo::ROOT, name.to_str()?) {
            (true, ".slowfs") => Some(Self::Directory),
            (false, "counters.json") if parent == Self::Directory.number() => Some(Self::Counters),
            (false, "reset") if parent == Self::Directory.number() => Some(Self::Reset),
            _ => None,
        }
    }

    pub fn number(self) -> INodeNo {
        INodeNo(self as i64 as u64)
    }

    /// Attributes for the kernel: whoever can reach the mount may read the counters and zero them.
    pub fn attributes(self) -> FileAttr {
        let (kind, perm) = match self {
            Self::Directory => (FileType::Directory, 0o555),
            Self::Counters => (FileType::RegularFile, 0o444),
            Self::Reset => (FileType::RegularFile, 0o666),
        };
        let now = SystemTime::now();
        FileAttr {
            ino: self.number(),
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}
