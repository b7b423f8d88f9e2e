//! Waiting for the other side: for long where the machine is busy, shortly for an optimizer that is stopped.

use super::Error;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use procfs::process::{ProcState, Process};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long one that runs may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an optimizer may stay stopped: who starts a program, or waits for its end, is held up by less than a second.
const PATIENCE_WHILE_STOPPED: Duration = Duration::from_millis(800);

/// Milliseconds after which it is looked at again.
const LOOK: u16 = 100;

/// Until more can be sent.
pub fn for_room(socket: &impl AsFd) -> Result<(), Error> {
    wait(socket, PollFlags::POLLOUT, || Ok(()))
}

/// Until the optimizer has answered.
pub fn for_answer(socket: &impl AsFd) -> Result<(), Error> {
    let mut stopped_since = None;
    wait(socket, PollFlags::POLLIN, || {
        let Some(process) = stopped_peer(socket) else {
            stopped_since = None;
            return Ok(());
        };
        let since = *stopped_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE_WHILE_STOPPED { Ok(()) } else { Err(Error::Stopped(process)) }
    })
}

fn wait(socket: &impl AsFd, what: PollFlags, mut look: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        match poll(&mut [PollFd::new(socket.as_fd(), what)], PollTimeout::from(LOOK)) {
            Ok(0) | Err(Errno::EINTR) => look()?,
            done => return done.map(|_| ()).map_err(Error::from),
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Error::Silent(PATIENCE));
        }
    }
}

/// The process at the other end, if a signal or a debugger has stopped it.
fn stopped_peer(socket: &impl AsFd) -> Option<i32> {
    let process = getsockopt(socket, PeerCredentials).ok()?.pid();
    let state = Process::new(process).and_then(|process| process.stat()).and_then(|stat| stat.state()).ok()?;
    matches!(state, ProcState::Stopped | ProcState::Tracing).then_some(process)
}
