//! How the reader of one mapping passes through its file: which windows it is in, what it has passed, and which of that is
//! to leave.

use super::{Holder, Place, Retention};
use crate::policy::budget::Budget;
use crate::policy::storage::longest_window;
use crate::policy::stream::StreamId;
use std::collections::{HashMap, VecDeque};
use std::ops::{DerefMut, Range};
use std::time::Duration;

/// Windows of a stream that its reader may still be in: the current one and the one before the next.
const ACTIVE: usize = 2;

/// Parts that wait, at most: of a reader that lets go of nothing.
const PASSED: usize = 256;

/// Gaps up to so many bytes are let go of together with what lies around them.
const GAP: u64 = 1 << 20;

/// Bytes of the file in which what lies apart is let go of as one.
const AT_ONCE: u64 = 16 << 20;

/// Of the budget: another stream that is so near behind reads the pages once more.
const NEAR: u64 = 4;

/// What is cached of one file, what bounds it, and who else reads it.
pub trait PageCache {
    /// Bytes of all files that share what bounds it.
    fn size(&self) -> u64;

    /// What is held, and what may be.
    fn budget(&self) -> Budget;

    /// Bytes of this part that were fetched and not dropped.
    fn kept(&self, part: &Range<u64>) -> u64;

    /// Has it looked which of what is kept the kernel has evicted, of the next stretch of the file. Whether there was any when it
    /// was looked last.
    fn reconcile(&self) -> bool;

    /// Drops what nobody has mapped of what is kept of this part. Whether nothing of it is left.
    fn drop_pages(&self, part: &Range<u64>) -> bool;

    /// The same, soon, unless a stream comes to it within so many bytes by then, and has it noted ([`Retention::dropped`]).
    fn drop_soon(&self, part: Range<u64>, near: u64);

    /// What is to leave, shared by all readers of the file.
    fn retention(&self) -> impl DerefMut<Target = Retention>;

    /// The time, on the clock that all readers of the file share.
    fn now(&self) -> Duration;
}

/// Bytes that are being dropped, after which no more are for now.
const GOING: u64 = 64 << 20;

pub struct Passage {
    holder: Holder,
    /// How many share the budget, as it was last seen.
    readers: u64,
    /// Requested windows of each stream, oldest first: what is to be fetched of them, by place.
    windows: HashMap<StreamId, VecDeque<Vec<Range<u64>>>>,
    /// Read, and to be dropped unless there is room.
    passed: VecDeque<Range<u64>>,
    /// What the reader was asked to unmap.
    asked: Option<Range<u64>>,
}

impl Passage {
    pub fn new(holder: Holder) -> Self {
        Self { holder, readers: 1, windows: HashMap::new(), passed: VecDeque::new(), asked: None }
    }

    /// A stream has got on: these extents, in reading order, are requested for it. So many readers share the budget.
    pub fn advance(&mut self, stream: StreamId, extents: &[Range<u64>], readers: u64, cache: &impl PageCache) {
        self.readers = readers;
        let windows = self.windows.entry(stream).or_default();
        let mut sorted = extents.to_vec();
        sorted.sort_by_key(|extent| extent.start);
        windows.push_back(joined(sorted, |last, next| next.start <= last.end));
        let passed: Vec<_> = windows.drain(..windows.len().saturating_sub(ACTIVE)).collect();
        let place = place_of(windows);
        self.pass(passed);
        cache.retention().note(self.holder, stream, place, cache.now());
        while self.passed.len() > PASSED {
            self.passed.pop_front();
        }
    }

    /// A stream is over.
    pub fn end(&mut self, stream: StreamId, cache: &impl PageCache) {
        let passed = self.windows.remove(&stream).into_iter().flatten().collect();
        self.pass(passed);
        cache.retention().note(self.holder, stream, None, cache.now());
    }

    /// These windows are passed.
    fn pass(&mut self, windows: Vec<Vec<Range<u64>>>) {
        let others: Vec<_> = self.windows.values().flatten().flatten().cloned().collect();
        self.passed.extend(windows.into_iter().flat_map(|extents| together(in_parts(extents), &others)));
    }

    /// Whether the reader was asked to unmap something, and [`Self::released`] has not been called since.
    pub fn awaits_release(&self) -> bool {
        self.asked.is_some()
    }

    /// The reader has unmapped what it was asked to.
    pub fn released(&mut self, cache: &impl PageCache) {
        if let Some(part) = self.asked.take() {
            cache.retention().released(self.holder, &part);
        }
    }

    /// Drops what all have let go of. What the reader is to unmap next, if there is too much.
    pub fn go_on(&mut self, cache: &impl PageCache) -> Option<Range<u64>> {
        // What was cached before is not ours to drop, and how much memory there is takes eight files to tell.
        self.passed.retain(|part| cache.kept(part) > 0);
        if self.passed.is_empty() && cache.retention().is_settled() {
            return None;
        }
        let near = cache.budget().bytes() / NEAR;
        // What waits for its turn counts as gone, so it must not be much.
        if cache.retention().going() < GOING {
            let droppable = cache.retention().droppable(near, cache.now());
            droppable.into_iter().for_each(|part| cache.drop_soon(part, near));
        }
        let wanted_already = cache.retention().wanted_from(self.holder, near, cache.now());
        self.asked = wanted_already.or_else(|| self.give_up_next(near, cache));
        self.asked.clone()
    }

