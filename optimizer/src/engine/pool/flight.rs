//! What one thread of the pool has in flight, and what becomes of it.

use super::Inner;
use crate::engine::file::DataFile;
use crate::engine::lanes::Job;
use crate::engine::residency::{Residency, waits};
use crate::engine::ways::Way;
use crate::engine::{Failure, LARGE_PIECE, Traffic};
use crate::policy::congestion::Answered;
use std::ops::Range;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

/// A chunk in flight.
pub(super) struct Flying {
    pub job: Job,
    pub sent: Duration,
    /// It tries an engine while another one is in use for chunks like it: how long it takes says nothing of how many of those bring
    /// bandwidth.
    pub is_beside: bool,
}

/// What one thread has in flight.
pub(super) struct Flight<'a> {
    pub inner: &'a Inner,
    pub file: &'a DataFile,
    pub way: Way,
    pub flying: Vec<Flying>,
    /// Chunks on which the engine had no effect.
    pub left: Vec<Flying>,
    /// How often the thread had waited when it sent the last one, where that tells what was cached.
    pub waits: i64,
}

impl Flight<'_> {
    pub fn send(&mut self, job: Job) {
        // Where it was before, it has been evicted.
        self.file.audiences.tell_gone(&job.chunk);
        self.file.forget(&job.chunk);
        let sent = self.inner.now();
        self.file.filling.ask(self.way);
        let used = if job.shows_rate() { self.file.filling.send(self.way, sent) } else { None };
        let is_beside = used.is_some_and(|used| (self.file.chunk(used) == LARGE_PIECE) == job.is_piece());
        job.account.enter_flight();
        self.file.walk.enter_flight();
        self.flying.push(Flying { job, sent, is_beside });
        if self.file.residency == Residency::Unknown {
            self.waits = waits();
        }
    }

    pub fn finish(&self, flying: Flying, shows_rate: bool, result: Result<Way, Failure>) {
        let Flying { job, sent, is_beside } = flying;
        let bytes = job.bytes_lacking();
        let has_waited = self.file.residency != Residency::Unknown || waits() != self.waits;
        job.account.leave_flight();
        self.file.walk.leave_flight(job.chunk.end);
        let mut state = self.inner.lock();
        // Under the lock: answers are told in the order of their times.
        let now = self.inner.now();
        if result.is_ok() {
            job.file.failures.end_row(job.file.age());
        }
        let was_cached = job.file.residency.was_cached(bytes, now.saturating_sub(sent), has_waited);
        if job.file.residency == Residency::Unknown {
            job.file.trust.note(bytes, was_cached && result.is_ok());
        }
        // A call for read-ahead does not wait.
        let has_come = result.as_ref().is_ok_and(|&way| way != Way::ReadAhead);
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
                let in_flight = state.lanes.in_flight_like(job.is_piece());
                if state.has_too_few_like(&job) {
                    state.congestion_of(&job).starve();
                }
                match is_beside {
                    true => state.congestion_of(&job).interrupt(),
                    false => state.congestion_of(&job).learn(Answered { bytes, sent, answered: now, in_flight }),
                }
                state.lanes.learn(&job, now, now.saturating_sub(sent));
            }
            Err(why) => {
                let Range { start, end } = job.chunk;
                let why = format!("reading {} bytes at {start}: {why}", end - start);
                job.file.failures.add(why, job.file.age());
            }
        }
        state.remember(&job.file);
        self.inner.land(&mut state, &job);
        drop(state);
        if has_come {
            job.file.see(&job.chunk);
        }
        // A trial may have begun.
        job.file.prepare();
    }
}

impl Traffic for Flight<'_> {
    fn more(&mut self) -> Option<Range<u64>> {
        let job = self.inner.take(Some((self.file, self.way)))?;
        let chunk = job.chunk.clone();
        self.send(job);
        Some(chunk)
    }

    fn lacked(&self, chunk: &Range<u64>) -> &[Range<u64>] {
        let flying = self.flying.iter().find(|flying| flying.job.chunk == *chunk);
        flying.map_or(&[], |flying| &flying.job.lacking)
    }

    fn done(&mut self, chunk: &Range<u64>, result: Result<(), Failure>) {
        // Some file systems read into a cache of their own, which mappings do not see.
        let is_asked = result.is_ok() && self.way != Way::Populate && self.file.filling.is_on_trial();
        let result = if is_asked && self.file.is_missing(chunk) { Err(Failure::Ineffective) } else { result };
        let Some(index) = self.flying.iter().position(|flying| flying.job.chunk == *chunk) else { return };
        let flying = self.flying.swap_remove(index);
        let shows_rate = flying.job.shows_rate();
        match result {
            Err(Failure::Ineffective) => {
                self.file.filling.miss(self.way, shows_rate, self.inner.now());
                self.left.push(flying);
            }
            result => {
                if result.is_err() && shows_rate {
                    self.file.filling.answer(self.way, 0, self.inner.now());
                }
                self.finish(flying, shows_rate, result.map(|()| self.way));
            }
        }
    }
}
