//! The threads that keep requests in flight on one mount: as many as bring bandwidth, and as few as that takes.

use super::file::{Account, DataFile};
use super::filling::Settled;
use super::lanes::{Job, Lane, Lanes, Queued};
use super::residency::{Residency, waits};
use super::ways::{Engines, Way};
use super::{Failure, Traffic};
use crate::options::DEFAULT_MAX_INFLIGHT;
use crate::policy::congestion::{Answered, Congestion, Estimate};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A thread that had nothing to do for so long ends: a mount that nobody reads from any more keeps none.
const PATIENCE: Duration = Duration::from_secs(1);

/// What one session asks of the pool, once for each mapping that it has on the mount.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub session: u64,
    /// Requests in flight; measured what is best, if none are asked for.
    pub jobs: Option<usize>,
    /// Never more than these on the mount, for all sessions together.
    pub max_inflight: Option<usize>,
}

/// A wish counts as long as this is held.
pub struct Seat {
    inner: Arc<Inner>,
    number: u64,
}

struct State {
    lanes: Lanes,
    congestion: Congestion,
    /// What files of this mount have shown of the engines.
    settled: Vec<Settled>,
    /// By the numbers of their seats.
    wishes: Vec<(u64, Wish)>,
    seats: u64,
    /// What the sessions that ask for a number of requests ask for, and whether any session leaves it to us.
    asked: usize,
    measured: bool,
    cap: usize,
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
            settled: Vec::new(),
            wishes: Vec::new(),
            seats: 0,
            asked: 1,
            measured: false,
            cap: 1,
            threads: 0,
            idle: 0,
            closed: false,
        };
        Self { inner: Arc::new(Inner { origin: Instant::now(), state: Mutex::new(state), work: Condvar::new() }) }
    }
}

impl Pool {
    /// Takes a session's wish into account. Of several, the largest number of requests and the least bound hold.
    pub fn join(&self, wish: Wish) -> Seat {
        let mut state = self.inner.lock();
        state.seats += 1;
        let number = state.seats;
        state.wishes.push((number, wish));
        self.inner.weigh_wishes(&mut state);
        Seat { inner: Arc::clone(&self.inner), number }
    }

