//! Open files and directories, and how a read is served from the storage.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use fuser::{FileHandle, FileType, INodeNo};

use crate::counters::{Counters, FileCounts};
use crate::faults::{Faults, Kind};
use crate::storage::Storage;

/// What a file handle stands for.
#[derive(Debug)]
pub enum Open {
    File(OpenFile),
    Directory(Vec<Entry>),
    /// A control file, with the content that it had when it was opened.
    Control(Vec<u8>),
}

/// An open file of the source.
#[derive(Debug)]
pub struct OpenFile {
    pub file: File,
    /// The last part of its path, which faults are matched against.
    pub name: String,
    pub counts: FileCounts,
}

/// One entry of a directory listing.
#[derive(Debug)]
pub struct Entry {
    pub ino: INodeNo,
    pub kind: FileType,
    pub name: OsString,
}

/// The handles that the kernel has open.
#[derive(Debug, Default)]
pub struct Handles {
    open: Mutex<HashMap<u64, Arc<Open>>>,
    last: AtomicU64,
}

impl Handles {
    pub fn insert(&self, open: Open) -> FileHandle {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.lock().expect("no thread panics with it").insert(number, Arc::new(open));
        FileHandle(number)
    }

    pub fn get(&self, handle: FileHandle) -> io::Result<Arc<Open>> {
        let open = self.open.lock().expect("no thread panics with it");
        open.get(&handle.0).cloned().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    pub fn remove(&self, handle: FileHandle) {
        self.open.lock().expect("no thread panics with it").remove(&handle.0);
    }
}

/// Serves reads at the pace of the storage, with its faults, and counts them.
#[derive(Debug)]
pub struct Reads {
    pub storage: Storage,
    pub faults: Faults,
    pub counters: Counters,
    /// Buffers not in use; the last one returned is the first one taken, while the CPU caches hold it.
    buffers: Mutex<Vec<Vec<u8>>>,
}

impl Reads {
    pub fn new(storage: Storage, faults: Faults) -> Self {
        Self { storage, faults, counters: Counters::default(), buffers: Mutex::default() }
    }

    /// Reads up to `size` bytes at `offset` and hands them to `reply`.
    pub fn serve(&self, open: &OpenFile, offset: u64, size: u64, reply: impl FnOnce(io::Result<&[u8]>)) {
        self.counters.begin(&open.counts);
        let mut buffer = Vec::new();
        let result = self.wait_for_storage(open, offset, size).and_then(|granted| {
            buffer = self.take_buffer(granted);
            read_fully(&open.file, &mut buffer[..granted as usize], offset)
        });
        // Counted before the reply: who has read the data finds it in the counters.
        self.counters.end(&open.counts, size, result.as_ref().ok().map(|&count| count as u64));
        reply(result.map(|count| &buffer[..count]));
        if !buffer.is_empty() {
            self.buffers.lock().expect("no thread panics with it").push(buffer);
        }
    }

    /// Waits as long as the storage takes, and returns how many bytes it grants.
    fn wait_for_storage(&self, open: &OpenFile, offset: u64, size: u64) -> io::Result<u64> {
        let within_file = open.file.metadata()?.len().saturating_sub(offset).min(size);
        let mut granted = within_file;
        let mut outcome = Ok(());
        for fault in self.faults.strike(&open.name, offset, size) {
            match fault {
                Kind::Stall(time) => thread::sleep(time),
                Kind::Short => granted = within_file / 2,
                Kind::Eio => outcome = Err(io::Error::from_raw_os_error(libc::EIO)),
            }
        }
        self.storage.serve(granted);
        outcome.map(|()| granted)
    }

    /// A buffer of at least `size` bytes.
    fn take_buffer(&self, size: u64) -> Vec<u8> {
        let mut buffer = self.buffers.lock().expect("no thread panics with it").pop().unwrap_or_default();
        if (buffer.len() as u64) < size {
            buffer.resize(size as usize, 0);
        }
        buffer
    }
}

/// Reads until the buffer is full or the file ends.
fn read_fully(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset + count as u64)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}
