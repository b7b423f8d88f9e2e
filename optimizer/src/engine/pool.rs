//! The threads that keep requests in flight on one mount: as many as bring bandwidth, and as few as that takes.

mod flight;
mod wishes;

use self::flight::Flight;
pub use self::wishes::Wish;
use self::wishes::{Terms, Wishes};

use super::file::{Account, DataFile};
use super::filling::Settled;
use super::lanes::{Job, Lane, Lanes, Queued};
use super::ways::{Engines, Way};
use crate::policy::congestion::{Congestion, Estimate};
use std::ops::Range;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// A thread that had nothing to do for so long ends: a mount that nobody reads from any more keeps none.
const PATIENCE: Duration = Duration::from_secs(1);

/// A wish counts as long as this is held.
pub struct Seat {
    inner: Arc<Inner>,
    wish: Wish,
}

/// After so long it is looked again whether there is room.
const MOMENT: Duration = Duration::from_millis(1);

struct State {
    lanes: Lanes,
    congestion: Congestion,
    /// What large pieces show of the storage. How many of them may be in flight, `Lanes` decides.
    of_pieces: Congestion,
    /// What files of this mount have shown of the engines.
    settled: Vec<Settled>,
    wishes: Wishes,
    /// Those of the last wishes, where there are none.
    terms: Terms,
    threads: usize,
    idle: usize,
    closed: bool,
}

struct Inner {
    origin: Instant,
    state: Mutex<State>,
    work: Condvar,
}

/// The requests to one mount.
pub struct Pool {
    inner: Arc<Inner>,
}

impl Default for Pool {
    fn default() -> Self {
        let state = State {
            lanes: Lanes::default(),
            congestion: Congestion::new(1),
            of_pieces: Congestion::new(1),
            settled: Vec::new(),
            wishes: Wishes::default(),
            terms: Terms { asked: 1, is_measured: false, cap: 1 },
            threads: 0,
            idle: 0,
            closed: false,
        };
        Self { inner: Arc::new(Inner { origin: Instant::now(), state: Mutex::new(state), work: Condvar::new() }) }
    }
}

impl Pool {
    /// Takes a session's wish into account.
    pub fn join(&self, wish: Wish) -> Seat {
        let mut state = self.inner.lock();
        if state.wishes.add(wish) {
            self.inner.weigh_wishes(&mut state);
        }
        Seat { inner: Arc::clone(&self.inner), wish }
    }

    /// Appends extents to a stream's lane.
    pub fn request(&self, lane: Lane, file: &Arc<DataFile>, account: &Arc<Account>, extents: Vec<Range<u64>>) {
        let bytes: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
        account.requested.fetch_add(bytes, Relaxed);
        file.filling.begin_with(&self.inner.lock().settled);
        file.prepare();
        let mut state = self.inner.lock();
        state.lanes.append(lane, file, account, extents);
        self.inner.staff(&mut state);
        if state.threads == 0 && !state.lanes.is_empty() {
            account.lacked_threads.store(true, Relaxed);
        }
        drop(state);
        self.inner.work.notify_all();
    }

    /// What is still queued for a lane.
    pub fn queued(&self, lane: Lane) -> Queued {
        self.inner.lock().lanes.queued(lane)
    }

    /// Forgets what is still queued for lanes that `is_over`.
    pub fn forget(&self, is_over: impl Fn(Lane) -> bool) {
        self.inner.lock().lanes.forget(is_over);
    }

    /// What the requests so far have shown of the storage.
    pub fn estimate(&self) -> Option<Estimate> {
        let state = self.inner.lock();
        let estimates = [state.congestion.estimate(), state.of_pieces.estimate()].into_iter().flatten();
        // It is one storage, whose bandwidth and latency either may not have shown.
        let both = estimates.reduce(|one, other| Estimate {
            bandwidth: one.bandwidth.max(other.bandwidth),
            latency: one.latency.min(other.latency),
            in_flight: one.in_flight,
        })?;
        Some(Estimate { in_flight: state.lanes.most_bytes().unwrap_or(both.in_flight), ..both })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if state.wishes.remove(&self.wish) {
            self.inner.weigh_wishes(&mut state);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.closed = true;
        state.lanes.forget(|_| true);
        drop(state);
        self.inner.work.notify_all();
    }
}

impl State {
    /// Chunks like the next one that may be in flight now. Large pieces are bounded by what the path bears of them.
    fn depth(&self) -> usize {
        let measured = match self.terms.is_measured {
            true if self.lanes.is_next_piece() => usize::MAX,
            true => self.congestion.depth(),
            false => 1,
        };
        measured.max(self.terms.asked).min(self.terms.cap)
    }

    /// Chunks in flight that do not count towards the depth: how many large pieces there are says nothing of how many others bring
    /// bandwidth.
    fn beside(&self) -> usize {
        if self.terms.is_measured { self.lanes.in_flight_like(!self.lanes.is_next_piece()) } else { 0 }
    }

    /// Whether chunks like this one are few because there are no more of them, though others are queued.
    fn has_too_few_like(&mut self, job: &Job) -> bool {
        let is_other_next = !self.lanes.is_empty() && self.lanes.is_next_piece() != job.is_piece();
        is_other_next && self.lanes.in_flight_like(job.is_piece()) < self.congestion_of(job).depth()
    }

