//! Signals on their way to the program.
//!
//! The supervisor has no opinion on any signal: all are blocked here and read from a descriptor, and what the program
//! did not get by itself is sent on, so that its own dispositions decide. (Handlers would not do: a pending SIGCONT and a
//! pending stop signal end each other in the kernel, and what a handler has taken is pending no more.)
//!
//! What did the program get by itself? What was sent to the process group: a key on the terminal, a hangup, but also
//! `kill -TERM -PGID` from `timeout`, a shell's `kill %1`, or a batch system, which nothing in a signal tells apart
//! from `kill -TERM PID`. The [`Sentry`] knows: see there.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::{io, iter};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::unistd::{Pid, getpid, getppid, setpgid};

use super::sentry::Sentry;

/// One received signal, as far as it tells where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub signal: i32,
    pub code: i32,
    pub sender: i32,
    pub value: u64,
}

impl Arrival {
    pub const LENGTH: usize = 20;

    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0..4].copy_from_slice(&self.signal.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.code.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sender.to_ne_bytes());
        bytes[12..20].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }

    /// There is no signal 0: it stands for the end of a list.
    pub fn from_bytes(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let [signal, code, sender] = [0, 4, 8].map(|at| i32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i])));
        let value = u64::from_ne_bytes(std::array::from_fn(|i| bytes[12 + i]));
        (signal != 0).then_some(Self { signal, code, sender, value })
    }

    fn is_stop(self) -> bool {
        matches!(self.signal, libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
    }

    /// Whether an earlier one that still waited would have been ended by this one, or merged with it: signal(7).
    fn ends(self, earlier: Self) -> bool {
        match self.signal {
            libc::SIGCONT => earlier.is_stop() || earlier.signal == self.signal,
            _ => self.is_stop() && (earlier.signal == libc::SIGCONT || earlier.signal == self.signal),
        }
    }
}

impl From<siginfo> for Arrival {
    fn from(info: siginfo) -> Self {
        Self { signal: info.ssi_signo as i32, code: info.ssi_code, sender: info.ssi_pid as i32, value: info.ssi_ptr }
    }
}

/// Our own incoming signals, all of them.
#[derive(Debug)]
pub struct Inbox {
    descriptor: SignalFd,
}

