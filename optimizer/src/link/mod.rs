//! The supervisor's side of the connection to the optimizer: reached under a name of its own for every user, limited
//! memory cgroup and mount namespace, started if it does not run.

pub mod incoming;
pub mod message;
pub mod name;
mod patience;
mod start;

pub use self::patience::{PATIENCE, PATIENCE_UNHINDERED};

use self::message::{Answer, Request};
use crate::options::RunOptions;
use crate::report::SessionReport;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, getsockopt, recv, send, setsockopt, socket,
    sockopt::{PeerCredentials, SendTimeout},
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::geteuid;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Seconds for which so many may wait for the optimizer that it can't be reached (`net.core.somaxconn`).
const CROWDED: i64 = 1;

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

/// An open session.
pub struct Client {
    socket: OwnedFd,
    name: String,
    session: u64,
    options: RunOptions,
}

impl Client {
    /// Opens a session, with an optimizer started for it if none runs.
    pub fn start(options: &RunOptions) -> Result<Self, Error> {
        let name = name::of_this_place(geteuid());
        let session = name::random();
        let socket = open(&name, session, options, false)?;
        Ok(Self { socket, name, session, options: options.clone() })
    }

    /// Name of the socket in the abstract namespace, without the leading zero byte.
    pub fn socket_name(&self) -> &str {
        &self.name
    }

    pub fn session(&self) -> u64 {
        self.session
    }

    /// Opens the session again after the optimizer's death.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.socket = open(&self.name, self.session, &self.options, true)?;
        Ok(())
    }

    /// Ends the session.
    pub fn finish(self) -> Result<SessionReport, Error> {
        tell(&self.socket, &Request::Finish)?;
        match listen(&self.socket)? {
            Answer::Report(report) => Ok(*report),
            Answer::Refused { why } => Err(Error::Refused(why)),
            Answer::Opened => Err(Error::HungUp),
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Connects and opens the session. An optimizer that ends as idle in just this moment is replaced.
fn open(name: &str, session: u64, options: &RunOptions, again: bool) -> Result<OwnedFd, Error> {
    let mut tries = 3;
    loop {
        tries -= 1;
        let attempt = match reach(name) {
            Err(Error::Socket(Errno::ECONNREFUSED)) => {
                start::optimizer(name).map_err(Error::Start)?;
                reach(name)
            }
            other => other,
        };
        let greeted = attempt.and_then(|socket| greet(&socket, session, options, again).map(|()| socket));
        match greeted {
            Err(Error::HungUp | Error::Socket(Errno::ECONNREFUSED | Errno::EPIPE | Errno::ECONNRESET)) if tries > 0 => {
            }
            other => return other,
        }
    }
}

fn greet(socket: &OwnedFd, session: u64, options: &RunOptions, again: bool) -> Result<(), Error> {
    let version = precache_contract::VERSION;
    tell(socket, &Request::Open { version, session, options: options.clone(), again })?;
    match listen(socket)? {
        Answer::Opened => Ok(()),
        Answer::Refused { why } => Err(Error::Refused(why)),
        Answer::Report(_) => Err(Error::HungUp),
    }
}

/// A connection to the socket of this name, if a process of this user listens there.
fn reach(name: &str) -> Result<OwnedFd, Error> {
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
    // Without it, connect(2) would wait for a place in the queue for ever (unix(7)).
    setsockopt(&socket, SendTimeout, &TimeVal::seconds(CROWDED))?;
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

/// Sends one message, in as many datagrams as it takes.
pub fn tell<T: serde::Serialize>(socket: &impl AsFd, what: &T) -> Result<(), Error> {
    let mut text = serde_json::to_vec(what)?;
    text.push(b'\n');
    for part in text.chunks(message::DATAGRAM) {
        while let Err(error) = send(socket.as_fd().as_raw_fd(), part, MsgFlags::MSG_NOSIGNAL) {
            match error {
                Errno::EINTR => {}
                // The other side is still reading what came before.
                Errno::EAGAIN => patience::for_room(socket)?,
                error => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Receives one message.
fn listen(socket: &OwnedFd) -> Result<Answer, Error> {
    let mut text = Vec::new();
    let mut part = vec![0; message::DATAGRAM];
    loop {
        patience::for_answer(socket)?;
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
