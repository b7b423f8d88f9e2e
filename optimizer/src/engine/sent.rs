//! Files that readers sent. A descriptor is not closed by whoever serves others: its file system may be asked (FUSE flushes
//! at every close(2)), and may never answer. Threads that do nothing else close them, another one where all those wait.

use crossbeam::channel::{Receiver, Sender, unbounded};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Who closes for so long waits for a file system.
const PATIENCE: Duration = Duration::from_millis(200);

/// Threads, at most: so many file systems that do not answer.
const MOST: usize = 64;

/// `None`: there is no thread to be had.
static CLOSERS: OnceLock<Option<Arc<Closers>>> = OnceLock::new();

/// Starts the first thread, before anybody is waited for.
pub fn get_ready() {
    CLOSERS.get_or_init(Closers::start);
}

/// To be called now and then: starts another thread, if all that there are have waited for long and files wait for them.
pub fn go_on() {
    if let Some(Some(closers)) = CLOSERS.get() {
        closers.go_on();
    }
}

struct Closers {
    way: Sender<File>,
    files: Receiver<File>,
    threads: AtomicUsize,
    idle: AtomicUsize,
    origin: Instant,
    /// Milliseconds from the origin to when the last idle one found something to do.
    busy_since: AtomicU64,
}

impl Closers {
    fn start() -> Option<Arc<Self>> {
        let (way, files) = unbounded();
        let (threads, idle) = Default::default();
        let closers =
            Arc::new(Self { way, files, threads, idle, origin: Instant::now(), busy_since: AtomicU64::new(0) });
        closers.hire().then_some(closers)
    }

    fn hire(self: &Arc<Self>) -> bool {
        let closers = Arc::clone(self);
        let thread = thread::Builder::new().name("close".into()).stack_size(128 << 10);
        let is_there = thread.spawn(move || closers.close_all()).is_ok();
        self.threads.fetch_add(is_there.into(), Relaxed);
        is_there
    }

    fn close_all(&self) {
        loop {
            self.idle.fetch_add(1, AcqRel);
            let Ok(file) = self.files.recv() else { return };
            self.note_busy();
            self.idle.fetch_sub(1, AcqRel);
            drop(file);
        }
    }

    fn note_busy(&self) {
        self.busy_since.store(self.now(), Release);
    }

    fn now(&self) -> u64 {
        self.origin.elapsed().as_millis() as u64
    }

    fn go_on(self: &Arc<Self>) {
        let all_wait = self.idle.load(Acquire) == 0
            && Duration::from_millis(self.now().saturating_sub(self.busy_since.load(Acquire))) > PATIENCE;
        if all_wait && !self.files.is_empty() && self.threads.load(Relaxed) < MOST {
            self.note_busy();
            self.hire();
        }
    }
}

/// One of them: dropped, it is closed by such a thread.
pub struct SentFile(ManuallyDrop<File>);

impl SentFile {
    pub fn new(file: File) -> Self {
        Self(ManuallyDrop::new(file))
    }

    /// Another descriptor of the same open file.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        self.0.try_clone().map(Self::new)
    }

    /// Closes it here: it is memory, and no file system is asked.
    pub fn close_memory(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never used again, nor dropped.
        drop(unsafe { ManuallyDrop::take(&mut this.0) });
    }
}

impl Deref for SentFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for SentFile {
    fn drop(&mut self) {
        // SAFETY: this value ends here.
        let file = unsafe { ManuallyDrop::take(&mut self.0) };
        match CLOSERS.get_or_init(Closers::start) {
            // Both ends are in there for ever.
            Some(closers) => drop(closers.way.send(file)),
            None => drop(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{setsockopt, sockopt::Linger};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    /// A connection whose closing takes until its peer has read all that was sent, and how much that is.
    fn lingering() -> (File, TcpStream, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        setsockopt(&sender, Linger, &libc::linger { l_onoff: 1, l_linger: 3600 }).unwrap();
        sender.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(count) = sender.write(&[1; 4096]) {
            sent += count;
        }
        (File::from(OwnedFd::from(sender)), peer, sent)
    }

    fn read_to_end(mut peer: TcpStream) -> usize {
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        received.len()
    }

    /// In this thread, closing would take for ever.
    #[test]
    fn who_drops_one_goes_on_while_it_is_closed() {
        let (file, peer, sent) = lingering();
        drop(SentFile::new(file));
        assert_eq!(read_to_end(peer), sent);
    }

    #[test]
    fn one_that_cannot_be_closed_does_not_keep_others_open() {
        let (file, _peer, _) = lingering();
        let (reader, writer) = std::io::pipe().unwrap();
        let closers = Closers::start().unwrap();
        closers.way.send(file).unwrap();
        closers.way.send(File::from(OwnedFd::from(writer))).unwrap();
        while closers.threads.load(Relaxed) < 2 {
            closers.go_on();
            thread::yield_now();
        }
        let mut reader = File::from(OwnedFd::from(reader));
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the pipe's other end is closed");
    }
}
