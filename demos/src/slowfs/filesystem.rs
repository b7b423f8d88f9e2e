//! The FUSE operations, each in terms of what the mount shows.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLock, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use crate::changes;
use crate::control::Control;
use crate::files::Open;
use crate::shown::{Locks, SlowFs};

/// How long the kernel may remember names and attributes.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The largest request: one for a read-ahead of 1 MiB, the most that the kernel sends by default.
const MAX_REQUEST: u32 = 1 << 20;

impl Filesystem for SlowFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let invalid = |what: &str| io::Error::other(format!("the kernel refuses {what}"));
        config.set_max_write(MAX_REQUEST).map_err(|_| invalid("requests of 1 MiB"))?;
        config.set_max_background(self.max_background).map_err(|_| invalid("that --max-background"))?;
        // Zero is not accepted here, and less than a page means none. What is above the kernel's own
        // value is set after mounting.
        if let Err(most) = config.set_max_readahead(u32::try_from(self.readahead).unwrap_or(u32::MAX).max(1)) {
            config.set_max_readahead(most).map_err(|_| invalid("its own read-ahead"))?;
        }
        // A directory is listed and searched by several threads at once, as on local file systems.
        let mut wanted = InitFlags::FUSE_PARALLEL_DIROPS;
        if self.locks != Locks::OfTheKernel {
            wanted |= InitFlags::FUSE_POSIX_LOCKS | InitFlags::FUSE_FLOCK_LOCKS;
        }
        if self.read_past_cache {
            wanted |= InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        }
        config.add_capabilities(wanted).map_err(|missing| invalid(&format!("{missing:?}")))
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        reply_entry(reply, self.find(parent, name));
    }

    fn forget(&self, _req: &Request, ino: INodeNo, count: u64) {
        self.nodes.forget(ino, count);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply_attributes(reply, self.attributes(ino));
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        let target = self.nodes.get(ino).and_then(|node| Ok(nix::fcntl::readlinkat(node.file(), "")?));
        match target {
            Ok(target) => reply.data(target.as_encoded_bytes()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(ino, flags) {
            Ok((handle, flags)) => reply.opened(handle, flags),
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let size = u64::from(size);
        match self.handles.get(fh).as_deref() {
            Ok(Open::File(file)) => self.read_file(ino, file, offset, size, flags, reply),
            Ok(Open::Control(content)) => {
                let start = content.len().min(offset as usize);
                reply.data(&content[start..content.len().min(start + size as usize)]);
            }
            _ => reply.error(Errno::EBADF),
        }
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.handles.remove(fh);
        reply.ok();
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        let result = match self.handles.get(fh).as_deref() {
            Ok(Open::File(open)) => open.file.sync_all(),
            _ => Ok(()),
        };
        reply_empty(reply, result);
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.list(ino) {
            Ok(entries) => reply.opened(self.handles.insert(Open::Directory(entries)), FopenFlags::empty()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let Ok(open) = self.handles.get(fh) else { return reply.error(Errno::EBADF) };
        let Open::Directory(entries) = &*open else { return reply.error(Errno::ENOTDIR) };
        for (next, entry) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(entry.ino, next, entry.kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        self.handles.remove(fh);
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let statistics = self.nodes.get(INodeNo::ROOT).and_then(|node| Ok(rustix::fs::statvfs(node.path())?));
        match statistics {
            Ok(s) => reply.statfs(
                s.f_blocks,
                s.f_bfree,
                s.f_bavail,
                s.f_files,
                s.f_ffree,
                s.f_bsize as u32,
                s.f_namemax as u32,
                s.f_frsize as u32,
            ),
            Err(error) => reply.error(error.into()),
        }
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if Control::from_number(ino).is_some() {
            return reply.error(Errno::ENODATA);
        }
        let mut value = vec![0; size as usize];
        let result = self.nodes.get(ino).and_then(|node| Ok(rustix::fs::getxattr(node.path(), name, &mut value)?));
        reply_xattr(reply, &value, result);
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        if Control::from_number(ino).is_some() {
            return reply_xattr(reply, &[], Ok(0));
        }
        let mut names = vec![0; size as usize];
        let result = self.nodes.get(ino).and_then(|node| Ok(rustix::fs::listxattr(node.path(), &mut names)?));
        reply_xattr(reply, &names, result);
    }

    fn getlk(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _owner: LockOwner,
        _start: u64,
        _end: u64,
        _typ: i32,
        _pid: u32,
        reply: ReplyLock,
    ) {
        match self.locks {
            Locks::Forgotten => reply.locked(0, 0, libc::F_UNLCK, 0),
            _ => reply.error(Errno::ENOLCK),
        }
    }

    fn setlk(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _owner: LockOwner,
        _start: u64,
        _end: u64,
        _typ: i32,
        _pid: u32,
        _sleep: bool,
        reply: ReplyEmpty,
    ) {
        match self.locks {
            Locks::Forgotten => reply.ok(),
            _ => reply.error(Errno::ENOLCK),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // The shell truncates `reset` when it opens it for writing.
        let result = if Control::from_number(ino).is_some() {
            Ok(())
        } else {
            self.change(|| {
                let change = changes::Attributes { mode, uid, gid, size, atime, mtime };
                change.apply(&self.nodes.get(ino)?.path())
            })
        };
        reply_attributes(reply, result.and_then(|()| self.attributes(ino)));
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let result = match self.handles.get(fh).as_deref() {
            Ok(Open::File(open)) => open.file.write_all_at(data, offset),
            Ok(Open::Control(_)) if Control::from_number(ino) == Some(Control::Reset) => {
                self.reads.counters.reset();
                Ok(())
            }
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        };
        match result {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let created = self.change(|| {
            let path = self.nodes.get(parent)?.child(name);
            let file = changes::create(&path, mode, flags, req)?;
            let attributes = self.nodes.lookup(parent, name)?;
            let path = self.nodes.relative_path(&self.nodes.get(attributes.ino)?);
            Ok((attributes, self.register(file, &path)))
        });
        match created {
            Ok((attributes, handle)) => {
                reply.created(&REMEMBERED, &attributes, Generation(0), handle, self.open_flags());
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let made = self.change(|| {
            changes::make_directory(&self.nodes.get(parent)?.child(name), mode, req)?;
            self.nodes.lookup(parent, name)
        });
        reply_entry(reply, made);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.change(|| std::fs::remove_file(self.nodes.get(parent)?.child(name))));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.change(|| std::fs::remove_dir(self.nodes.get(parent)?.child(name))));
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.change(|| {
            let (old, new) = (self.nodes.get(parent)?.child(name), self.nodes.get(newparent)?.child(newname));
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            Ok(rustix::fs::renameat_with(rustix::fs::CWD, old, rustix::fs::CWD, new, flags)?)
        });
        reply_empty(reply, renamed);
    }

    fn mknod(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(if self.writable { Errno::EPERM } else { Errno::EROFS });
    }

    fn symlink(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, _target: &Path, reply: ReplyEntry) {
        reply.error(if self.writable { Errno::EPERM } else { Errno::EROFS });
    }

    fn link(&self, _req: &Request, _ino: INodeNo, _parent: INodeNo, _name: &OsStr, reply: ReplyEntry) {
        reply.error(if self.writable { Errno::EPERM } else { Errno::EROFS });
    }

    fn setxattr(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _name: &OsStr,
        _value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(if self.writable { Errno::ENOTSUP } else { Errno::EROFS });
    }
}

fn reply_entry(reply: ReplyEntry, result: io::Result<FileAttr>) {
    match result {
        Ok(attributes) => reply.entry(&REMEMBERED, &attributes, Generation(0)),
        Err(error) => reply.error(error.into()),
    }
}

fn reply_attributes(reply: ReplyAttr, result: io::Result<FileAttr>) {
    match result {
        Ok(attributes) => reply.attr(&REMEMBERED, &attributes),
        Err(error) => reply.error(error.into()),
    }
}

fn reply_empty(reply: ReplyEmpty, result: io::Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

/// An empty buffer asks for the size only.
fn reply_xattr(reply: ReplyXattr, buffer: &[u8], result: io::Result<usize>) {
    match result {
        Ok(size) if buffer.is_empty() => reply.size(size as u32),
        Ok(size) => reply.data(&buffer[..size]),
        Err(error) => reply.error(error.into()),
    }
}
