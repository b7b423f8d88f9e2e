//! The socket, and the loop over everything that can happen: a connection, a datagram, a reader's death.

use super::enrol::{Message, Receipt, receive};
use super::files::Files;
use super::reader::Reader;
use super::session::{Session, Sessions};
use crate::link::message::Request;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, getsockopt, listen, socket,
};
use nix::unistd::geteuid;
use precache_contract::enrolment::{Enrolment, Kind};
use precache_contract::segment::Refusal;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections whose peer has not hung up. More than this, and the oldest goes: a reader hangs up at once.
const CONNECTIONS: usize = 1024;

/// Rest after a failed accept.
const BREATH: Duration = Duration::from_millis(50);

/// Enrolments kept for sessions that are not open yet.
const EARLY: usize = 1024;

/// Someone at the other end.
struct Connection {
    socket: OwnedFd,
    pid: i32,
    /// Of a JSON text that came in part.
    text: Vec<u8>,
    /// The session that this supervisor opened.
    session: Option<u64>,
}

pub struct Listener {
    socket: OwnedFd,
    connections: Vec<Connection>,
    sessions: Sessions,
    readers: Vec<Reader>,
    files: Arc<Files>,
    /// Enrolments for sessions that are not open: a reader may find a new optimizer before its supervisor does.
    early: Vec<(i32, Enrolment, Kind, Option<File>)>,
}

impl Listener {
    /// Listens in the abstract namespace: nothing is left in any file system.
    pub fn bind(name: &str) -> Result<Self, Errno> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        bind(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
        listen(&socket, Backlog::MAXCONN)?;
        Ok(Self {
            socket,
            connections: Vec::new(),
            sessions: Sessions::default(),
            readers: Vec::new(),
            files: Arc::default(),
            early: Vec::new(),
        })
    }

    /// Until there has been nothing to serve for `idle`.
    pub fn serve(mut self, idle: Duration) {
        let mut busy = Instant::now();
        loop {
            if !self.sessions.is_empty() || !self.readers.is_empty() {
                busy = Instant::now();
            } else if busy.elapsed() >= idle {
                return;
            }
            self.wait(idle);
        }
    }

