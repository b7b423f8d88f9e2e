//! A stop of the program is a stop of ours, so that the shell sees its job stopped, and why; and it lasts no longer.
//!
//! Who continues the process group, as shells do, continues both. But who stopped the program alone (cpulimit, `kill -STOP
//! PID`) continues or kills it alone, and a stopped process learns nothing of its child. So a child of ours that is not in
//! the group, the waker, looks at both as long as the stop lasts, and continues us when the program is not stopped.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setsid};

/// Milliseconds between looks of the waker: waits that a user hardly notices, and work that a machine does not. Of several
/// lengths, for who stops and continues the program by a clock of its own might have it stopped at each look.
const BETWEEN_LOOKS: [u64; 4] = [37, 61, 89, 113];

/// Stops us by the signal that stopped the program. Returns when we are continued: what does so for the group has continued
/// the program, and what is for us alone is forwarded like all else.
pub fn follow(signal: i32, reader: Pid) {
    let signal = match Signal::try_from(signal) {
        Ok(stop @ (Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)) => stop,
        _ => Signal::SIGSTOP,
    };
    // Without one (no memory, no /proc) our stop ends with the group's.
    let waker = Waker::post(reader);
    deliver_to_us(signal);
    drop(waker);
}

/// Sent before it is unblocked, a signal is delivered once, also if another of its kind was pending.
fn deliver_to_us(signal: Signal) {
    let only = SigSet::from(signal);
    // These fail for invalid signals only.
    let _ = kill(getpid(), signal);
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&only), None);
}

struct Waker {
    pid: Pid,
}

impl Waker {
    fn post(reader: Pid) -> io::Result<Self> {
        let supervisor = getpid();
        // Opened here, for the child may not allocate.
        let (ours, programs) = (Status::of(supervisor)?, Status::of(reader)?);
        // SAFETY: the child only makes system calls in `wake`, and needs no lock that a thread held at the fork.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { pid: child }),
            ForkResult::Child => wake(supervisor, &ours, &programs),
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        // Both can only fail for a waker that is gone already.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

/// The waker's life. It ends with us, so that nothing lives on in the descriptors that it shares with us.
fn wake(supervisor: Pid, ours: &Status, programs: &Status) -> ! {
    let posted = prctl::set_pdeathsig(Signal::SIGKILL).is_ok() && getppid() == supervisor && setsid().is_ok();
    // For those who look at the list of processes; nothing depends on it.
    let _ = prctl::set_name(c"precache-waker");
    // The program is our sibling, and nobody reaps it while we look: its status is never another process's. The supervisor ends
    // this when it goes on; until then it may be stopped once more.
    for wait in BETWEEN_LOOKS.iter().cycle().take_while(|_| posted) {
        if ours.is_stopped() && !programs.is_stopped() {
            continue_as_itself(supervisor);
        }
        std::thread::sleep(Duration::from_millis(*wait));
    }
    // SAFETY: _exit(2) runs none of the supervisor's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Fields between the state and the number of threads.
const THREADS_AFTER_STATE: usize = 16;

/// What a process does, open for reading again and again: proc_pid_stat(5).
struct Status(File);

impl Status {
    fn of(pid: Pid) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/stat")).map(Self)
    }

    /// By a signal or a debugger; as far as its first thread tells, and else it is taken for stopped.
    fn is_stopped(&self) -> bool {
        let mut text = [0; 1024];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        // The name is anything in parentheses, and what follows has none.
        let mut parts = text[..read].rsplitn(2, |byte| *byte == b')');
        let mut fields = parts.next().unwrap_or_default().split(|byte| *byte == b' ').skip(1);
        match fields.next() {
            Some(b"T" | b"t") => true,
            // The threads, without those that have ended, of which the first is one.
            Some(b"Z") => fields.nth(THREADS_AFTER_STATE).is_some_and(|threads| !matches!(threads, b"0" | b"1")),
            _ => false,
        }
    }
}

/// SIGCONT in the process's own name, by which it knows that the signal is not for the program.
fn continue_as_itself(pid: Pid) {
    /// `siginfo_t` as signalfd(2) reads it of rt_sigqueueinfo(2), with what the kernel keeps of it.
    #[repr(C)]
    struct Information {
        signal: i32,
        errno: i32,
        code: i32,
        sender: libc::c_long,
        rest: [u64; 13],
    }
    const { assert!(size_of::<Information>() == size_of::<libc::siginfo_t>()) };
    let information = Information {
        signal: libc::SIGCONT,
        errno: 0,
        code: libc::SI_QUEUE,
        sender: pid.as_raw().into(),
        rest: [0; 13],
    };
    // SAFETY: the kernel reads one siginfo_t, which this is as large as: the three numbers, and at 16, where a union of
    // pointers begins, the sender's pid and uid (asm-generic/siginfo.h).
    unsafe { libc::syscall(libc::SYS_rt_sigqueueinfo, pid.as_raw(), libc::SIGCONT, &information) };
}
