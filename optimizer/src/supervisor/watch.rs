//! The time between the program's start and its end: one loop over its signals, its state, and the optimizer.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{Pid, getpid};

use super::optimizer::Optimizer;
use super::sentry::Sentry;
use super::signals::{self, Inbox};

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
                Change::Stopped(signal) => stop_too(signal),
                Change::Continued => {}
            }
        }
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
    let is_lost = descriptors.get(1).is_some_and(|polled| polled.any() == Some(true));
    if let Some(optimizer) = optimizer.filter(|_| is_lost) {
        optimizer.note_loss();
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

/// Stops us as the program was stopped, so that the shell sees its job stopped, and why. Returns when somebody continues
/// us: what does so for the group has continued the program, and what is for us alone is forwarded like all else.
///
/// waitpid(2) reports a stop only while it lasts. Somebody who does not wait for our stop might end the program's
/// between that report and the next lines, and leave us stopped; shells do wait.
fn stop_too(signal: i32) {
    match Signal::try_from(signal) {
        Ok(stop @ (Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)) => deliver_to_us(stop),
        _ => deliver_to_us(Signal::SIGSTOP),
    }
}

/// Sent before it is unblocked, a signal is delivered once, also if another of its kind was pending.
fn deliver_to_us(signal: Signal) {
    let only = SigSet::from(signal);
    // These fail for invalid signals only.
    let _ = nix::sys::signal::kill(getpid(), signal);
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&only), None);
}
