//! What is queued for one mount: each stream has a lane, and about as many bytes are taken from one as from the next, so that no
//! reader waits for the whole window of another, nor one of small records behind one of large pieces.

use super::file::{Account, DataFile};
use super::ways::Way;
use super::{LARGE_PIECE, LARGEST_CHUNK};
use crate::policy::pieces::Pieces;
use precache_contract::PAGE;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// What a shorter chunk counts for in its lane's turn: it takes as many requests.
const LEAST_TAKEN: u64 = 128 << 10;

/// Names the stream that chunks belong to: reader, mapping, stream.
pub type Lane = (u64, u32, u32);

/// What waits in a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queued {
    pub extents: usize,
    pub bytes: u64,
}

/// A chunk to be fetched, of which file and for whom.
pub struct Job {
    pub file: Arc<DataFile>,
    pub account: Arc<Account>,
    pub chunk: Range<u64>,
    /// What of the chunk was missing when its turn came: the rest is somebody's who cached it before.
    pub lacking: Vec<Range<u64>>,
    /// Where what is cached is trusted to go on, the chunk is a longer one, and the page here stands for it.
    pub sample: Option<u64>,
    lane: Lane,
    /// What lies around it is not wanted.
    is_exact: bool,
    /// The first of its lane since nothing was queued there: its reader is in it, and may have brought in most of it.
    begins: bool,
    /// The engine that the chunk was cut for.
    pub way: Way,
}

impl Job {
    /// Bytes that were missing when its turn came.
    pub fn bytes_lacking(&self) -> u64 {
        self.lacking.iter().map(|part| part.end - part.start).sum()
    }

    /// Whether it is more than one request: no other chunk than a large piece is.
    pub fn is_piece(&self) -> bool {
        is_piece(&self.chunk)
    }

    /// Whether its time says how fast the engine is: records with gaps between them are small, and not every engine may
    /// fetch them.
    pub fn shows_rate(&self) -> bool {
        !self.is_exact
    }

    /// Tells who listens that the chunk was in the page cache when its turn came.
    pub fn tell_cached(&self) {
        self.file.audiences.tell_cached(&self.chunk, self.is_exact, self.file.size);
    }
}

struct Queue {
    lane: Lane,
    file: Arc<DataFile>,
    account: Arc<Account>,
    extents: VecDeque<Extent>,
    /// Nothing has been taken since something was queued.
    begins: bool,
    /// Bytes taken in its turn.
    taken: u64,
}

/// A part of a file that is wanted.
struct Extent {
    part: Range<u64>,
    /// Beside it is a gap: what lies around it is not wanted.
    is_exact: bool,
}

#[derive(Default)]
pub struct Lanes {
    /// None is without extents.
    queues: VecDeque<Queue>,
    /// Requests that may be in flight, at most.
    cap: usize,
    /// Large pieces that may be, and whether the latest chunk was one.
    pieces: Pieces,
    is_in_pieces: bool,
    /// Chunks being fetched: what another reader wants of them is on its way.
    flying: Vec<(*const DataFile, Range<u64>)>,
}

// SAFETY: the pointers in `flying` are compared, never followed.
unsafe impl Send for Lanes {}

impl Lanes {
    /// At most so many requests may be in flight.
    pub fn set_cap(&mut self, cap: usize) {
        self.cap = cap;
        self.pieces.set_bound(cap / requests_of(&(0..LARGE_PIECE)));
    }

    /// Appends extents to a stream's lane, in the order in which they are wanted.
    pub fn append(&mut self, lane: Lane, file: &Arc<DataFile>, account: &Arc<Account>, mut extents: Vec<Range<u64>>) {
        extents.retain(|extent| !extent.is_empty());
        if extents.is_empty() {
            return;
        }
        let touch = |one: &Range<u64>, next: &Range<u64>| one.end == next.start || next.end == one.start;
        let is_exact = extents.windows(2).any(|pair| !touch(&pair[0], &pair[1]));
        let extents = extents.into_iter().map(|part| Extent { part, is_exact });
        match self.queues.iter_mut().find(|queue| queue.lane == lane) {
            Some(queue) => queue.extents.extend(extents),
            None => self.queues.push_back(Queue {
                lane,
                file: Arc::clone(file),
                account: Arc::clone(account),
                extents: extents.collect(),
                begins: true,
                taken: 0,
            }),
        }
    }