    /// Appends extents to a stream's lane.
    pub fn request(&self, lane: Lane, file: &Arc<DataFile>, account: &Arc<Account>, extents: Vec<Range<u64>>) {
        let bytes: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
        account.requested.fetch_add(bytes, Relaxed);
        let mut state = self.inner.lock();
        file.filling.begin_with(&state.settled);
        state.lanes.append(lane, file, account, extents);
        self.inner.staff(&mut state);
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
        let estimate = state.congestion.estimate()?;
        // The control does not know of the bound on large pieces.
        let in_flight = estimate.in_flight.min(state.lanes.most_bytes());
        Some(Estimate { in_flight, ..estimate })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.wishes.retain(|(number, _)| *number != self.number);
        self.inner.weigh_wishes(&mut state);
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
    fn weigh_wishes(&mut self) {
        if self.wishes.is_empty() {
            // Who comes next finds what was measured.
            return;
        }
        let wishes = self.wishes.iter().map(|(_, wish)| wish);
        self.asked = wishes.clone().filter_map(|wish| wish.jobs).max().unwrap_or(0);
        self.measured = wishes.clone().any(|wish| wish.jobs.is_none());
        // A bound that was given holds for all; the one that was not gives way to the requests asked for.
        // It holds for the mount: each session leaves one of them, up to half, for what its readers ask for themselves.
        let sessions: HashSet<u64> = wishes.clone().map(|wish| wish.session).collect();
        let bound = wishes.filter_map(|wish| wish.max_inflight).min().map(|most| most - sessions.len().min(most / 2));
        self.cap = bound.unwrap_or(DEFAULT_MAX_INFLIGHT.max(self.asked)).max(1);
        self.congestion.set_cap(self.cap);
        self.lanes.set_cap(self.cap);
    }

    /// Requests that may be in flight now.
    fn depth(&self) -> usize {
        let measured = if self.measured { self.congestion.depth() } else { 1 };
        measured.max(self.asked).min(self.cap)
    }

    /// What has been found of engines on this file is a beginning for others.
    fn remember(&mut self, file: &DataFile) {
        if let Some(settled) = file.filling.settled() {
            self.settled.retain(|other| !settled.replaces(other));
            self.settled.push(settled);
        }
    }

    fn has_work(&self) -> bool {
        self.lanes.in_flight() < self.depth() && self.lanes.has_next()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn weigh_wishes(self: &Arc<Self>, state: &mut State) {
        state.weigh_wishes();
        // There may be room for more.
        self.staff(state);
        self.work.notify_all();
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Starts a thread if none is free for what is queued; it starts the next one.
    fn staff(self: &Arc<Self>, state: &mut State) {
        if state.idle > 0 || !state.has_work() || state.threads >= state.depth() {
            return;
        }
        let inner = Arc::clone(self);
        let thread = std::thread::Builder::new().name("fill".into()).stack_size(128 << 10);
        // Without another thread, those that there are go on; without any, nothing is fetched, and nobody waits.
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
        if only.is_some_and(|(file, _)| file.is_being_dropped()) {
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
        for (job, sent) in std::mem::take(&mut flight.left) {
            let result = engines.read(&file, &job.chunk);
            // What took another's place shows nothing of either.
            flight.finish(job, sent, false, result.map(|()| Way::Read));
        }
    }
}

/// What one thread has in flight.
struct Flight<'a> {
    inner: &'a Inner,
    file: &'a DataFile,
    way: Way,
    flying: Vec<(Job, Duration)>,
    /// Chunks on which the engine had no effect.
    left: Vec<(Job, Duration)>,
    /// How often the thread had waited when it sent the last one, where that tells what was cached.
    waits: i64,
}

impl Flight<'_> {
    fn send(&mut self, job: Job) {
        // Where it was before, it has been evicted.
        self.file.audiences.tell_gone(&job.chunk);
        let now = self.inner.now();
        self.file.filling.ask(self.way);
        if job.shows_rate() {
            self.file.filling.send(self.way, now);
        }
        job.account.enter_flight();
        self.file.walk.enter_flight();
        self.flying.push((job, now));
        if self.file.residency == Residency::Unknown {
            self.waits = waits();
        }
    }

    fn finish(&self, job: Job, sent: Duration, shows_rate: bool, result: Result<Way, Failure>) {
        let bytes = job.bytes_lacking();
        let has_waited = self.file.residency != Residency::Unknown || waits() != self.waits;
        job.account.leave_flight();
        self.file.walk.leave_flight(job.chunk.end);
        let mut state = self.inner.lock();
        // Under the lock: answers are told in the order of their times.
        let now = self.inner.now();
        if result.is_ok() {
            job.file.failures.end_row();
        }
        let was_cached = job.file.residency.was_cached(bytes, now.saturating_sub(sent), has_waited);
        if job.file.residency == Residency::Unknown {
            job.file.trust.note(bytes, was_cached && result.is_ok());
        }
        match result {
            Ok(way) if was_cached => {
                job.account.cached.fetch_add(bytes, Relaxed);
                if shows_rate {
                    job.file.filling.take_back(way, now);
                }
                job.tell_cached();
            }
            Ok(way) => {
                job.account.fetched.fetch_add(bytes, Relaxed);
                job.lacking.iter().for_each(|part| job.file.kept.add(part.clone()));
                job.file.filling.bring(way, bytes);
                if shows_rate {
                    job.file.filling.answer(way, bytes, now);
                }
                let in_flight = state.lanes.in_flight();
                state.congestion.learn(Answered { bytes, sent, answered: now, in_flight });
                state.lanes.learn(&job, now, now.saturating_sub(sent));
            }
            Err(why) => {
                let Range { start, end } = job.chunk;
                job.file.failures.add(format!("reading {} bytes at {start}: {why}", end - start));
            }
        }
        state.remember(&job.file);
        self.inner.land(&mut state, &job);
    }
}

impl Traffic for Flight<'_> {
    fn more(&mut self) -> Option<Range<u64>> {
        let job = self.inner.take(Some((self.file, self.way)))?;
        let chunk = job.chunk.clone();
        self.send(job);
        Some(chunk)
    }

    fn done(&mut self, chunk: &Range<u64>, result: Result<(), Failure>) {
        let Some(index) = self.flying.iter().position(|(job, _)| job.chunk == *chunk) else { return };
        let (job, sent) = self.flying.swap_remove(index);
        let shows_rate = job.shows_rate();
        match result {
            Err(Failure::Ineffective) => {
                self.file.filling.miss(self.way, shows_rate, self.inner.now());
                self.left.push((job, sent));
            }
            result => {
                if result.is_err() && shows_rate {
                    self.file.filling.answer(self.way, 0, self.inner.now());
                }
                self.finish(job, sent, shows_rate, result.map(|()| self.way));
            }
        }
    }
}

#[cfg(test)]
mod tests;
