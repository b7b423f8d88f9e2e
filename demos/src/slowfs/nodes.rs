//! The inodes that the kernel knows: numbers in, files of the source out.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, INodeNo};

/// A file of the source, held by a descriptor that follows it through renames.
#[derive(Clone, Debug)]
pub struct Node(Arc<File>);

impl Node {
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // O_PATH: a handle on the file itself, which no permission or driver can refuse.
        options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW);
        Ok(Self(Arc::new(options.open(path)?)))
    }

    pub fn file(&self) -> &File {
        &self.0
    }

    /// A path that leads to this very file as long as `self` lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    pub fn child(&self, name: &OsStr) -> PathBuf {
        self.path().join(name)
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }
}

/// All nodes that the kernel holds a reference to.
#[derive(Debug)]
pub struct Nodes {
    source: PathBuf,
    root: Node,
    /// Device and inode number of the root.
    root_identity: (u64, u64),
    known: Mutex<HashMap<INodeNo, (Node, u64)>>,
}

impl Nodes {
    pub fn new(source: &Path) -> io::Result<Self> {
        let source = source.canonicalize()?;
        let root = Node::open(&source)?;
        let metadata = root.metadata()?;
        if !metadata.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        }
        Ok(Self { source, root, root_identity: (metadata.dev(), metadata.ino()), known: Mutex::default() })
    }

    pub fn get(&self, ino: INodeNo) -> io::Result<Node> {
        if ino == INodeNo::ROOT {
            return Ok(self.root.clone());
        }
        let known = self.known.lock().expect("no thread panics while it looks up");
        let (node, _) = known.get(&ino).ok_or_else(|| io::Error::from_raw_os_error(libc::ESTALE))?;
        Ok(node.clone())
    }

    /// Finds `name` in the directory `parent` and takes a reference for the kernel.
    pub fn lookup(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        let node = Node::open(&self.get(parent)?.child(name))?;
        let attributes = self.attributes(&node.metadata()?);
        let mut known = self.known.lock().expect("no thread panics while it looks up");
        known.entry(attributes.ino).or_insert((node, 0)).1 += 1;
        Ok(attributes)
    }

    /// Gives back `count` references of the kernel.
    pub fn forget(&self, ino: INodeNo, count: u64) {
        let mut known = self.known.lock().expect("no thread panics while it looks up");
        if let Some((_, references)) = known.get_mut(&ino) {
            *references = references.saturating_sub(count);
            if *references == 0 {
                known.remove(&ino);
            }
        }
    }

    /// The path of a node relative to the source, for people to read.
    pub fn relative_path(&self, node: &Node) -> String {
        let path = std::fs::read_link(node.path()).unwrap_or_default();
        path.strip_prefix(&self.source).unwrap_or(&path).to_string_lossy().into_owned()
    }

    /// The number under which the kernel knows a file: its own, kept apart from the numbers of
    /// other file systems mounted below the source; the root is 1 by the rules of FUSE.
    pub fn number(&self, device: u64, inode: u64) -> INodeNo {
        if (device, inode) == self.root_identity {
            return INodeNo::ROOT;
        }
        INodeNo(inode ^ (device ^ self.root_identity.0).rotate_left(40))
    }

    pub fn attributes(&self, metadata: &Metadata) -> FileAttr {
        attributes(metadata, self.number(metadata.dev(), metadata.ino()))
    }
}

fn attributes(metadata: &Metadata, ino: INodeNo) -> FileAttr {
    FileAttr {
        ino,
        size: metadata.size(),
        blocks: metadata.blocks(),
        atime: time(metadata.atime(), metadata.atime_nsec()),
        mtime: time(metadata.mtime(), metadata.mtime_nsec()),
        ctime: time(metadata.ctime(), metadata.ctime_nsec()),
        crtime: SystemTime::UNIX_EPOCH,
        kind: FileType::from_std(metadata.file_type()).unwrap_or(FileType::RegularFile),
        perm: (metadata.mode() & 0o7777) as u16,
        nlink: metadata.nlink() as u32,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: metadata.rdev() as u32,
        blksize: metadata.blksize() as u32,
        flags: 0,
    }
}

fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let fraction = Duration::from_nanos(nanoseconds.unsigned_abs());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    if seconds >= 0 { SystemTime::UNIX_EPOCH + whole + fraction } else { SystemTime::UNIX_EPOCH - whole + fraction }
}
