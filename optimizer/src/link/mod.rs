//! The supervisor's side of the connection to the optimizer: reached under a name of its own for every user, limited
//! memory cgroup and mount, PID and user namespace, started if it does not run.

mod client;
pub mod incoming;
pub mod message;
pub mod name;
mod patience;
mod start;

pub use self::client::Client;
pub use self::patience::{PATIENCE, PATIENCE_IN_NEED, PATIENCE_UNHINDERED};

use self::message::Answer;
use self::patience::Deadline;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, getsockopt, recv, send, setsockopt, socket,
    sockopt::{PeerCredentials, SendTimeout},
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::geteuid;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the optimizer: {0}")]
    Start(std::io::Error),
    #[error("cannot reach the optimizer: {0}")]
    Socket(#[from] Errno),
    #[error("the optimizer is stopped: continue process {0} (kill -CONT), or end it: the next program starts another")]
    Stopped(i32),
    #[error(
        "the optimizer hangs: process {pid} has done nothing for {still:?}, and not answered; end it (kill -KILL): the next \
         program starts another"
    )]
    Still { pid: i32, still: Duration },
    #[error(
        "the optimizer goes round in circles: process {pid} has worked for {worked:?}, and not answered; if it goes on, end it \
         (kill -KILL): the next program starts another"
    )]
    Busy { pid: i32, worked: Duration },
    #[error(
        "the optimizer does not answer within {0:?}: the machine is too busy; look for a process called \"precache service\""
    )]
    Silent(Duration),
    #[error(
        "too many wait for the optimizer: it is stopped, or the machine too busy; look for a process called \"precache service\""
    )]
    Crowded,
    #[error("the optimizer's socket is held by user {0}: another user took its name")]
    Stranger(u32),
    #[error("the optimizer refuses: {0}")]
    Refused(String),
    #[error("the optimizer ended without an answer")]
    HungUp,
    #[error("the optimizer's answer makes no sense: {0}")]
    Garbled(#[from] serde_json::Error),
}

/// A connection to the socket of this name, if a process of this user listens there.
fn reach(name: &str, deadline: Deadline) -> Result<OwnedFd, Error> {
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
    // Without it, connect(2) would wait for ever where so many wait that there is no place in the queue (unix(7),
    // `net.core.somaxconn`).
    let most = deadline.left().max(Duration::from_millis(1)).as_millis() as i64;
    setsockopt(&socket, SendTimeout, &TimeVal::milliseconds(most))?;
    connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?).map_err(|errno| match errno {
        Errno::EAGAIN => Error::Crowded,
        errno => errno.into(),
    })?;
    let peer = getsockopt(&socket, PeerCredentials)?.uid();
    if peer != geteuid().as_raw() {
        return Err(Error::Stranger(peer));
    }
    Ok(socket)
}

/// Sends one message, in as many datagrams as it takes: a report is long, and who asked for it may be slow to read it.
pub fn tell<T: serde::Serialize>(socket: &impl AsFd, what: &T) -> Result<(), Error> {
    send_by(socket, what, Deadline::after(PATIENCE_IN_NEED))
}

fn send_by<T: serde::Serialize>(socket: &impl AsFd, what: &T, deadline: Deadline) -> Result<(), Error> {
    let mut text = serde_json::to_vec(what)?;
    text.push(b'\n');
    for part in text.chunks(message::DATAGRAM) {
        while let Err(error) = send(socket.as_fd().as_raw_fd(), part, MsgFlags::MSG_NOSIGNAL) {
            match error {
                Errno::EINTR => {}
                // The other side is still reading what came before.
                Errno::EAGAIN => patience::for_room(socket, deadline)?,
                error => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Receives one message.
fn listen(socket: &OwnedFd, deadline: Deadline) -> Result<Answer, Error> {
    let mut text = Vec::new();
    let mut part = vec![0; message::DATAGRAM];
    loop {
        patience::for_answer(socket, deadline)?;
        match recv(socket.as_raw_fd(), &mut part, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return Err(Error::HungUp),
            Ok(length) => text.extend_from_slice(&part[..length]),
            Err(Errno::EINTR | Errno::EAGAIN) => continue,
            Err(error) => return Err(error.into()),
        }
        if text.last() == Some(&b'\n') {
            return Ok(serde_json::from_slice(&text)?);
        }
    }
}