    /// The next of what the reader has passed that there is no room for.
    fn give_up_next(&mut self, near: u64, cache: &impl PageCache) -> Option<Range<u64>> {
        while let Some(part) = self.passed.pop_front() {
            // What the kernel has evicted has made room already.
            let is_short = self.is_short(cache) && (!cache.reconcile() || self.is_short(cache));
            if is_short && cache.kept(&part) > 0 {
                cache.retention().leave(self.holder, part);
            }
        }
        cache.retention().wanted_from(self.holder, near, cache.now())
    }

    /// Bytes that may be fetched now without anything being dropped for them.
    pub fn room(&self, cache: &impl PageCache) -> u64 {
        cache.budget().room(self.coming(cache))
    }

    /// Whether not all of the data can be kept.
    pub fn outgrows_memory(&self, cache: &impl PageCache) -> bool {
        cache.size() > cache.budget().bytes()
    }

    /// Of windows whose size is left to us.
    pub fn longest_window(&self, cache: &impl PageCache) -> u64 {
        longest_window(cache.size(), cache.budget().bytes(), self.readers)
    }

    /// Bytes that are requested for this mapping's streams and not there yet.
    fn coming(&self, cache: &impl PageCache) -> u64 {
        let missing = |extent: &Range<u64>| extent.end - extent.start - cache.kept(extent);
        self.windows.values().flatten().flatten().map(missing).sum()
    }

    /// Whether what is held and what is on its way exceed the budget, with room for a window that will be fetched while the
    /// reader has not yet let go of another: else the kernel makes that room, and takes what came first.
    pub fn is_short(&self, cache: &impl PageCache) -> bool {
        let budget = cache.budget();
        let bytes = budget.bytes();
        let next = if cache.size() > bytes { longest_window(cache.size(), bytes, self.readers) } else { 0 };
        let leaving = cache.retention().outstanding(bytes / NEAR, cache.now());
        let leaving = leaving.iter().map(|part| cache.kept(part)).sum();
        budget.is_short_of(self.coming(cache) + next, leaving)
    }

    /// The mapping is gone, and the reader has let go of everything. What others come to soon stays.
    pub fn finish(&mut self, cache: &impl PageCache) {
        let passed = std::mem::take(&mut self.passed).into_iter();
        let windows = std::mem::take(&mut self.windows).into_values().flatten().flat_map(in_parts);
        cache.retention().forget(self.holder);
        cache.retention().try_again();
        let near = cache.budget().bytes() / NEAR;
        for part in passed.chain(windows) {
            if self.is_short(cache) && cache.kept(&part) > 0 {
                cache.retention().leave(self.holder, part);
                drop_pages(cache, near);
            }
        }
        drop_pages(cache, near);
    }
}

/// Drops what everybody has let go of.
fn drop_pages(cache: &impl PageCache, near: u64) {
    let droppable = cache.retention().droppable(near, cache.now());
    for part in droppable {
        let is_left = !cache.drop_pages(&part);
        cache.retention().dropped(&part, is_left);
    }
}

/// What the oldest of these windows leaves to be read, in their direction.
fn place_of(windows: &VecDeque<Vec<Range<u64>>>) -> Option<Place> {
    let span = |parts: &Vec<Range<u64>>| Some(parts.first()?.start..parts.last()?.end);
    let (oldest, latest) = (windows.front().and_then(span)?, windows.back().and_then(span)?);
    // What begins far before is another pass.
    let near = (oldest.end - oldest.start) + (latest.end - latest.start);
    let is_backward = latest.end <= oldest.start && oldest.start - latest.end <= near;
    Some(Place { at: if is_backward { oldest.end } else { oldest.start }, is_backward })
}

/// What a reader that skips has passed is let go of with the gaps: record by record it would take more trips than there are. Not
/// with a gap that holds something of the `others`, which the same mapping's other streams are in.
fn together(parts: Vec<Range<u64>>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut together: Vec<Range<u64>> = Vec::new();
    for part in parts {
        let is_free = |gap: Range<u64>| !others.iter().any(|other| other.start < gap.end && gap.start < other.end);
        let joins = |last: &&mut Range<u64>| part.end - last.start <= AT_ONCE && is_free(last.end..part.start);
        match together.last_mut().filter(joins) {
            Some(last) => last.end = part.end,
            None => together.push(part),
        }
    }
    together
}

/// Extents that lie near each other in the file, of which these are given by place, are let go of as one.
fn in_parts(extents: Vec<Range<u64>>) -> Vec<Range<u64>> {
    joined(extents, |last, next| next.start <= last.end + GAP && next.end - last.start <= AT_ONCE)
}

/// Extents, given by place, of which each is joined to the one before it if it is to be.
fn joined(extents: Vec<Range<u64>>, joins: impl Fn(&Range<u64>, &Range<u64>) -> bool) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    for extent in extents {
        match parts.last_mut().filter(|last| joins(last, &extent)) {
            Some(last) => last.end = last.end.max(extent.end),
            None => parts.push(extent),
        }
    }
    parts
}
