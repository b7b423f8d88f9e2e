//! The sentry: a process that only stands in the program's process group.
//!
//! A signal sent to the group has reached the program already, and sending it on would deliver it twice; one sent to
//! our pid alone must be sent on. Both look alike on arrival. So a child of ours stays in the group with all signals
//! blocked: what it got too was for the group. It stays there also when the program moves to a group of its own (a shell
//! does), where the group's signals would not have reached the program without us either.
//!
//! It costs one fork of a small process, and nothing while no signal arrives. It holds no descriptors but its end of a
//! socket, the signals' and the program's, and ends when we let it go. If we die instead, the program dies, too: also one
//! that has changed its user since, from which the kernel takes the wish to die with us (PR_SET_PDEATHSIG(2const)).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::signals::{Arrival, Inbox};
use crate::process;

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
    pub fn post(inbox: &Inbox, program: Pid) -> io::Result<Self> {
        let (line, far_end) = UnixStream::pair()?;
        line.set_read_timeout(Some(PATIENCE))?;
        // Before Linux 5.3 there is none.
        let program = process::open(program.as_raw()).ok();
        // SAFETY: the child only makes system calls in `stand`, and needs no lock that a thread held at the fork.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { pid: child, line }),
            ForkResult::Child => {
                // Its own copy would keep the line open when we have died.
                drop(line);
                stand(inbox, &far_end, program.as_ref())
            }
        }
    }

    pub fn pid(&self) -> Pid {
        self.pid
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
fn stand(inbox: &Inbox, line: &UnixStream, program: Option<&OwnedFd>) -> ! {
    // If somebody has stopped us, it is to end that: the signal is blocked, and continues us all the same (signal(7)).
    let _ = prctl::set_pdeathsig(Signal::SIGCONT);
    // For those who look at the list of processes; nothing depends on it.
    let _ = prctl::set_name(c"precache-sentry");
    if let Some(mut kept) = Kept::only(inbox, line, program)
        && kept.serve().is_err_and(|error| is_death(&error))
    {
        kept.kill_program();
    }
    // SAFETY: _exit(2) runs none of the supervisor's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Whether the other end of the line is gone, and the supervisor with it: as long as it lives it has that open (unix(7)).
fn is_death(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// What a sentry holds, at the lowest descriptors.
struct Kept {
    line: ManuallyDrop<File>,
    inbox: ManuallyDrop<Inbox>,
    program: Option<RawFd>,
}

impl Kept {
    /// Moves them there and closes all others: an end of a pipe must not live on in the sentry. `None`: there is no place
    /// for them.
    fn only(inbox: &Inbox, line: &UnixStream, program: Option<&OwnedFd>) -> Option<Self> {
        const LINE: RawFd = 3;
        const INBOX: RawFd = 4;
        const PROGRAM: RawFd = 5;
        let moved = [line.as_raw_fd(), inbox.as_fd().as_raw_fd(), program.map_or(-1, AsRawFd::as_raw_fd)];
        // SAFETY: the copies at 10 and above come before anything is overwritten, whatever numbers they have. From here on
        // this process uses no descriptor but those made here, which it never closes.
        unsafe {
            let [line, inbox, program] = moved.map(|number| libc::fcntl(number, libc::F_DUPFD, 10));
            if line < 0 || inbox < 0 {
                return None;
            }
            libc::dup2(line, LINE);
            libc::dup2(inbox, INBOX);
            let program = (program >= 0).then(|| libc::dup2(program, PROGRAM));
            libc::syscall(libc::SYS_close_range, 0, LINE - 1, 0);
            libc::syscall(libc::SYS_close_range, program.unwrap_or(INBOX) + 1, libc::c_uint::MAX, 0);
            let (line, inbox) = (File::from_raw_fd(LINE), Inbox::from_raw_fd(INBOX));
            Some(Self { line: ManuallyDrop::new(line), inbox: ManuallyDrop::new(inbox), program })
        }
    }

    /// Answers until that fails.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.line.read_exact(&mut [0])?;
            while let Some(arrival) = self.inbox.next() {
                self.line.write_all(&arrival.to_bytes())?;
            }
            self.line.write_all(&[0; Arrival::LENGTH])?;
        }
    }

    /// It may have ended long ago, or be another user's that this one may not signal.
    fn kill_program(&self) {
        if let Some(program) = self.program {
            // SAFETY: pidfd_send_signal(2) reads nothing where no siginfo is given.
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, program, libc::SIGKILL, 0, 0) };
        }
    }
}