    /// What is still queued for a lane.
    pub fn queued(&self, lane: Lane) -> Queued {
        let extents = self.queues.iter().filter(|queue| queue.lane == lane).flat_map(|queue| &queue.extents);
        extents.fold(Queued::default(), |sum, extent| Queued {
            extents: sum.extents + 1,
            bytes: sum.bytes + (extent.part.end - extent.part.start),
        })
    }

    /// Forgets what is still queued for lanes that `is_over`.
    pub fn forget(&mut self, is_over: impl Fn(Lane) -> bool) {
        self.queues.retain(|queue| !is_over(queue.lane));
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Chunks being fetched.
    pub fn in_flight(&self) -> usize {
        self.flying.len()
    }

    /// Whether a chunk is queued, and may be in flight beside those that are.
    pub fn has_next(&self) -> bool {
        self.queues.front().is_some_and(|queue| self.has_room_for(&self.cut(queue).0))
    }

    /// Large pieces that are being fetched, or the other chunks.
    pub fn in_flight_like(&self, piece: bool) -> usize {
        self.flying.iter().filter(|(_, chunk)| is_piece(chunk) == piece).count()
    }

    /// Whether the next chunk is a large piece.
    pub fn is_next_piece(&self) -> bool {
        self.queues.front().is_some_and(|queue| is_piece(&self.cut(queue).0))
    }

    /// Bytes that may be in flight, if the latest chunk was a large piece: these are bounded here.
    pub fn most_bytes(&self) -> Option<u64> {
        self.is_in_pieces.then(|| self.in_pieces())
    }

    /// Bytes of large pieces that may be in flight.
    fn in_pieces(&self) -> u64 {
        self.pieces.most() as u64 * LARGE_PIECE
    }

    /// Within the bounds on requests and on large pieces.
    fn has_room_for(&self, chunk: &Range<u64>) -> bool {
        let flying: usize = self.flying.iter().map(|(_, chunk)| requests_of(chunk)).sum();
        // Whether a piece is dropped depends on all that is in flight, whoever asked for it.
        let most = if is_piece(chunk) { requests_of(&(0..self.in_pieces())).min(self.cap) } else { self.cap };
        flying + requests_of(chunk) <= most
    }

    /// The first chunk of a queue, and its engine.
    fn cut(&self, queue: &Queue) -> (Range<u64>, Way) {
        let Some(Extent { part: extent, is_exact }) = queue.extents.front() else { return (0..0, Way::Read) };
        let mut way = queue.file.way(extent, *is_exact);
        let mut size = queue.file.chunk(way);
        if requests_of(&(0..size)) > self.cap {
            (way, size) = (Way::Read, queue.file.chunk(Way::Read));
        }
        let length = extent.end - extent.start;
        let chunk = match length.div_ceil(size) {
            // It comes as a whole, whatever part of it is asked for.
            _ if size == LARGE_PIECE => piece_around(extent.start, queue.file.size),
            // What is short, as what readers that skip want, takes no more requests than it must.
            pieces @ 1..=2 => extent.start..extent.end.min(extent.start + (length / pieces).next_multiple_of(PAGE)),
            _ => extent.start..(extent.start / size + 1) * size,
        };
        (chunk, way)
    }

    /// The next chunk of the lane whose turn it is; once a large piece's bytes are taken, the lane goes to the end. Nothing if it
    /// may not be in flight now; with `only`, nothing if it is of another file or for another engine.
    pub fn next(&mut self, only: Option<(&DataFile, Way)>) -> Option<Job> {
        while let Some(mut queue) = self.queues.pop_front() {
            let (mut chunk, way) = self.cut(&queue);
            let is_other = only.is_some_and(|(file, wanted)| !std::ptr::eq(&*queue.file, file) || way != wanted);
            if is_other || !self.has_room_for(&chunk) {
                self.queues.push_front(queue);
                return None;
            }
            let Some(Extent { part: extent, is_exact }) = queue.extents.front_mut() else { continue };
            let is_exact = *is_exact;
            let stretch = chunk.start..chunk.end.max(extent.end.min((chunk.start / LARGEST_CHUNK + 1) * LARGEST_CHUNK));
            let sample = queue.file.trust.sample(&chunk, &stretch);
            if sample.is_some() {
                chunk = stretch;
            }
            extent.start = chunk.end.min(extent.end);
            if extent.is_empty() {
                queue.extents.pop_front();
            }
            let (file, account) = (Arc::clone(&queue.file), Arc::clone(&queue.account));
            let (lane, begins) = (queue.lane, std::mem::take(&mut queue.begins));
            queue.taken += (chunk.end - chunk.start).max(LEAST_TAKEN);
            if queue.extents.is_empty() {
                drop(queue);
            } else if queue.taken < LARGE_PIECE {
                self.queues.push_front(queue);
            } else {
                queue.taken = 0;
                self.queues.push_back(queue);
            }
            let covers = |(other, range): &(*const DataFile, Range<u64>)| {
                *other == Arc::as_ptr(&file) && range.start <= chunk.start && chunk.end <= range.end
            };
            if !file.is_resting() && !self.flying.iter().any(covers) {
                self.flying.push((Arc::as_ptr(&file), chunk.clone()));
                self.is_in_pieces = is_piece(&chunk);
                return Some(Job { file, account, chunk, lacking: Vec::new(), sample, lane, is_exact, begins, way });
            }
        }
        None
    }

    /// The chunk, still among those in flight, has come in now, so long after it was sent.
    pub fn learn(&mut self, job: &Job, now: Duration, latency: Duration) {
        if !job.begins {
            self.pieces.hear(latency);
        }
        if job.file.filling.is_trying() {
            self.pieces.interrupt();
        } else if is_piece(&job.chunk) {
            self.pieces.learn(job.bytes_lacking(), self.in_flight_like(true), now);
        }
    }

    /// The chunk is not cached after all: its turn comes again, in parts.
    pub fn put_back(&mut self, job: Job) {
        self.land(&job);
        let Job { file, account, chunk: part, lane, is_exact, begins, .. } = job;
        let extent = Extent { part, is_exact };
        match self.queues.iter_mut().find(|queue| queue.lane == lane) {
            Some(queue) => {
                queue.extents.push_front(extent);
                queue.begins |= begins;
            }
            None => self.queues.push_front(Queue { lane, file, account, extents: [extent].into(), begins, taken: 0 }),
        }
    }

    /// The chunk is not being fetched any more.
    pub fn land(&mut self, job: &Job) {
        let flight = (Arc::as_ptr(&job.file), job.chunk.clone());
        if let Some(index) = self.flying.iter().position(|other| *other == flight) {
            self.flying.swap_remove(index);
        }
    }
}

/// Requests that a chunk is to the storage: each carries [`LARGEST_CHUNK`], where the file system does not ask it for less at a
/// time.
fn requests_of(chunk: &Range<u64>) -> usize {
    (chunk.end - chunk.start).div_ceil(LARGEST_CHUNK) as usize
}

/// Whether it is a large piece: more than one request, as no other chunk is.
fn is_piece(chunk: &Range<u64>) -> bool {
    requests_of(chunk) > 1
}

/// The large piece that this byte of a file is in.
fn piece_around(offset: u64, size: u64) -> Range<u64> {
    let start = offset / LARGE_PIECE * LARGE_PIECE;
    start..(start + LARGE_PIECE).min(size)
}

#[cfg(test)]
mod tests;