    /// The control that hears of such chunks.
    fn congestion_of(&mut self, job: &Job) -> &mut Congestion {
        if job.is_piece() { &mut self.of_pieces } else { &mut self.congestion }
    }

    /// What has been found of engines on this file is a beginning for others.
    fn remember(&mut self, file: &DataFile) {
        if let Some(settled) = file.filling.settled() {
            self.settled.retain(|other| !settled.replaces(other));
            self.settled.push(settled);
        }
    }

    fn has_work(&self) -> bool {
        self.lanes.in_flight() < self.depth() + self.beside() && self.lanes.has_next()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn weigh_wishes(self: &Arc<Self>, state: &mut State) {
        if let Some(terms) = state.wishes.terms() {
            state.terms = terms;
            state.congestion.set_cap(terms.cap);
            state.of_pieces.set_cap(terms.cap);
            state.lanes.set_cap(terms.cap);
        }
        // There may be room for more.
        self.staff(state);
        self.work.notify_all();
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Starts a thread if none is free for what is queued; it starts the next one.
    fn staff(self: &Arc<Self>, state: &mut State) {
        if state.idle > 0 || !state.has_work() || state.threads >= state.depth() + state.beside() {
            return;
        }
        let inner = Arc::clone(self);
        let thread = thread::Builder::new().name("fill".into()).stack_size(128 << 10);
        // Without another thread, those that there are go on; without any, nothing is fetched, nobody waits, and the report tells.
        if thread.spawn(move || inner.work_until_closed()).is_ok() {
            state.threads += 1;
        }
    }

    fn work_until_closed(self: Arc<Self>) {
        let mut engines = Engines::default();
        loop {
            let mut state = self.lock();
            while !state.closed && !state.has_work() {
                if state.lanes.is_empty() {
                    state.congestion.starve();
                    state.of_pieces.starve();
                }
                state.idle += 1;
                let (woken, waited) =
                    self.work.wait_timeout(state, PATIENCE).unwrap_or_else(|poisoned| poisoned.into_inner());
                state = woken;
                state.idle -= 1;
                if waited.timed_out() && !state.has_work() {
                    state.threads -= 1;
                    return;
                }
            }
            if state.closed {
                return;
            }
            self.staff(&mut state);
            drop(state);
            if let Some(job) = self.take(None) {
                self.fly(job, &mut engines);
            }
        }
    }

    /// The next chunk that is not cached as a whole, if it may be in flight.
    fn take(&self, only: Option<(&DataFile, Way)>) -> Option<Job> {
        if only.is_some_and(|(file, _)| file.is_being_dropped() || file.kept.lacks_room()) {
            return None;
        }
        let (mut passed, mut has_passed) = (None::<Job>, false);
        loop {
            let mut job = {
                let mut state = self.lock();
                if let Some(job) = passed.take() {
                    state.lanes.land(&job);
                    has_passed = true;
                }
                if !state.has_work() {
                    return None;
                }
                let Some(job) = state.lanes.next(only) else {
                    if has_passed {
                        // The room that it made is for others.
                        self.work.notify_one();
                    }
                    return None;
                };
                job
            };
            if only.is_none() {
                job.file.wait_while_dropped();
            }
            if let Some(sample) = job.sample {
                if !job.file.keeps(sample) {
                    self.lock().lanes.put_back(job);
                    continue;
                }
            } else {
                job.lacking = job.file.lacking(&job.chunk);
            }
            if !job.lacking.is_empty() && only.is_none() && job.file.kept.lacks_room() {
                self.hold_back(job);
                continue;
            }
            let cached = job.chunk.end - job.chunk.start - job.bytes_lacking();
            job.account.cached.fetch_add(cached, Relaxed);
            if !job.lacking.is_empty() {
                return Some(job);
            }
            // What is fetched is not told: where the storage is waited for, a fault more or less does not count, and the
            // reader's mapping ahead would make the kernel read on behind it.
            job.tell_cached();
            passed = Some(job);
        }
    }

    /// Another thread, or this one, takes the chunk in a moment. Not for threads that have chunks in flight.
    fn hold_back(&self, job: Job) {
        let mut state = self.lock();
        if state.closed {
            state.lanes.land(&job);
        } else {
            state.lanes.put_back(job);
        }
        drop(state);
        thread::sleep(MOMENT);
    }

    /// Makes room for another request.
    fn land(&self, state: &mut State, job: &Job) {
        state.lanes.land(job);
        if state.has_work() && state.idle > 0 {
            self.work.notify_one();
        }
    }

    /// Has an engine bring in a chunk, and whatever it takes on meanwhile.
    fn fly(&self, job: Job, engines: &mut Engines) {
        let (file, chunk, way) = (Arc::clone(&job.file), job.chunk.clone(), job.way);
        let mut flight = Flight { inner: self, file: &file, way, flying: Vec::new(), left: Vec::new(), waits: 0 };
        flight.send(job);
        engines.get(way).fill(&file, &chunk, &mut flight);
        // What the engine could not do is done all the same.
        for left in std::mem::take(&mut flight.left) {
            let result = engines.read(&file, &left.job.chunk);
            // What took another's place shows nothing of either.
            flight.finish(left, false, result.map(|()| Way::Read));
        }
    }
}

#[cfg(test)]
mod tests;
