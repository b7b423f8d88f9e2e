//! The socket, and the loop over everything that can happen: a connection, a datagram, a reader's death.

use super::early::{Early, What, Word};
use super::enrol::{Receipt, receive};
use super::files::Files;
use super::reader::Reader;
use super::session::{Session, Sessions};
use crate::engine::sent;
use crate::link::incoming::{Incoming, LockNotice, Said};
use crate::link::message::{Answer, DATAGRAM, Request};
use crate::link::tell;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, getsockopt, listen, socket,
};
use nix::unistd::geteuid;
use precache_contract::enrolment::Kind;
use precache_contract::segment::Refusal;
use precache_contract::uninjected::Uninjected;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections of peers that opened no session and have not hung up. More than this, and the oldest goes.
const CONNECTIONS: usize = 1024;

/// Rest after a failed accept.
const BREATH: Duration = Duration::from_millis(50);

/// Connections that are accepted before they are heard: each keeps a descriptor until it has been. And how often that goes on: by then
/// all have been who waited when it began (`net.core.somaxconn`).
const AT_ONCE: usize = 64;
const TURNS: usize = 64;

/// Someone at the other end.
struct Connection {
    socket: OwnedFd,
    pid: i32,
    heard: Incoming,
    /// To be answered before anything else is heard.
    request: Option<Request>,
    /// The session that this supervisor opened.
    session: Option<u64>,
}

