//! Threads and processes, what they wait for, and clocks.

use super::status_at;
use core::sync::atomic::AtomicU32;
use syscalls::{Errno, Sysno, syscall};

/// Wakes who sleeps on `word`, in whatever process; `false` when nobody did.
pub fn futex_wake(word: &AtomicU32) -> bool {
    // SAFETY: FUTEX_WAKE does not access the word's content (futex(2)). Without FUTEX_PRIVATE_FLAG it reaches other
    // processes. It can only fail on a bad address.
    let woken = unsafe { syscall!(Sysno::futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
    woken == Ok(1)
}

/// A clock in milliseconds, from 1; it moves in steps of a few.
#[inline(never)] // One copy is enough for all who ask.
pub fn milliseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the structure, whose layout on 64-bit Linux is libc's.
    let _ = unsafe { syscall!(Sysno::clock_gettime, libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    1 + now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// A clock in nanoseconds.
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the structure, whose layout on 64-bit Linux is libc's.
    let _ = unsafe { syscall!(Sysno::clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub fn yield_now() {
    // SAFETY: no arguments, no effect on memory.
    let _ = unsafe { syscall!(Sysno::sched_yield) };
}

const EXPEDITED: libc::c_int = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;

/// Has every processor that runs another thread of this process interrupt it, twice, and waits for each
/// (`membarrier_private_expedited` in kernel/sched/membarrier.c): what the kernel was about there for less than a microsecond, as
/// when it has found that a page is closed, is nearly always over by then. Where the kernel or a filter refuses, nothing happens.
pub fn interrupt_other_threads() {
    // A process asks for it before it uses it.
    for command in [libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, EXPEDITED, EXPEDITED] {
        // SAFETY: membarrier(2) takes numbers only.
        let _ = unsafe { syscall!(Sysno::membarrier, command, 0) };
    }
}

/// For some ten microseconds, and what the kernel adds. By a call that every program with threads makes, if under a filter.
pub fn sleep_briefly() {
    static NOBODY_WAKES: AtomicU32 = AtomicU32::new(0);
    let time = libc::timespec { tv_sec: 0, tv_nsec: 10_000 };
    let how = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word of ours, and a time that is only read (futex(2)).
    let _ = unsafe { syscall!(Sysno::futex, NOBODY_WAKES.as_ptr(), how, 0, &raw const time) };
}

/// The pauses of one who waits for another thread.
#[derive(Default)]
pub struct Pauses {
    count: u32,
    /// When the last one began; 0: there was none.
    begun: u32,
    /// How long they have lasted, in milliseconds.
    lasted: u32,
}

/// How often one yields before it sleeps.
const YIELDS: u32 = 100;

/// How many milliseconds one counts for at most: a process that has been stopped meanwhile, or got no processor, has not waited.
const LONGEST: u32 = 10;

impl Pauses {
    /// One of them, unless they have lasted for more than `patience` milliseconds: `false`. They soon become sleep: those who wait
    /// are many, or of a higher priority (SCHED_FIFO), and must not keep the processors from the one they wait for.
    #[inline(never)] // One copy is enough for all who wait.
    pub fn next_within(&mut self, patience: u32) -> bool {
        if patience != u32::MAX {
            let now = milliseconds() as u32;
            if self.begun != 0 {
                self.lasted += now.wrapping_sub(self.begun).min(LONGEST);
            }
            self.begun = now;
            if self.lasted > patience {
                return false;
            }
        }
        self.count = self.count.saturating_add(1);
        if self.count <= YIELDS {
            yield_now()
        } else {
            sleep_briefly()
        }
        true
    }

    /// One of those that last as long as need be.
    pub fn next(&mut self) {
        self.next_within(u32::MAX);
    }
}

/// The process's number.
#[inline(never)] // One copy is enough for all who ask.
pub fn process() -> i32 {
    // SAFETY: cannot fail (getpid(2)).
    unsafe { syscall!(Sysno::getpid) }.unwrap_or(0) as i32
}

/// Whether this is a number of this process: its own, or that of one of its threads, which process_vm_readv(2) takes for it
/// (`find_get_task_by_vpid`). A refusal comes after the look whose thread it is (`do_send_specific`).
pub fn is_own(number: i32) -> bool {
    let process = process();
    // SAFETY: nothing is sent (tgkill(2)).
    let found = || unsafe { syscall!(Sysno::tgkill, process, number, 0) };
    number == process || !matches!(found(), Err(Errno::ESRCH | Errno::EINVAL))
}

pub fn parent() -> i32 {
    // SAFETY: cannot fail (getppid(2)).
    unsafe { syscall!(Sysno::getppid) }.unwrap_or(0) as i32
}

/// The calling thread's number.
pub fn thread() -> i32 {
    // SAFETY: cannot fail (gettid(2)).
    unsafe { syscall!(Sysno::gettid) }.unwrap_or(0) as i32
}

/// Whether the process has no other thread; `false` where nobody tells.
pub fn is_alone() -> bool {
    // One link for each thread, beside the usual two of a folder (proc(5)).
    status_at(libc::AT_FDCWD, c"/proc/self/task").is_ok_and(|status| status.st_nlink == 3)
}
