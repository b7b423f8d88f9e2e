//! The time between the program's start and its end: one loop over its signals, its state, and the optimizer.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;

use super::optimizer::Optimizer;
use super::orphans;
use super::sentry::Sentry;
use super::signals::{self, Inbox};
use super::stop;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Killed(i32),
}

enum Change {
    Ended(End),
    Stopped(i32),
    Continued,
}

pub fn until_end(inbox: &Inbox, mut sentry: Option<Sentry>, reader: Pid, mut optimizer: Option<&mut Optimizer>) -> End {
    loop {
        await_news(inbox, optimizer.as_deref_mut());
        signals::forward(inbox, &mut sentry, reader);
        while let Some(change) = state_change(reader) {
            match change {
                Change::Ended(end) => return end,
                Change::Stopped(signal) => stop::follow(signal, reader),
                Change::Continued => {}
            }
        }
        orphans::bury(&[reader, sentry.as_ref().map_or(reader, Sentry::pid)]);
        if let Some(optimizer) = optimizer.as_deref_mut() {
            optimizer.restart_if_due();
        }
    }
}

fn await_news(inbox: &Inbox, optimizer: Option<&mut Optimizer>) {
    let optimizer_descriptor = optimizer.as_ref().and_then(|optimizer| optimizer.descriptor());
    let mut descriptors: Vec<PollFd> = [Some(inbox.as_fd()), optimizer_descriptor]
        .into_iter()
        .flatten()
        .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN))
        .collect();
    let timeout = optimizer.as_ref().and_then(|optimizer| optimizer.time_to_restart());
    // It fails for want of memory only; the loop then looks at everything, and comes back.
    let _ = poll(&mut descriptors, timeout.map_or(PollTimeout::NONE, rounded_up));
    let has_news = descriptors.get(1).is_some_and(|polled| polled.any() == Some(true));
    if let Some(optimizer) = optimizer.filter(|_| has_news) {
        optimizer.note_news();
    }
}

/// To whole milliseconds, so that the wait does not end just before the time has come.
fn rounded_up(duration: Duration) -> PollTimeout {
    PollTimeout::try_from(duration + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
}

fn state_change(reader: Pid) -> Option<Change> {
    let mut status = 0;
    let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    // SAFETY: the status is ours to write. (nix's waitpid fails for a program killed by a real-time signal.)
    let changed = unsafe { libc::waitpid(reader.as_raw(), &mut status, flags) };
    if changed != reader.as_raw() {
        return None;
    }
    Some(if libc::WIFEXITED(status) {
        Change::Ended(End::Exited(libc::WEXITSTATUS(status)))
    } else if libc::WIFSIGNALED(status) {
        Change::Ended(End::Killed(libc::WTERMSIG(status)))
    } else if libc::WIFSTOPPED(status) {
        Change::Stopped(libc::WSTOPSIG(status))
    } else {
        Change::Continued
    })
}
