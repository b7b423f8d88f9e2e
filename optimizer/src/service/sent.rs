//! Files that readers sent. A descriptor is not closed by whoever serves others: its file system may be asked (FUSE flushes
//! at every close(2)), and may never answer. While one does not, those that come after it stay open.

use crossbeam::channel::{Sender, unbounded};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::OnceLock;
use std::thread;

/// The way to the thread that closes them; `None`: there is no thread to be had.
static CLOSER: OnceLock<Option<Sender<File>>> = OnceLock::new();

/// Starts that thread, before anybody is waited for.
pub fn get_ready() {
    CLOSER.get_or_init(start);
}

/// One of them: dropped, it is closed by a thread that does nothing else.
pub struct SentFile(ManuallyDrop<File>);

impl SentFile {
    pub fn new(file: File) -> Self {
        Self(ManuallyDrop::new(file))
    }

    /// Another descriptor of the same open file.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        self.0.try_clone().map(Self::new)
    }

    /// For who may wait for its file system.
    pub fn into_file(self) -> File {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never used again, nor dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
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
        match CLOSER.get_or_init(start) {
            // The thread never ends.
            Some(closer) => drop(closer.send(file)),
            None => drop(file),
        }
    }
}

fn start() -> Option<Sender<File>> {
    let (closer, files) = unbounded();
    thread::Builder::new().name("close".into()).spawn(move || files.into_iter().for_each(drop)).ok()?;
    Some(closer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{setsockopt, sockopt::Linger};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    /// Closing it takes until its peer has read all: in this thread, that would be for ever.
    #[test]
    fn who_drops_one_goes_on_while_it_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        setsockopt(&sender, Linger, &libc::linger { l_onoff: 1, l_linger: 3600 }).unwrap();
        sender.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(count) = sender.write(&[1; 4096]) {
            sent += count;
        }
        drop(SentFile::new(File::from(OwnedFd::from(sender))));
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), sent);
    }
}
