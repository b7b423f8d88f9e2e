//! A thread that ends by itself, if what it asks of storage is answered.

use crate::link;
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded};
use nix::unistd::gettid;
use procfs::process::{Process, Task};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::*};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long one that stands still is waited for: storage that does not answer may hold it up for ever. The listener may wait
/// four times before it answers a supervisor: for readers that have died, thrice, and for the lookout.
const PATIENCE: Duration = Duration::from_millis(180);
const _: () = assert!(4 * PATIENCE.as_millis() < link::PATIENCE_UNHINDERED.as_millis());

/// How long one is waited for that works, or waits for a processor. A supervisor may have given up by then.
const MOST: Duration = Duration::from_millis(1200);

/// How often it is looked at, and how often in a row it must have stood still.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: u32 = 5;

pub struct Thread {
    /// Hangs up when the thread ends.
    over: Receiver<()>,
    /// Its number; 0 before it runs.
    id: Arc<AtomicI32>,
}

impl Thread {
    pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (working, over) = bounded(0);
        let id = Arc::<AtomicI32>::default();
        let own_id = Arc::clone(&id);
        let run = move || {
            let _working: Sender<()> = working;
            own_id.store(gettid().as_raw(), Relaxed);
            work();
        };
        Builder::new().name(name.into()).stack_size(256 << 10).spawn(run)?;
        Ok(Self { over, id })
    }

    /// Waits for its end, which was asked for then; `false`: it does not get on.
    pub fn wait(&self, asked: Instant) -> bool {
        self.wait_until(asked, |look| self.over.recv_timeout(look) != Err(RecvTimeoutError::Timeout))
    }

    /// Waits for what it was asked for then, and what `is_done` waits for so long.
    pub fn wait_until(&self, asked: Instant, mut is_done: impl FnMut(Duration) -> bool) -> bool {
        let mut still = 0;
        while (still < LOOKS || asked.elapsed() < PATIENCE) && asked.elapsed() < MOST {
            if is_done(LOOK) {
                return true;
            }
            still = if self.is_at_work() { 0 } else { still + 1 };
        }
        false
    }

    /// Or waits for a processor, or for another thread of ours that does either.
    fn is_at_work(&self) -> bool {
        let id = self.id.load(Relaxed);
        let Ok(process) = Process::myself() else { return false };
        let runs = |task: &Task| task.stat().is_ok_and(|stat| stat.state == 'R');
        id == 0
            || process.task_from_tid(id).is_ok_and(|task| runs(&task))
            || waits_for_another(id)
                && process
                    .tasks()
                    .is_ok_and(|tasks| tasks.flatten().any(|task| task.tid != gettid().as_raw() && runs(&task)))
    }
}

/// Whether this thread of ours is in futex(2): proc_pid_syscall(5).
fn waits_for_another(id: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{id}/syscall"));
    call.is_ok_and(|call| call.split(' ').next() == Some(&libc::SYS_futex.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};
    use std::sync::mpsc::channel;

    #[test]
    fn one_that_stands_still_is_not_waited_for() {
        let (mut storage, answer) = pipe().unwrap();
        let thread = Thread::start("still", move || {
            let _ = storage.read(&mut [0]);
        })
        .unwrap();
        assert!(!thread.wait(Instant::now()));
        drop(answer);
        assert!(thread.wait(Instant::now()));
    }

    #[test]
    fn one_that_waits_for_one_that_works_is_waited_for() {
        let begun = Instant::now();
        let (answer, other) = channel::<()>();
        let worker = std::thread::spawn(move || {
            while begun.elapsed() < 2 * PATIENCE {}
            drop(answer);
        });
        let thread = Thread::start("convoy", move || {
            let _ = other.recv();
        });
        assert!(thread.unwrap().wait(begun));
        worker.join().unwrap();
    }

    #[test]
    fn one_that_works_is_waited_for() {
        let begun = Instant::now();
        let work = move || while begun.elapsed() < 2 * PATIENCE {};
        assert!(Thread::start("work", work).unwrap().wait(begun));
    }
}
