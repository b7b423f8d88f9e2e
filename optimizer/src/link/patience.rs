//! Waiting for the other side: for long where the machine is busy, shortly for an optimizer that does nothing, or nothing but
//! work.

use super::Error;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use procfs::process::{ProcState, Process, Task};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long one that waits for a processor may take.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How long it may stand still: who starts a program, or waits for its end, is held up by less than a second.
pub const PATIENCE_WHILE_STILL: Duration = Duration::from_millis(800);

/// How much of a processor's time its first thread, the one that answers, may take without waiting for anything: less by a look,
/// so that it is over by then.
const PATIENCE_WHILE_BUSY: Duration = Duration::from_millis(700);

/// Milliseconds after which it is looked at again.
const LOOK: u16 = 100;

/// Until more can be sent.
pub fn for_room(socket: &impl AsFd) -> Result<(), Error> {
    wait(socket, PollFlags::POLLOUT)
}

/// Until the optimizer has answered.
pub fn for_answer(socket: &impl AsFd) -> Result<(), Error> {
    wait(socket, PollFlags::POLLIN)
}

fn wait(socket: &impl AsFd, what: PollFlags) -> Result<(), Error> {
    let (begun, mut before) = (Instant::now(), time_of_peer(socket));
    let mut still_since = None;
    loop {
        match poll(&mut [PollFd::new(socket.as_fd(), what)], PollTimeout::from(LOOK)) {
            Ok(0) | Err(Errno::EINTR) => {}
            done => return done.map(|_| ()).map_err(Error::from),
        }
        match (&before, time_of_peer(socket)) {
            (Some(before), Some(now)) if before.waits == now.waits => {
                if now.worked.saturating_sub(before.worked) >= PATIENCE_WHILE_BUSY {
                    return Err(Error::Busy { pid: now.pid, patience: PATIENCE_WHILE_BUSY });
                }
            }
            (_, now) => before = now,
        }
        match still_peer(socket) {
            None => still_since = None,
            Some(why) if still_since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE_WHILE_STILL => {
                return Err(why);
            }
            Some(_) => {}
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Error::Silent(PATIENCE));
        }
    }
}

/// What the first thread of the process at the other end has done so far.
struct Time {
    pid: i32,
    worked: Duration,
    /// How often it has waited for something.
    waits: Option<u64>,
}

fn time_of_peer(socket: &impl AsFd) -> Option<Time> {
    let pid = getsockopt(socket, PeerCredentials).ok()?.pid();
    let thread = Process::new(pid).ok()?.task_main_thread().ok()?;
    let (now, waits) = (thread.stat().ok()?, thread.status().ok()?.voluntary_ctxt_switches);
    let seconds = (now.utime + now.stime) as f64 / procfs::ticks_per_second() as f64;
    Some(Time { pid, worked: Duration::from_secs_f64(seconds), waits })
}

/// What is to be said of the process at the other end if a signal or a debugger has stopped it, or none of its threads has or
/// wants a processor. The first one, which answers and reads no data, may also wait for its own pages (swapped out, or throttled
/// by its memory cgroup).
fn still_peer(socket: &impl AsFd) -> Option<Error> {
    let pid = getsockopt(socket, PeerCredentials).ok()?.pid();
    let process = Process::new(pid).ok()?;
    match process.stat().and_then(|stat| stat.state()).ok()? {
        ProcState::Stopped | ProcState::Tracing => return Some(Error::Stopped(pid)),
        _ => {}
    }
    let is_at_work = |thread: Task| match thread.stat().map(|stat| stat.state) {
        Ok('R') => true,
        Ok('D') => thread.tid == pid,
        _ => false,
    };
    let is_still = !process.tasks().ok()?.flatten().any(is_at_work);
    is_still.then_some(Error::Still { pid, patience: PATIENCE_WHILE_STILL })
}
