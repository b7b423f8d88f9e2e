//! Datagrams as they come in: what was said, and the descriptor that came along.

use crate::engine::SentFile;
use crate::link::incoming::{Incoming, Said};
use nix::errno::Errno;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors that one message can carry (SCM_MAX_FD in the kernel's net/scm.h).
const MOST_FILES: usize = 253;

pub enum Receipt {
    Message(Said, Option<SentFile>),
    /// No more for now.
    Nothing,
    /// The peer hung up, or cannot be understood.
    End,
}

/// The next message of a connection that was heard so far; the buffer has room for a datagram.
pub fn receive(socket: &OwnedFd, heard: &mut Incoming, buffer: &mut [u8]) -> Receipt {
    loop {
        let Datagram { length, is_whole, mut files } = match datagram(socket, buffer) {
            Ok(received) => received,
            Err(Errno::EAGAIN) => return Receipt::Nothing,
            Err(Errno::EINTR) => continue,
            Err(_) => return Receipt::End,
        };
        // An empty datagram is what the end looks like, and is nothing that anybody has to say.
        if length == 0 || !is_whole || files.len() > 1 {
            return Receipt::End;
        }
        match heard.take(buffer.get(..length).unwrap_or_default()) {
            Ok(Some(said)) => return Receipt::Message(said, files.pop()),
            Ok(None) => {}
            Err(_) => return Receipt::End,
        }
    }
}

struct Datagram {
    length: usize,
    /// No bytes are lacking. A descriptor may be: for want of places for it, here.
    is_whole: bool,
    files: Vec<SentFile>,
}

/// Takes all descriptors that came, however many they are: those that nobody owns would stay open for ever. (nix shows
/// none of a message that was cut short.)
fn datagram(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Datagram, Errno> {
    let mut control = [0_u64; MOST_FILES * size_of::<RawFd>() / size_of::<u64>() + 4];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: null pointers and lengths of zero are valid in a msghdr (recvmsg(2)).
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&mut part, 1);
    (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header tells of two buffers with their lengths, which both outlive the call.
    let length = Errno::result(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, flags) })?;
    let mut files = Vec::new();
    // SAFETY: the header is as the kernel left it, and its control buffer is aligned and alive (cmsg(3)); so below.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&header) };
    // SAFETY: null or within the control buffer.
    while let Some(message) = unsafe { next.as_ref() } {
        if (message.cmsg_level, message.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: computes a length.
            let bytes = message.cmsg_len - unsafe { libc::CMSG_LEN(0) } as usize;
            // SAFETY: the data of a message of this type are descriptors, which the kernel made for us in this call; as
            // many as its length tells.
            files.extend((0..bytes / size_of::<RawFd>()).map(|index| unsafe {
                SentFile::new(File::from_raw_fd(libc::CMSG_DATA(next).cast::<RawFd>().add(index).read_unaligned()))
            }));
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(&header, next) };
    }
    let is_whole = header.msg_flags & libc::MSG_TRUNC == 0;
    Ok(Datagram { length: length as usize, is_whole, files })
}
