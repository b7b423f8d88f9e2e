//! Children that are not ours: whoever loses its parent in a PID namespace, as that of a container, is given to its first
//! process. Where the program would be that, it is us.

use nix::errno::Errno;
use nix::unistd::Pid;

/// Lets those that have ended leave the process table, but for these, whose ends others ask for.
pub fn bury(except: &[Pid]) {
    while let Some(ended) = ended().filter(|pid| !except.contains(pid)) {
        // SAFETY: nobody wants to know how.
        let buried = unsafe { libc::waitpid(ended.as_raw(), std::ptr::null_mut(), libc::WNOHANG) };
        if Errno::result(buried) != Ok(ended.as_raw()) {
            return;
        }
    }
}

/// A child that has ended, which stays as it is.
fn ended() -> Option<Pid> {
    // SAFETY: all zeros are a valid one (sigaction(2)).
    let mut child: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: it is ours to write. (nix's waitid fails for a program killed by a real-time signal.)
    let answer = unsafe { libc::waitid(libc::P_ALL, 0, &mut child, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) };
    // SAFETY: waitid sets it, or leaves the zero (wait(2)).
    let pid = unsafe { child.si_pid() };
    (answer == 0 && pid != 0).then_some(Pid::from_raw(pid))
}