pub struct Listener {
    socket: OwnedFd,
    /// The oldest first.
    connections: Vec<Connection>,
    sessions: Sessions,
    readers: Vec<Reader>,
    files: Arc<Files>,
    early: Early,
    /// Reports on their way.
    partings: Vec<JoinHandle<()>>,
    /// For a datagram.
    buffer: Vec<u8>,
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
            early: Early::default(),
            partings: Vec::new(),
            buffer: vec![0; DATAGRAM],
        })
    }

    /// Until there has been nothing to serve for `idle`.
    pub fn serve(mut self, idle: Duration) {
        sent::get_ready();
        let mut busy = Instant::now();
        loop {
            self.partings.retain(|parting| !parting.is_finished());
            sent::go_on();
            let is_awaited = !self.early.is_empty() || !self.partings.is_empty();
            if is_awaited || !self.sessions.is_empty() || !self.readers.is_empty() {
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
        self.hear();
        self.bury_the_dead();
        self.answer();
        self.early.expire(|session| self.sessions.is_open(session));
    }

    /// Takes the last news of readers that died. What they sent before that comes first: they are heard after it is known who
    /// has died.
    fn bury_the_dead(&mut self) {
        let mut lives: Vec<_> = self.readers.iter().map(|r| PollFd::new(r.life(), PollFlags::POLLIN)).collect();
        if lives.is_empty() || poll(&mut lives, PollTimeout::ZERO).is_err() {
            return;
        }
        let is_dead = |(life, reader): (&PollFd, &Reader)| life.any().unwrap_or(true).then(|| reader.token());
        let dead: Vec<u64> = lives.iter().zip(&self.readers).filter_map(is_dead).collect();
        if dead.is_empty() {
            return;
        }
        self.hear();
        let mut dead: Vec<_> = self.readers.extract_if(.., |reader| dead.contains(&reader.token())).collect();
        // All of them at once: others wait to be heard meanwhile.
        dead.iter_mut().for_each(Reader::note_death);
        dead.into_iter().for_each(|reader| self.sessions.bury(reader));
    }

    /// Takes what has been said until now, also by those who wait to be accepted.
    fn hear(&mut self) {
        self.hear_accepted();
        for _ in 0..TURNS {
            if self.accept() == 0 {
                return;
            }
            self.hear_accepted();
        }
    }

    /// The oldest first: a process that announces a mapping has mostly said who it is over a connection before.
    fn hear_accepted(&mut self) {
        let mut connections = std::mem::take(&mut self.connections);
        connections.retain_mut(|connection| {
            let stays = self.hear_one(connection);
            if !stays && let Some(session) = connection.session {
                self.sessions.close(session);
            }
            stays
        });
        self.connections = connections;
    }

    /// Takes all datagrams of a connection up to a request. False, when its peer has closed it, or makes no sense.
    fn hear_one(&mut self, connection: &mut Connection) -> bool {
        let pid = connection.pid;
        while connection.request.is_none() {
            match receive(&connection.socket, &mut connection.heard, &mut self.buffer) {
                Receipt::Nothing => return true,
                Receipt::Message(Said::Enrolment(what, kind), file) => {
                    self.take(Word { pid, session: what.session, what: What::Enrolment(what, kind, file) });
                }
                Receipt::Message(Said::Lock(LockNotice { session, path, private }), _) => {
                    // A relative path is the process's own.
                    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
                    self.take(Word { pid, session, what: What::Lock { path: folder.join(path), private } });
                }
                Receipt::Message(Said::Request(request), _) => connection.request = Some(request),
                Receipt::End => return false,
            }
        }
        true
    }

    /// Some of those who wait; how many.
    fn accept(&mut self) -> usize {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let mut unknown = self.connections.iter().filter(|connection| connection.session.is_none()).count();
        let mut accepted = 0;
        while accepted < AT_ONCE {
            // Those who asked are answered first.
            if unknown >= CONNECTIONS && !self.hang_up_on_the_oldest() {
                break;
            }
            let number = match accept4(self.socket.as_raw_fd(), flags) {
                Ok(number) => number,
                Err(Errno::EINTR | Errno::ECONNABORTED) => continue,
                Err(Errno::EAGAIN) => break,
                // Those who were accepted are heard, and most hang up then.
                Err(Errno::EMFILE | Errno::ENFILE) if accepted > 0 => break,
                Err(Errno::EMFILE) if self.hang_up_on_the_oldest() => continue,
                // Out of descriptors: whoever waits goes on waiting, and this does not spin.
                Err(_) => {
                    std::thread::sleep(BREATH);
                    break;
                }
            };
            accepted += 1;
            // SAFETY: accept4 made this descriptor for us.
            let socket = unsafe { OwnedFd::from_raw_fd(number) };
            // The abstract namespace has no file modes: who may speak is decided here.
            let Ok(peer) = getsockopt(&socket, PeerCredentials) else { continue };
            if peer.uid() != geteuid().as_raw() {
                continue;
            }
            let (heard, request, session) = (Incoming::default(), None, None);
            self.connections.push(Connection { socket, pid: peer.pid(), heard, request, session });
            unknown = (unknown + 1).min(CONNECTIONS);
        }
        accepted
    }

    /// Never a supervisor: readers hang up by themselves, and at once. False, if there is nobody else.
    fn hang_up_on_the_oldest(&mut self) -> bool {
        let oldest = self.connections.iter().position(|c| c.session.is_none() && c.request.is_none());
        oldest.map(|index| self.connections.remove(index)).is_some()
    }

    /// Answers the supervisors that asked. What their readers said before comes first, also what waits unheard.
    fn answer(&mut self) {
        loop {
            let asking: Vec<_> = self.connections.extract_if(.., |connection| connection.request.is_some()).collect();
            if asking.is_empty() {
                return;
            }
            self.hear();
            self.bury_the_dead();
            for mut connection in asking {
                let Some(request) = connection.request.take() else { continue };
                match self.sessions.answer(connection.session, request, &self.readers) {
                    // A supervisor that hung up meanwhile may have asked anew.
                    Ok(session) if tell(&connection.socket, &Answer::Opened).is_err() => self.sessions.close(session),
                    Ok(session) => {
                        connection.session = Some(session);
                        self.connections.push(connection);
                        self.take_early(session);
                    }
                    Err(last) => self.part_from(connection, last),
                }
            }
        }
    }

    /// Says what is left to be said, and hangs up.
    fn part_from(&mut self, connection: Connection, last: Answer) {
        connection.session.into_iter().for_each(|session| self.sessions.close(session));
        let is_report = matches!(last, Answer::Report(_));
        let parting = move || drop(tell(&connection.socket, &last));
        if is_report {
            // It may be more than the socket holds, and the supervisor may read slowly or never: that is waited for
            // elsewhere. Without a thread it gets no answer, and says so.
            let thread = std::thread::Builder::new().name("report".into()).stack_size(256 << 10);
            self.partings.extend(thread.spawn(parting));
        } else {
            parting();
        }
    }

    /// What was said before the session was open.
    fn take_early(&mut self, session: u64) {
        let (words, lost) = self.early.of_session(session);
        words.into_iter().for_each(|word| self.take(word));
        if let Some(count) = lost {
            self.note_trouble(session, format!("{count} enrolments came too early: not all is served or told"));
        }
    }

    /// Whether it is known whom the word is about.
    fn knows(&self, word: &Word) -> bool {
        let has_reader = |tokens: &[u64]| tokens.iter().any(|&token| self.reader(token).is_some());
        match (&word.what, word.mapped_by()) {
            (_, Some(token)) => has_reader(&[token]),
            (What::Enrolment(what, ..), _) => {
                self.sessions.is_open(word.session) || has_reader(&[what.parent, what.token])
            }
            (What::Lock { .. }, _) => self.sessions.is_open(word.session),
        }
    }

    fn reader(&self, token: u64) -> Option<&Reader> {
        self.readers.iter().find(|reader| reader.token() == token)
    }

    fn take(&mut self, word: Word) {
        if !self.knows(&word) {
            return self.early.keep(word);
        }
        let (what, kind, file) = match word.what {
            What::Enrolment(what, kind, file) => (what, kind, file),
            What::Lock { path, private } => {
                return self.with_session(word.session, |session| session.note_lock(path, private));
            }
        };
        let pid = word.pid;
        match (kind, file) {
            (Kind::Loaded, _) => self.with_session(what.session, |session| session.loaded()),
            (Kind::Refused, Some(file)) => {
                let why = Refusal::ALL.get(what.slot as usize).copied();
                self.with_session(what.session, |session| session.refuse(&file, why));
            }
            (Kind::Uninjected, Some(program)) => {
                let why = Uninjected::ALL.get(what.slot as usize).copied();
                self.with_session(what.session, |session| session.note_uninjected(&program, why));
            }
            // A token names one reader.
            (Kind::Reader, _) if self.reader(what.token).is_some() => {}
            (Kind::Reader, Some(file)) => {
                let parent = self.reader(what.parent);
                match Reader::begin(pid, &file, what, parent, self.sessions.terms_of(what.session), &self.files) {
                    Ok(reader) => {
                        self.readers.push(reader);
                        file.close_memory();
                        self.early.of_reader(what.token).into_iter().for_each(|word| self.take(word));
                    }
                    Err(error) => {
                        self.early.forget(what.token);
                        self.note_trouble(what.session, format!("process {pid} cannot be served: {error:#}"));
                    }
                }
            }
            (Kind::Mapping, Some(file)) => {
                if let Some(reader) = self.reader(what.token) {
                    reader.add(&what, file);
                }
            }
            (Kind::Reader | Kind::Mapping | Kind::Refused | Kind::Uninjected, None) => {
                match kind {
                    Kind::Reader => self.early.forget(what.token),
                    Kind::Mapping => self.reader(what.token).into_iter().for_each(|reader| reader.let_go(&what)),
                    _ => {}
                }
                let what_came = format!("a file of process {pid} did not arrive: the optimizer may have too many open");
                self.note_trouble(what.session, what_came);
            }
            (Kind::Lock, _) => {}
        }
    }

    fn note_trouble(&mut self, session: u64, what: String) {
        self.with_session(session, |session| session.ledger().note_trouble(what));
    }

    fn with_session(&mut self, session: u64, change: impl FnOnce(&mut Session)) {
        if let Some(session) = self.sessions.get_mut(session) {
            change(session);
        }
    }
}

#[cfg(test)]
mod tests;
