//! Becoming nobody's child: no terminal, no inherited descriptors, signal settings or CPU binding.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::unistd::{ForkResult, Pid, fork};
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;

/// Where the starter waits for a word.
pub struct Starter(Option<File>);

impl Starter {
    /// Says how it went; the starter goes on.
    pub fn tell(self, word: &str) {
        if let Some(mut file) = self.0 {
            // A starter that is gone needs no answer.
            let _ = file.write_all(word.as_bytes());
        }
    }
}

/// Detaches from whoever started the process. Call while it has one thread.
pub fn detach(ready: Option<i32>) -> anyhow::Result<Starter> {
    // SAFETY: the process has one thread, so the child may do anything; the parent ends without running destructors
    // that the child needs.
    if let ForkResult::Parent { .. } = unsafe { fork() }? {
        std::process::exit(0);
    }
    close_all_but(ready);
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    for number in Signal::iterator().filter(|s| ![Signal::SIGKILL, Signal::SIGSTOP].contains(s)) {
        let wanted = if number == Signal::SIGPIPE { SigHandler::SigIgn } else { SigHandler::SigDfl };
        // SAFETY: neither disposition runs code of ours.
        unsafe { signal(number, wanted) }?;
    }
    raise_limits();
    ask_for_short_turns();
    let mut everywhere = CpuSet::new();
    for cpu in 0..CpuSet::count() {
        everywhere.set(cpu)?;
    }
    // The reader may be bound to one CPU; filling beside it there would slow it down. What the cpuset forbids stays
    // forbidden (sched_setaffinity(2)).
    let _ = sched_setaffinity(Pid::from_raw(0), &everywhere);
    // SAFETY: the number was inherited for this purpose and nobody else uses it.
    Ok(Starter(ready.map(|number| unsafe { File::from_raw_fd(number) })))
}

/// The limits of whoever came first are not those of all sessions to come: as far as the hard limits let us.
fn raise_limits() {
    for resource in [Resource::RLIMIT_NOFILE, Resource::RLIMIT_CPU, Resource::RLIMIT_NPROC, Resource::RLIMIT_FSIZE] {
        if let Ok((_, hard)) = getrlimit(resource) {
            let _ = setrlimit(resource, hard, hard);
        }
    }
    // SAFETY: takes numbers only. Raising one's priority may be forbidden; then it stays.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) };
}

/// The shortest turn there is at a processor, for all threads: each of ours works for microseconds, and a turn that is asked for as
/// short comes the sooner where the program's own threads keep all processors busy (`__setparam_fair` in kernel/sched/syscalls.c,
/// since Linux 6.12; before, this says nothing).
fn ask_for_short_turns() {
    const SHORTEST: u64 = 100_000;
    // SAFETY: all zeros is a valid value of this struct of numbers.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    (wanted.size, wanted.sched_runtime) = (size_of::<libc::sched_attr>() as u32, SHORTEST);
    // A policy that has no turns refuses.
    wanted.sched_flags = libc::SCHED_FLAG_KEEP_POLICY as u64;
    // SAFETY: takes numbers only.
    wanted.sched_nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // SAFETY: the kernel reads `size` bytes of it (sched_setattr(2)). Refused, it changes nothing.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &wanted, 0) };
}

/// Closes what was inherited past the standard streams: a pipe held open here would never end for its reader.
fn close_all_but(kept: Option<i32>) {
    let kept = kept.map_or(2, |number| number.max(2)) as libc::c_uint;
    // SAFETY: no object of this process owns these descriptors yet.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, kept.saturating_sub(1), 0);
        libc::syscall(libc::SYS_close_range, kept + 1, libc::c_uint::MAX, 0);
    }
}