impl Inbox {
    /// From here on no signal but KILL and STOP does anything to the calling process.
    pub fn open() -> Result<Self, Errno> {
        // Where the parent ignored SIGCHLD, the kernel would reap the program and its status with it.
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default disposition runs no code.
        unsafe { sigaction(Signal::SIGCHLD, &default) }?;
        let all = SigSet::all();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), None)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        SignalFd::with_flags(&all, flags).map(|descriptor| Self { descriptor })
    }

    /// The same for a descriptor that `open` made, under another number.
    ///
    /// # Safety
    /// The descriptor must be open, and the caller's to use.
    pub unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: the caller's promise.
        let descriptor = unsafe { SignalFd::from_owned_fd(OwnedFd::from_raw_fd(fd)) };
        Self { descriptor }
    }

    /// The next signal pending for the calling process, which need not be the one that opened the inbox.
    pub fn next(&self) -> Option<Arrival> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        Some(Arrival::from(info))
    }

    /// All that has arrived so far.
    pub fn drain(&self) -> Vec<Arrival> {
        iter::from_fn(|| self.next()).collect()
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Sends on what has arrived and the program did not get by itself.
pub fn forward(inbox: &Inbox, sentry: &mut Option<Sentry>, reader: Pid) {
    let mut arrivals = Vec::new();
    if !receive(inbox, &mut arrivals) {
        return;
    }
    let withheld = sentry.as_mut().is_some_and(|sentry| withhold_group(&mut arrivals, inbox, sentry).is_ok());
    if !withheld {
        // Without a sentry (it was killed) the kernel's own are taken for the terminal's, and all others for ours alone.
        *sentry = None;
        arrivals.retain(|arrival| arrival.code <= 0);
    }
    for arrival in arrivals {
        deliver(arrival, reader);
    }
}

/// Adds what has arrived for the program. Returns whether anything has: neither news of our children, nor what we sent
/// ourselves (a stop of ours, SIGPIPE for a line on stderr).
fn receive(inbox: &Inbox, arrivals: &mut Vec<Arrival>) -> bool {
    let own = getpid().as_raw();
    let news = inbox.drain().into_iter().filter(|arrival| arrival.signal != libc::SIGCHLD && arrival.sender != own);
    let mut is_any = false;
    for later in news {
        queue(arrivals, later);
        is_any = true;
    }
    is_any
}

/// Of the signals that stop and continue, the last decides, as in the kernel's queues: also between two that are read one
/// right after the other. Where the group got one of them, the sentry's record may have ended in just that way (also by a
/// SIGSTOP, which no one reads), so that nothing would withhold it, and the program would go on in the midst of a stop.
fn queue(signals: &mut Vec<Arrival>, later: Arrival) {
    signals.retain(|earlier| !later.ends(*earlier));
    signals.push(later);
}

/// Removes what the sentry got as well. The loop ends when nothing has arrived between the barriers around the look
/// at the sentry: then each signal to the group is on both lists or on neither.
fn withhold_group(arrivals: &mut Vec<Arrival>, inbox: &Inbox, sentry: &mut Sentry) -> io::Result<()> {
    let mut group = Vec::new();
    loop {
        await_group_delivery();
        // A record that has ended must not withhold what came after. Two of one signal both stay: which of them is the one that
        // ours have merged into nobody knows.
        for later in sentry.drain()? {
            group.retain(|earlier: &Arrival| earlier.signal == later.signal || !later.ends(*earlier));
            group.push(later);
        }
        await_group_delivery();
        // Twice: a SIGSTOP in the midst of a look ends the SIGCONT that it would have found, and the SIGCONT that ends this
        // stop waits for the next look.
        if !receive(inbox, arrivals) && !receive(inbox, arrivals) {
            break;
        }
    }
    remove_group(arrivals, group);
    Ok(())
}

/// Standard signals merge while they are pending, and those that stop and continue until this. So one to us alone that follows
/// the same one to the group is lost in it, as it would be in a program to which that is pending; and when two to the group
/// merge for the sentry between two looks of ours, the second reaches the program once more.
fn remove_group(arrivals: &mut Vec<Arrival>, mut group: Vec<Arrival>) {
    arrivals.retain(|arrival| match group.iter().position(|other| other == arrival) {
        Some(at) => {
            group.swap_remove(at);
            false
        }
        None => true,
    });
}

/// Returns when no signal to a process group is under way to some members and not yet to others.
///
/// kill(2) of a group holds the kernel's `tasklist_lock` for reading until every member has it queued, and so does
/// the terminal; setpgid(2) takes that lock for writing before it looks at anything. Then it fails (EPERM): no process
/// group has a number beyond pid_max. Should a kernel ever do without that lock, a signal to the group might rarely
/// reach the program twice, and never be lost: a record of the sentry is only compared with what arrived by then.
fn await_group_delivery() {
    // Always fails, as described.
    let _ = setpgid(Pid::from_raw(0), Pid::from_raw(i32::MAX));
}

fn deliver(arrival: Arrival, reader: Pid) {
    // What the program sends to its parent is meant for the one that it would have had.
    let receiver = match arrival.sender == reader.as_raw() && arrival.code <= 0 {
        true => getppid(),
        false => reader,
    };
    // Zero is a parent outside of our pid namespace, and one is init, who did not start us.
    if receiver.as_raw() <= 1 {
        return;
    }
    let value = libc::sigval { sival_ptr: arrival.value as *mut libc::c_void };
    // SAFETY: both calls only send. They may fail for a program that has just ended, which waitpid will tell, or that
    // has become another user's, which the sender could not have signalled either.
    unsafe {
        match arrival.code {
            libc::SI_QUEUE => libc::sigqueue(receiver.as_raw(), arrival.signal, value),
            _ => libc::kill(receiver.as_raw(), arrival.signal),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(signal: i32, sender: i32) -> Arrival {
        Arrival { signal, code: libc::SI_USER, sender, value: 0 }
    }

    fn left(mut arrivals: Vec<Arrival>, group: Vec<Arrival>) -> Vec<Arrival> {
        remove_group(&mut arrivals, group);
        arrivals
    }

    #[test]
    fn what_the_group_got_is_withheld() {
        let (term, int) = (arrival(libc::SIGTERM, 7), arrival(libc::SIGINT, 7));
        assert_eq!(left(vec![term, int], vec![int]), [term]);
        assert_eq!(left(vec![term], vec![]), [term]);
        assert_eq!(left(vec![term], vec![arrival(libc::SIGTERM, 8)]), [term]);
    }

    #[test]
    fn the_later_of_stop_and_continue_decides() {
        let [tstp, ttin, go, usr] =
            [libc::SIGTSTP, libc::SIGTTIN, libc::SIGCONT, libc::SIGUSR1].map(|signal| arrival(signal, 7));
        let mut arrivals = Vec::new();
        for (later, left) in [
            (usr, vec![usr]),
            (go, vec![usr, go]),
            (tstp, vec![usr, tstp]),
            (ttin, vec![usr, tstp, ttin]),
            (usr, vec![usr, tstp, ttin, usr]),
            (go, vec![usr, usr, go]),
            (go, vec![usr, usr, go]),
        ] {
            queue(&mut arrivals, later);
            assert_eq!(arrivals, left);
        }
    }

    #[test]
    fn of_two_that_merge_the_later_stays() {
        for signal in [libc::SIGCONT, libc::SIGTSTP] {
            let (earlier, later) = (arrival(signal, 7), arrival(signal, 8));
            let mut arrivals = vec![earlier];
            queue(&mut arrivals, later);
            assert_eq!(arrivals, [later]);
        }
    }

    #[test]
    fn each_record_withholds_one() {
        let usr = arrival(libc::SIGUSR1, 7);
        assert_eq!(left(vec![usr, usr], vec![usr]), [usr]);
        assert_eq!(left(vec![usr], vec![usr, usr]), []);
    }
}
