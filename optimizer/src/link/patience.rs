//! Waiting for the other side, in need alone for more than a second, and what is said of one that does not answer.

use super::Error;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use procfs::process::{ProcState, Process, Task};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long one that waits for a processor may take: who starts a program, or waits for its end, is held up by less than a second.
pub const PATIENCE: Duration = Duration::from_millis(900);

/// How long a report that was asked for may take: without it, who asked has waited for the program in vain. And how long a service
/// may take to come up for the first program of all: without it, what that maps first is never served.
pub const PATIENCE_IN_NEED: Duration = Duration::from_secs(5);

/// How long in all it may stand still, or its first thread, the one that answers, work.
pub const PATIENCE_UNHINDERED: Duration = Duration::from_millis(760);

/// After so long it is looked at again.
const LOOK: Duration = Duration::from_millis(100);

/// When it has taken too long.
#[derive(Clone, Copy)]
pub struct Deadline {
    patience: Duration,
    end: Instant,
}

impl Deadline {
    pub fn after(patience: Duration) -> Self {
        Self { patience, end: Instant::now() + patience }
    }

    /// What is left until then.
    pub fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// It has come, and nothing is known of the other side but that.
    pub fn missed(self) -> Error {
        Error::Silent(self.patience)
    }
}

/// Until more can be sent.
pub fn for_room(socket: &impl AsFd, deadline: Deadline) -> Result<(), Error> {
    wait(socket, PollFlags::POLLOUT, deadline)
}

/// Until the optimizer has answered.
pub fn for_answer(socket: &impl AsFd, deadline: Deadline) -> Result<(), Error> {
    wait(socket, PollFlags::POLLIN, deadline)
}

fn wait(socket: &impl AsFd, what: PollFlags, deadline: Deadline) -> Result<(), Error> {
    let worked_before = worked_by_peer(socket);
    let (mut looked, mut still) = (Instant::now(), Duration::ZERO);
    loop {
        let look = LOOK.min(deadline.left()).as_millis() as u16;
        match poll(&mut [PollFd::new(socket.as_fd(), what)], PollTimeout::from(look)) {
            Ok(0) | Err(Errno::EINTR) => {}
            done => return done.map(|_| ()).map_err(Error::from),
        }
        let peer = still_peer(socket);
        if peer.is_some() {
            // Of what this process slept longer nobody knows.
            still += looked.elapsed().min(LOOK);
        }
        looked = Instant::now();
        let worked = worked_by_peer(socket)
            .zip(worked_before)
            .map_or(Duration::ZERO, |(now, before)| now.saturating_sub(before));
        if still + worked >= PATIENCE_UNHINDERED {
            return Err(reason(socket, peer, still, worked));
        }
        if deadline.left() < Duration::from_millis(1) {
            // To look at it takes its time, too.
            let is_known = peer.is_some() && still >= PATIENCE_UNHINDERED / 2;
            return Err(if is_known { reason(socket, peer, still, worked) } else { deadline.missed() });
        }
    }
}

/// Why one is given up that is still now, or not, has been so for so long in all, and has worked for so long.
fn reason(socket: &impl AsFd, peer: Option<Still>, still: Duration, worked: Duration) -> Error {
    let pid = getsockopt(socket, PeerCredentials).map_or(0, |peer| peer.pid());
    let told = |time: Duration| Duration::from_millis(time.as_millis() as u64 / 100 * 100);
    match peer {
        Some(Still::Stopped) => Error::Stopped(pid),
        _ if worked > still => Error::Busy { pid, worked: told(worked) },
        _ => Error::Still { pid, still: told(still) },
    }
}

/// Time that the first thread of the process at the other end has spent at work so far.
fn worked_by_peer(socket: &impl AsFd) -> Option<Duration> {
    let pid = getsockopt(socket, PeerCredentials).ok()?.pid();
    let now = Process::new(pid).ok()?.task_main_thread().ok()?.stat().ok()?;
    Some(Duration::from_secs_f64((now.utime + now.stime) as f64 / procfs::ticks_per_second() as f64))
}

/// Whether the process at the other end does nothing.
enum Still {
    /// A signal or a debugger has stopped it.
    Stopped,
    /// None of its threads has or wants a processor.
    Idle,
}

/// The first thread, which answers and reads no data, may also wait for its own pages (swapped out, or throttled by its memory
/// cgroup): that is not idle.
fn still_peer(socket: &impl AsFd) -> Option<Still> {
    let pid = getsockopt(socket, PeerCredentials).ok()?.pid();
    let process = Process::new(pid).ok()?;
    match process.stat().and_then(|stat| stat.state()).ok()? {
        ProcState::Stopped | ProcState::Tracing => return Some(Still::Stopped),
        _ => {}
    }
    let is_at_work = |thread: Task| match thread.stat().map(|stat| stat.state) {
        Ok('R') => true,
        Ok('D') => thread.tid == pid,
        _ => false,
    };
    (!process.tasks().ok()?.flatten().any(is_at_work)).then_some(Still::Idle)
}
