//! Datagrams as they come in: what was said, and the descriptor that came along.

use crate::link::message::{DATAGRAM, Request};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use precache_contract::enrolment::{Enrolment, Kind, LockNote};
use std::ffi::OsStr;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A request of more bytes than this is nobody's honest one.
const LONGEST: usize = 1 << 20;

pub enum Message {
    Enrolment(Enrolment, Kind, Option<File>),
    Lock(LockNotice),
    Request(Request),
}

/// A process opened an LMDB lock file.
pub struct LockNotice {
    pub session: u64,
    pub path: PathBuf,
    pub private: bool,
}

pub enum Receipt {
    Message(Message),
    /// No more for now.
    Nothing,
    /// The peer hung up, or cannot be understood.
    End,
}

/// The next message. `text` keeps the beginning of one that comes in parts.
pub fn receive(socket: &OwnedFd, text: &mut Vec<u8>) -> Receipt {
    loop {
        let mut part = vec![0; DATAGRAM];
        let (length, file) = match datagram(socket, &mut part) {
            Ok((0, None)) => return Receipt::End,
            Ok(received) => received,
            Err(Errno::EAGAIN) => return Receipt::Nothing,
            Err(Errno::EINTR) => continue,
            Err(_) => return Receipt::End,
        };
        part.truncate(length);
        if text.is_empty() && part.first() != Some(&b'{') && part.first() != Some(&b'"') {
            if let Some((private, session, path)) = LockNote::parse(&part) {
                let path = PathBuf::from(OsStr::from_bytes(path));
                return Receipt::Message(Message::Lock(LockNotice { session, path, private }));
            }
            return match Enrolment::parse(&part) {
                Ok((what, kind)) => Receipt::Message(Message::Enrolment(what, kind, file)),
                Err(_) => Receipt::End,
            };
        }
        text.append(&mut part);
        if text.last() == Some(&b'\n') {
            let request = serde_json::from_slice(text);
            text.clear();
            return request.map_or(Receipt::End, |request| Receipt::Message(Message::Request(request)));
        }
        if text.len() > LONGEST {
            return Receipt::End;
        }
    }
}

fn datagram(socket: &OwnedFd, buffer: &mut [u8]) -> Result<(usize, Option<File>), Errno> {
    let mut control = nix::cmsg_space!([RawFd; 4]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let mut file = None;
    if let Ok(controls) = message.cmsgs() {
        for control in controls {
            if let ControlMessageOwned::ScmRights(numbers) = control {
                // SAFETY: the kernel made these descriptors for us in this call; those not kept are closed.
                let mut files = numbers.into_iter().map(|number| unsafe { File::from_raw_fd(number) });
                file = file.or(files.next());
                files.for_each(drop);
            }
        }
    }
    Ok((message.bytes, file))
}
