//! A thread for what may take long and need not be waited for.
//!
//! To drop pages the kernel waits for a piece of work on each processor if some of them are in use (`generic_fadvise` in
//! mm/fadvise.c, `lru_add_drain_all` in mm/swap.c): tenths of a second where processors are busy, in which nobody would hear of a
//! reader, and it would leap over all that is told too late.

use super::worker::lock;
use crossbeam::channel::{Sender, unbounded};
use std::sync::Mutex;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub struct Sweeper(Mutex<Option<Sender<Job>>>);

impl Sweeper {
    /// Has it done, in the order in which it was asked for; at once if there is no thread to be had.
    pub fn do_later(&self, job: impl FnOnce() + Send + 'static) {
        let mut job: Job = Box::new(job);
        // A thread that panicked takes no more.
        for _ in 0..2 {
            let Some(sender) = self.sender() else { break };
            match sender.send(job) {
                Ok(()) => return,
                Err(back) => job = back.into_inner(),
            }
            *lock(&self.0) = None;
        }
        job();
    }

    fn sender(&self) -> Option<Sender<Job>> {
        let mut sender = lock(&self.0);
        if sender.is_none() {
            *sender = start();
        }
        sender.clone()
    }

    /// Waits until all that was asked for is done.
    #[cfg(test)]
    pub fn finish(&self) {
        let (done, is_done) = crossbeam::channel::bounded(1);
        self.do_later(move || done.send(()).unwrap());
        is_done.recv().unwrap();
    }
}

/// It ends with the sender.
fn start() -> Option<Sender<Job>> {
    let (sender, jobs) = unbounded::<Job>();
    let work = move || jobs.into_iter().for_each(|job| job());
    std::thread::Builder::new().name("sweep".into()).stack_size(256 << 10).spawn(work).ok().map(|_| sender)
}
