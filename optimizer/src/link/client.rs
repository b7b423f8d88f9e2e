//! A session with the optimizer: asked for, opened, finished. It is asked for in time, and may be opened later: who starts a
//! program does not wait for a processor on which the optimizer could answer.

use super::message::{Answer, Request};
use super::patience::{Deadline, PATIENCE, PATIENCE_IN_NEED};
use super::{Error, listen, name, reach, send_by, start};
use crate::options::RunOptions;
use crate::report::SessionReport;
use nix::errno::Errno;
use nix::unistd::geteuid;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A session.
pub struct Client {
    line: Line,
    name: String,
    session: u64,
    options: RunOptions,
}

/// The connection over which a session is opened.
enum Line {
    /// There is none yet.
    None,
    /// It has been asked for, and not been answered.
    Asked(OwnedFd),
    Open(OwnedFd),
}

impl Client {
    /// Opens a session, with an optimizer started for it if none runs. One that gets no processor opens it later
    /// ([`is_asked`](Self::is_asked)), or has not been reached ([`restart`](Self::restart)).
    pub fn start(options: &RunOptions) -> Result<Self, Error> {
        Self::start_at(name::of_this_place(geteuid()), options)
    }

    /// The same with the optimizer of this name.
    pub fn start_at(name: String, options: &RunOptions) -> Result<Self, Error> {
        let mut client = Self { line: Line::None, name, session: name::random(), options: options.clone() };
        match client.open(false) {
            Ok(()) | Err(Error::Silent(_)) => Ok(client),
            Err(why) => Err(why),
        }
    }

    /// Name of the socket in the abstract namespace, without the leading zero byte.
    pub fn socket_name(&self) -> &str {
        &self.name
    }

    pub fn session(&self) -> u64 {
        self.session
    }

    /// Readable when the optimizer has something to say, or is gone.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.line {
            Line::None => None,
            Line::Asked(socket) | Line::Open(socket) => Some(socket.as_fd()),
        }
    }

    /// Whether the session is still to be opened by the optimizer.
    pub fn is_asked(&self) -> bool {
        matches!(self.line, Line::Asked(_))
    }

    /// Opens the session again after the optimizer's death.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.open(true)
    }

    /// Ends the session, and waits for its report so long.
    pub fn finish(mut self, patience: Duration) -> Result<SessionReport, Error> {
        let deadline = Deadline::after(patience);
        self.hear(deadline)?;
        let Line::Open(socket) = &self.line else { return Err(deadline.missed()) };
        send_by(socket, &Request::Finish, deadline)?;
        match listen(socket, deadline)? {
            Answer::Report(report) => Ok(*report),
            Answer::Refused { why } => Err(Error::Refused(why)),
            Answer::Opened => Err(Error::HungUp),
        }
    }

    /// Hears what the optimizer has said to what it was asked.
    pub fn note_answer(&mut self) -> Result<(), Error> {
        self.hear(Deadline::after(PATIENCE))
    }

    /// Connects and opens the session. An optimizer that ends as idle in just this moment is replaced.
    fn open(&mut self, again: bool) -> Result<(), Error> {
        let mut tries = 3;
        loop {
            tries -= 1;
            match self.ask(again).and_then(|()| self.hear(Deadline::after(PATIENCE))) {
                Err(Error::HungUp | Error::Socket(Errno::ECONNREFUSED | Errno::EPIPE | Errno::ECONNRESET))
                    if tries > 0 => {}
                // It has been asked, and answers when it gets a processor.
                Err(Error::Silent(_)) if self.is_asked() => return Ok(()),
                other => return other,
            }
        }
    }

    fn ask(&mut self, again: bool) -> Result<(), Error> {
        self.line = Line::None;
        let socket = match reach(&self.name, Deadline::after(PATIENCE)) {
            Err(Error::Socket(Errno::ECONNREFUSED)) => {
                // One that died is looked for again, if its successor is not there in time.
                let deadline = Deadline::after(if again { PATIENCE } else { PATIENCE_IN_NEED });
                start::optimizer(&self.name, deadline).map_err(|error| match error.kind() {
                    ErrorKind::TimedOut => deadline.missed(),
                    _ => Error::Start(error),
                })?;
                reach(&self.name, Deadline::after(PATIENCE))?
            }
            other => other?,
        };
        let version = precache_contract::VERSION;
        let request = Request::Open { version, session: self.session, options: self.options.clone(), again };
        send_by(&socket, &request, Deadline::after(PATIENCE))?;
        self.line = Line::Asked(socket);
        Ok(())
    }

    fn hear(&mut self, deadline: Deadline) -> Result<(), Error> {
        let Line::Asked(socket) = &self.line else { return Ok(()) };
        match listen(socket, deadline)? {
            Answer::Opened => {}
            Answer::Refused { why } => return Err(Error::Refused(why)),
            Answer::Report(_) => return Err(Error::HungUp),
        }
        if let Line::Asked(socket) = std::mem::replace(&mut self.line, Line::None) {
            self.line = Line::Open(socket);
        }
        Ok(())
    }
}
