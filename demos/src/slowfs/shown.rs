//! What the mount shows: the source, with reads at the pace of the storage, and the control files.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use fuser::{Errno, FileAttr, FileHandle, FileType, FopenFlags, INodeNo, OpenAccMode, OpenFlags, ReplyData};

use crate::client::{Client, SharedNotifier};
use crate::control::Control;
use crate::faults::Faults;
use crate::files::{Entry, Handles, Open, OpenFile, Reads};
use crate::nodes::Nodes;
use crate::options::Options;
use crate::storage::Storage;

/// The file system that is mounted.
#[derive(Debug)]
pub struct SlowFs {
    pub nodes: Nodes,
    pub handles: Handles,
    pub reads: Reads,
    /// Reads ahead in place of the kernel.
    client: Option<Client>,
    /// Bytes that the kernel may read ahead.
    pub readahead: u64,
    pub max_background: u16,
    keep_cache: bool,
    pub read_past_cache: bool,
    pub writable: bool,
    pub locks: Locks,
}

/// What becomes of file locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locks {
    /// The kernel keeps them: all processes of this machine see them.
    OfTheKernel,
    Refused,
    /// Taken, and nobody else sees them.
    Forgotten,
}

impl SlowFs {
    pub fn new(options: &Options, notifier: &SharedNotifier) -> io::Result<Self> {
        Ok(Self {
            nodes: Nodes::new(&options.source)?,
            handles: Handles::default(),
            reads: Reads::new(
                Storage::new(options.limits(), options.seed),
                Faults::new(options.faults.clone(), options.seed),
            ),
            client: options.no_willneed.then(|| Client::new(options.readahead, Arc::clone(notifier))),
            readahead: options.kernel_readahead(),
            max_background: options.max_background,
            keep_cache: options.keep_cache,
            read_past_cache: options.read_past_cache,
            writable: options.writable,
            locks: options.locks(),
        })
    }

    pub fn find(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        match Control::find(parent, name) {
            Some(control) => Ok(control.attributes()),
            None => self.nodes.lookup(parent, name),
        }
    }

    pub fn attributes(&self, ino: INodeNo) -> io::Result<FileAttr> {
        match Control::from_number(ino) {
            Some(control) => Ok(control.attributes()),
            None => Ok(self.nodes.attributes(&self.nodes.get(ino)?.metadata()?)),
        }
    }

    pub fn open_file(&self, ino: INodeNo, flags: OpenFlags) -> io::Result<(FileHandle, FopenFlags)> {
        match Control::from_number(ino) {
            Some(Control::Counters) => {
                let content = Open::Control(self.reads.counters.to_json());
                return Ok((self.handles.insert(content), FopenFlags::FOPEN_DIRECT_IO));
            }
            Some(_) => return Ok((self.handles.insert(Open::Control(Vec::new())), FopenFlags::FOPEN_DIRECT_IO)),
            None => {}
        }
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            self.check_writable()?;
        }
        let node = self.nodes.get(ino)?;
        let file = OpenOptions::new()
            .read(flags.acc_mode() != OpenAccMode::O_WRONLY)
            .write(flags.acc_mode() != OpenAccMode::O_RDONLY)
            .custom_flags(libc::O_NONBLOCK)
            .open(node.path())?;
        Ok((self.register(file, &self.nodes.relative_path(&node)), self.open_flags()))
    }

    pub fn register(&self, file: File, path: &str) -> FileHandle {
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.handles.insert(Open::File(OpenFile { file, name, counts: self.reads.counters.file(path) }))
    }

    pub fn open_flags(&self) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        flags.set(FopenFlags::FOPEN_KEEP_CACHE, self.keep_cache);
        flags.set(FopenFlags::FOPEN_DIRECT_IO, self.read_past_cache);
        flags
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EROFS)) }
    }

    /// Runs a change to the source, where changes are allowed.
    pub fn change<T>(&self, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.check_writable().and_then(|()| change())
    }

    pub fn read_file(&self, ino: INodeNo, file: &OpenFile, offset: u64, size: u64, flags: OpenFlags, reply: ReplyData) {
        let send = |reply: ReplyData, result: io::Result<&[u8]>| match result {
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(error.into()),
        };
        match &self.client {
            Some(client) if flags.0 & libc::O_DIRECT == 0 => {
                if client.is_readahead_call(size) {
                    reply.error(Errno::EAGAIN);
                    client.drop_pages(ino, offset, size);
                } else {
                    client.serve(&self.reads, ino, file, offset, size, |result| send(reply, result));
                }
            }
            _ => self.reads.serve(file, offset, size, |result| send(reply, result)),
        }
    }

    pub fn list(&self, ino: INodeNo) -> io::Result<Vec<Entry>> {
        if Control::from_number(ino).is_some() {
            let names = [(Control::Counters, "counters.json"), (Control::Reset, "reset")];
            let entry = |(control, name): (Control, &str)| Entry {
                ino: control.number(),
                kind: FileType::RegularFile,
                name: name.into(),
            };
            return Ok(names.into_iter().map(entry).collect());
        }
        let node = self.nodes.get(ino)?;
        let device = node.metadata()?.dev();
        let dots = [".", ".."].map(|name| Entry { ino, kind: FileType::Directory, name: name.into() });
        let mut entries = Vec::from(dots);
        for entry in std::fs::read_dir(node.path())? {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            let ino = self.nodes.number(device, std::os::unix::fs::DirEntryExt::ino(&entry));
            entries.push(Entry { ino, kind, name: entry.file_name() });
        }
        Ok(entries)
    }
}
