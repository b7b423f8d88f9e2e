//! The sentry: a process that only stands in the program's process group.
//!
//! A signal sent to the group has reached the program already, and sending it on would deliver it twice; one sent to
//! our pid alone must be sent on. Both look alike on arrival. So a child of ours stays in the group with all signals
//! blocked: what it got too was for the group. It stays there also when the program moves to a group of its own (a shell
//! does), where the group's signals would not have reached the program without us either.
//!
//! It costs one fork of a small process, and nothing while no signal arrives. It holds no descriptor but its end of a
//! socket, and ends with that, or with us.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

use super::signals::{Arrival, Inbox};

/// How long an answer may take, before a sentry that somebody stopped is continued, and after.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Sentry {
    pid: Pid,
    line: UnixStream,
}

impl Sentry {
    /// To be posted when the program's process exists and before the program does: a signal to the group that one of
    /// the two has missed is then merged with its double, or sent on.
    pub fn post(inbox: &Inbox) -> io::Result<Self> {
        let (line, far_end) = UnixStream::pair()?;
        line.set_read_timeout(Some(PATIENCE))?;
        let supervisor = getpid();
        // SAFETY: the child only makes system calls in `stand`, and needs no lock that a thread held at the fork.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { pid: child, line }),
            ForkResult::Child => stand(supervisor, inbox, &far_end),
        }
    }

    /// What the group got since the last time.
    pub fn drain(&mut self) -> io::Result<Vec<Arrival>> {
        self.line.write_all(&[0])?;
        let mut arrivals = Vec::new();
        while let Some(arrival) = self.next_arrival()? {
            arrivals.push(arrival);
        }
        Ok(arrivals)
    }

    fn next_arrival(&mut self) -> io::Result<Option<Arrival>> {
        let mut record = [0; Arrival::LENGTH];
        if let Err(error) = self.line.read_exact(&mut record) {
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            // Somebody stopped the whole group, and continued us alone.
            kill(self.pid, Signal::SIGCONT)?;
            self.line.read_exact(&mut record)?;
        }
        Ok(Arrival::from_bytes(&record))
    }
}

impl Drop for Sentry {
    fn drop(&mut self) {
        // Both can only fail for a sentry that is gone already.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

/// The sentry's life. It allocates nothing: the fork may have happened in the midst of another thread's allocation.
fn stand(supervisor: Pid, inbox: &Inbox, line: &UnixStream) -> ! {
    let posted = prctl::set_pdeathsig(Signal::SIGKILL).is_ok() && getppid() == supervisor;
    // For those who look at the list of processes; nothing depends on it.
    let _ = prctl::set_name(c"precache-sentry");
    if posted {
        let (mut line, inbox) = keep_only(line, inbox);
        while line.read_exact(&mut [0]).is_ok() && answer(&mut line, &inbox).is_ok() {}
    }
    // SAFETY: _exit(2) runs none of the supervisor's exit handlers.
    unsafe { libc::_exit(0) }
}

fn answer(line: &mut File, inbox: &Inbox) -> io::Result<()> {
    while let Some(arrival) = inbox.next() {
        line.write_all(&arrival.to_bytes())?;
    }
    line.write_all(&[0; Arrival::LENGTH])
}

/// Moves both to the lowest descriptors and closes all others: an end of a pipe must not live on in the sentry.
fn keep_only(line: &UnixStream, inbox: &Inbox) -> (ManuallyDrop<File>, ManuallyDrop<Inbox>) {
    const LINE: i32 = 3;
    const INBOX: i32 = 4;
    // SAFETY: the copies at 10 and 11 come before anything is overwritten, whatever numbers the two have. From here
    // on this process uses no descriptor but those made here, which it never closes.
    unsafe {
        let line = libc::fcntl(line.as_raw_fd(), libc::F_DUPFD, 10);
        let inbox = libc::fcntl(inbox.as_fd().as_raw_fd(), libc::F_DUPFD, 10);
        libc::dup2(line, LINE);
        libc::dup2(inbox, INBOX);
        libc::syscall(libc::SYS_close_range, 0, LINE - 1, 0);
        libc::syscall(libc::SYS_close_range, INBOX + 1, libc::c_uint::MAX, 0);
        (ManuallyDrop::new(File::from_raw_fd(LINE)), ManuallyDrop::new(Inbox::from_raw_fd(INBOX)))
    }
}