    fn wait(&mut self, idle: Duration) {
        let mut polled = vec![PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        polled.extend(self.connections.iter().map(|c| PollFd::new(c.socket.as_fd(), PollFlags::POLLIN)));
        polled.extend(self.readers.iter().map(|r| PollFd::new(r.life(), PollFlags::POLLIN)));
        let timeout = PollTimeout::try_from(idle).unwrap_or(PollTimeout::MAX);
        if poll(&mut polled, timeout).is_err() {
            return;
        }
        let happened: Vec<bool> = polled.iter().map(|p| p.any().unwrap_or(true)).collect();
        // What a reader sent before it died comes first. Backwards, for a connection that ends gives its place to the last.
        for index in (0..self.connections.len()).rev().filter(|index| happened[1 + index]) {
            self.hear(index);
        }
        if happened[0] {
            self.accept();
        }
        self.bury_the_dead();
    }

    /// Takes the last news of readers that died.
    fn bury_the_dead(&mut self) {
        let mut lives: Vec<_> = self.readers.iter().map(|r| PollFd::new(r.life(), PollFlags::POLLIN)).collect();
        if lives.is_empty() || poll(&mut lives, PollTimeout::ZERO).is_err() {
            return;
        }
        let dead: Vec<bool> = lives.iter().map(|life| life.any().unwrap_or(true)).collect();
        for index in (0..dead.len()).rev().filter(|&index| dead[index]) {
            let reader = self.readers.swap_remove(index);
            self.sessions.bury(reader);
        }
    }

    fn accept(&mut self) {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        loop {
            let number = match accept4(self.socket.as_raw_fd(), flags) {
                Ok(number) => number,
                Err(Errno::EINTR | Errno::ECONNABORTED) => continue,
                Err(Errno::EAGAIN) => return,
                // Out of descriptors: whoever waits goes on waiting, and this does not spin.
                Err(_) => return std::thread::sleep(BREATH),
            };
            // SAFETY: accept4 made this descriptor for us.
            let socket = unsafe { OwnedFd::from_raw_fd(number) };
            // The abstract namespace has no file modes: who may speak is decided here.
            let Ok(peer) = getsockopt(&socket, PeerCredentials) else { continue };
            if peer.uid() != geteuid().as_raw() {
                continue;
            }
            if self.connections.len() == CONNECTIONS {
                // Never a supervisor: readers hang up by themselves, and at once.
                self.connections.iter().position(|c| c.session.is_none()).into_iter().for_each(|i| self.hang_up(i));
            }
            self.connections.push(Connection { socket, pid: peer.pid(), text: Vec::new(), session: None });
            self.hear(self.connections.len() - 1);
        }
    }

    /// Takes all datagrams of a connection, and closes it when its peer has, or makes no sense.
    fn hear(&mut self, index: usize) {
        loop {
            let Some(connection) = self.connections.get_mut(index) else { return };
            match receive(&connection.socket, &mut connection.text) {
                Receipt::Nothing => return,
                Receipt::Message(Message::Enrolment(what, kind, file)) => {
                    let pid = connection.pid;
                    self.enrol(pid, what, kind, file);
                }
                Receipt::Message(Message::Lock(notice)) => {
                    // A relative path is the process's own.
                    let folder = std::fs::read_link(format!("/proc/{}/cwd", connection.pid)).unwrap_or_default();
                    let path = folder.join(&notice.path);
                    self.with_session(notice.session, |session| session.note_lock(path, notice.private));
                }
                Receipt::Message(Message::Request(request)) => {
                    return self.answer(index, request);
                }
                Receipt::End => return self.hang_up(index),
            }
        }
    }

    /// Answers a supervisor. What its readers said before comes first, also what waits unheard.
    fn answer(&mut self, index: usize, request: Request) {
        let mut asking = self.connections.swap_remove(index);
        self.accept();
        for index in (0..self.connections.len()).rev() {
            if self.connections.get(index).is_some_and(|connection| connection.session.is_none()) {
                self.hear(index);
            }
        }
        self.bury_the_dead();
        let opened = self.sessions.answer(&asking.socket, asking.session, request, &self.readers);
        asking.session = opened.or(asking.session);
        self.connections.push(asking);
        let (now, later) = self.early.drain(..).partition(|(_, what, ..)| Some(what.session) == opened);
        self.early = later;
        for (pid, what, kind, file) in now {
            self.enrol(pid, what, kind, file);
        }
    }

    fn hang_up(&mut self, index: usize) {
        if let Some(session) = self.connections.swap_remove(index).session {
            self.sessions.close(session);
        }
    }

    fn enrol(&mut self, pid: i32, what: Enrolment, kind: Kind, file: Option<File>) {
        let knows = self.sessions.is_open(what.session)
            || self.readers.iter().any(|reader| [what.parent, what.token].contains(&reader.token()));
        if !knows {
            if self.early.len() < EARLY {
                self.early.push((pid, what, kind, file));
            }
            return;
        }
        match (kind, file) {
            (Kind::Loaded, _) => self.with_session(what.session, |session| session.loaded()),
            (Kind::Refused, Some(file)) => {
                let why = Refusal::ALL.get(what.slot as usize).copied();
                self.with_session(what.session, |session| session.refuse(&file, why));
            }
            (Kind::Reader, Some(file)) => {
                let parent = self.readers.iter().find(|reader| reader.token() == what.parent);
                match Reader::begin(pid, &file, what, parent, self.sessions.terms_of(what.session), &self.files) {
                    Ok(reader) => self.readers.push(reader),
                    Err(error) => self.with_session(what.session, |session| {
                        session.ledger().note_trouble(format!("process {pid} cannot be served: {error:#}"));
                    }),
                }
            }
            (Kind::Mapping, Some(file)) => {
                if let Some(reader) = self.readers.iter().find(|reader| reader.token() == what.token) {
                    reader.add(&what, file);
                }
            }
            (Kind::Lock, _) | (_, None) => {}
        }
    }

    fn with_session(&mut self, session: u64, change: impl FnOnce(&mut Session)) {
        if let Some(session) = self.sessions.get_mut(session) {
            change(session);
        }
    }
}
