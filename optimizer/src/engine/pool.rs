//! The threads that keep requests in flight on one mount.
//!
//! Each stream has a lane; the threads take chunks from the lanes in turn, so that no reader waits for the whole window
//! of another.

use super::file::{Account, DataFile};
use super::fill::Engine;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Names the stream that chunks belong to: reader, mapping, stream.
pub type Lane = (u64, u32, u32);

/// A chunk to be fetched, for whom, and of which file.
type Job = (Arc<DataFile>, Arc<Account>, Range<u64>);

struct Queue {
    lane: Lane,
    file: Arc<DataFile>,
    account: Arc<Account>,
    extents: VecDeque<Range<u64>>,
}

#[derive(Default)]
struct State {
    queues: VecDeque<Queue>,
    /// Chunks being fetched: what another reader wants of them is on its way.
    flying: Vec<(*const DataFile, Range<u64>)>,
    threads: usize,
    idle: usize,
    most: usize,
    closed: bool,
}

// SAFETY: the pointers in `flying` are compared, never followed.
unsafe impl Send for State {}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    work: Condvar,
}

/// The requests to one mount.
pub struct Pool {
    inner: Arc<Inner>,
}

impl Pool {
    /// At most `jobs` requests will be in flight.
    pub fn new(jobs: usize) -> Self {
        let inner = Arc::new(Inner::default());
        inner.lock().most = jobs.max(1);
        Self { inner }
    }

    /// Another session's wish: the larger number holds.
    pub fn allow(&self, jobs: usize) {
        let mut state = self.inner.lock();
        state.most = state.most.max(jobs);
    }

    /// Appends extents to a stream's lane.
    pub fn request(&self, lane: Lane, file: &Arc<DataFile>, account: &Arc<Account>, extents: Vec<Range<u64>>) {
        let bytes: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
        account.requested.fetch_add(bytes, Relaxed);
        let mut state = self.inner.lock();
        match state.queues.iter_mut().find(|queue| queue.lane == lane) {
            Some(queue) => queue.extents.extend(extents),
            None => state.queues.push_back(Queue {
                lane,
                file: Arc::clone(file),
                account: Arc::clone(account),
                extents: extents.into(),
            }),
        }
        let chunks = (bytes / file.chunk() + 1) as usize;
        let wanted = chunks.saturating_sub(state.idle).min(state.most.saturating_sub(state.threads));
        state.threads += wanted;
        drop(state);
        for _ in 0..wanted {
            let inner = Arc::clone(&self.inner);
            let begun = std::thread::Builder::new()
                .name("fill".into())
                .stack_size(128 << 10)
                .spawn(move || inner.work_until_closed());
            if begun.is_err() {
                self.inner.lock().threads -= 1;
            }
        }
        self.inner.work.notify_all();
    }

    /// Forgets what is still queued for lanes that `is_over`.
    pub fn forget(&self, is_over: impl Fn(Lane) -> bool) {
        self.inner.lock().queues.retain(|queue| !is_over(queue.lane));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.closed = true;
        state.queues.clear();
        drop(state);
        self.inner.work.notify_all();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn work_until_closed(&self) {
        let mut buffer = Vec::new();
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            let Some((file, account, chunk)) = state.next_chunk() else {
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
                state.idle -= 1;
                continue;
            };
            let flight = (Arc::as_ptr(&file), chunk.clone());
            state.flying.push(flight.clone());
            drop(state);
            fetch(&file, &account, &chunk, &mut buffer);
            drop((file, account));
            state = self.lock();
            if let Some(index) = state.flying.iter().position(|other| *other == flight) {
                state.flying.swap_remove(index);
            }
        }
    }
}

impl State {
    /// The next chunk of the lane whose turn it is; the lane then goes to the end.
    fn next_chunk(&mut self) -> Option<Job> {
        while let Some(mut queue) = self.queues.pop_front() {
            let Some(extent) = queue.extents.front_mut() else { continue };
            let size = queue.file.chunk();
            let end = ((extent.start / size + 1) * size).min(extent.end);
            let chunk = extent.start..end;
            extent.start = end;
            if extent.is_empty() {
                queue.extents.pop_front();
            }
            let (file, account) = (Arc::clone(&queue.file), Arc::clone(&queue.account));
            if !queue.extents.is_empty() {
                self.queues.push_back(queue);
            }
            let covers = |(other, range): &(*const DataFile, Range<u64>)| {
                *other == Arc::as_ptr(&file) && range.start <= chunk.start && chunk.end <= range.end
            };
            if file.ended().is_none() && !self.flying.iter().any(covers) {
                return Some((file, account, chunk));
            }
        }
        None
    }
}

fn fetch(file: &DataFile, account: &Account, chunk: &Range<u64>, buffer: &mut Vec<u8>) {
    let bytes = chunk.end - chunk.start;
    if file.is_cached(chunk) {
        account.cached.fetch_add(bytes, Relaxed);
        return;
    }
    account.enter_flight();
    let filled = Engine::fill(file, chunk, buffer);
    account.leave_flight();
    match filled {
        Ok(()) => drop(account.fetched.fetch_add(bytes, Relaxed)),
        Err(error) => file.end(format!("reading {} bytes at {}: {error}", bytes, chunk.start)),
    }
}
