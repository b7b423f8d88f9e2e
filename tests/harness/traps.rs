//! Checkpoints that readers hit, as they count them in the memory that they share with an optimizer: what is known of the
//! readers of one that is killed or stopped, and tells nothing.

use crate::optimizer::socket_of;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, socket};
use nix::unistd::Pid;
use precache_contract::segment::Segment;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// The memory of all readers that an optimizer serves: it stays as long as this exists, whoever dies.
pub struct Traps(Vec<File>);

impl Traps {
    /// Of those that it serves now. Only root may (`/proc/PID/map_files`, proc(5)).
    pub fn of(optimizer: Pid) -> Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{optimizer}/maps"))?;
        let segments = maps.lines().filter(|line| line.contains("/memfd:precache"));
        let ranges = segments.filter_map(|line| line.split(' ').next());
        let opened = ranges.map(|range| File::open(format!("/proc/{optimizer}/map_files/{range}")));
        // One whose reader has just died is gone.
        let found = opened.filter(|file| !file.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound));
        found.collect::<Result<_>>().map(Self)
    }

    /// Of all readers that have asked it before this call.
    pub fn of_all_who_asked(optimizer: Pid) -> Result<Self> {
        hear_out(optimizer)?;
        Self::of(optimizer)
    }

    /// How many there are by now.
    pub fn hit(&self) -> u64 {
        let at = offset_of!(Segment, counters.trips) as u64;
        let count = |file: &File| {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, at).map(|()| u64::from_ne_bytes(word)).expect("a segment has its full length")
        };
        self.0.iter().map(count).sum()
    }
}

/// Waits until the optimizer has heard all that was sent to it: nonsense comes last, and is hung up on.
fn hear_out(optimizer: Pid) -> Result<()> {
    let name = socket_of(optimizer)?;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new_abstract(&name)?)?;
    send(socket.as_raw_fd(), b"nonsense", MsgFlags::MSG_NOSIGNAL)?;
    match recv(socket.as_raw_fd(), &mut [0], MsgFlags::empty()) {
        Ok(0) | Err(Errno::ECONNRESET) => Ok(()),
        other => Err(Error::other(format!("the optimizer does not hang up: {other:?}"))),
    }
}
