//! Keeps the data files of one mapping within the budget: what does not fit is dropped right behind the reader.
//!
//! The kernel would drop what was read longest ago. Of data that are read in the same order again and again and do not
//! fit, that is always what is needed next, and every epoch reads all of it anew. What is kept here is what came first;
//! what exceeds the budget passes through.

use super::feeder::Supply;
use super::files::Files;
use super::ledger::Ledger;
use crate::engine::{Account, DataFile};
use crate::policy::retention::{Holder, Place};
use crate::policy::storage::longest_window;
use crate::policy::stream::StreamId;
use crate::progress::{MappingId, ProgressSource};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Windows of a stream that its reader may still be in: the current one and the one before the next.
const ACTIVE: usize = 2;

/// Parts that wait, at most: of a reader that lets go of nothing.
const PASSED: usize = 256;

/// Gaps up to so many bytes are let go of together with what lies around them.
const GAP: u64 = 1 << 20;

/// Of the budget: another stream that is so near behind reads the pages once more.
const NEAR: u64 = 4;

pub struct Retainer {
    mapping: MappingId,
    holder: Holder,
    file: Arc<DataFile>,
    account: Arc<Account>,
    files: Arc<Files>,
    ledger: Arc<Ledger>,
    /// Bytes of page cache that the user allows the files of the session.
    limit: u64,
    /// How many share the budget, as it was last seen.
    readers: u64,
    /// Requested windows of each stream, oldest first.
    windows: HashMap<StreamId, VecDeque<Vec<Range<u64>>>>,
    /// Read, and to be dropped unless there is room.
    passed: VecDeque<Range<u64>>,
    /// What the reader was asked to unmap.
    asked: Option<Range<u64>>,
}

impl Retainer {
    pub fn new(
        mapping: MappingId,
        reader: u64,
        supply: &Supply,
        files: &Arc<Files>,
        ledger: &Arc<Ledger>,
        limit: Option<u64>,
    ) -> Self {
        Self {
            mapping,
            holder: mapping.holder(reader),
            file: Arc::clone(&supply.file),
            account: Arc::clone(&supply.account),
            files: Arc::clone(files),
            ledger: Arc::clone(ledger),
            limit: limit.unwrap_or(u64::MAX),
            readers: 1,
            windows: HashMap::new(),
            passed: VecDeque::new(),
            asked: None,
        }
    }

    /// A stream has got on: these extents, in reading order, are requested for it.
    pub fn advance(&mut self, stream: StreamId, extents: &[Range<u64>]) {
        self.readers = self.files.note_at_work(self.holder);
        let windows = self.windows.entry(stream).or_default();
        windows.push_back(in_parts(extents));
        while windows.len() > ACTIVE {
            self.passed.extend(windows.pop_front().into_iter().flatten());
        }
        let place = place_of(windows);
        self.file.retention().note(self.holder, stream, place, self.file.age());
        while self.passed.len() > PASSED {
            self.passed.pop_front();
        }
    }

    /// A stream is over.
    pub fn end(&mut self, stream: StreamId) {
        self.passed.extend(self.windows.remove(&stream).into_iter().flatten().flatten());
        self.file.retention().note(self.holder, stream, None, self.file.age());
    }

    /// Drops what all have let go of, and asks the reader to let go of the next, if there is too much.
    pub fn go_on(&mut self, source: &dyn ProgressSource) {
        if self.asked.is_some() {
            if !source.is_released(self.mapping) {
                return;
            }
            if let Some(part) = self.asked.take() {
                self.file.retention().released(self.holder, &part);
            }
        }
        // What was cached before is not ours to drop, and how much memory there is takes eight files to tell.
        self.passed.retain(|part| !self.file.kept.within(part).is_empty());
        if self.passed.is_empty() && self.file.retention().is_settled() {
            return;
        }
        let near = self.budget() / NEAR;
        self.drop_pages(near);
        let wanted_already = self.file.retention().wanted_from(self.holder, near, self.file.age());
        if let Some(part) = wanted_already.or_else(|| self.give_up_next(near)) {
            source.release(self.mapping, &part);
            self.asked = Some(part);
        }
    }

    /// The next of what the reader has passed that there is no room for.
    fn give_up_next(&mut self, near: u64) -> Option<Range<u64>> {
        while let Some(part) = self.passed.pop_front() {
            // What the kernel has evicted has made room already.
            let is_short = self.is_short() && (!self.file.reconcile_next() || self.is_short());
            if is_short && !self.file.kept.within(&part).is_empty() {
                let mut retention = self.file.retention();
                retention.leave(self.holder, part);
                return retention.wanted_from(self.holder, near, self.file.age());
            }
        }
        None
    }

    /// Drops what everybody has let go of.
    fn drop_pages(&self, near: u64) {
        let droppable = self.file.retention().droppable(near, self.file.age());
        for part in droppable {
            if self.file.drop_pages(&part, &self.account) {
                self.file.retention().left(&part);
            }
        }
    }

    /// Bytes that may be fetched now without anything being dropped for them.
    pub fn room(&self) -> u64 {
        let coming = self.coming();
        let free = self.bounds(self.files.budget()).map(|(held, bound)| bound.saturating_sub(held + coming));
        free.into_iter().min().unwrap_or(0)
    }

    /// What is held, and what may be: of all files as memory allows, and of the session's own as the user does.
    fn bounds(&self, memory: u64) -> [(u64, u64); 2] {
        [(self.files.held.bytes(), memory), (self.ledger.held(), self.limit)]
    }

    /// Bytes of page cache that the data files may take.
    pub fn budget(&self) -> u64 {
        self.files.budget().min(self.limit)
    }

    /// Of windows whose size is left to us, within this budget.
    pub fn longest_window(&self, budget: u64) -> u64 {
        longest_window(self.file.size, budget, self.readers)
    }

    /// Bytes that are requested for this mapping's streams and not there yet.
    fn coming(&self) -> u64 {
        let missing = |part: &Range<u64>| part.end - part.start - self.file.kept.bytes_within(part);
        self.windows.values().flatten().flatten().map(missing).sum()
    }

    /// Whether what is held and what is on its way exceed the budget, with room for a window that will be fetched while the
    /// reader has not yet let go of another: else the kernel makes that room, and takes what came first.
    fn is_short(&self) -> bool {
        let memory = self.files.budget();
        let budget = memory.min(self.limit);
        let next = if self.file.size > budget { self.longest_window(budget) } else { 0 };
        let leaving = self.file.retention().outstanding();
        let leaving: u64 = leaving.iter().map(|part| self.file.kept.bytes_within(part)).sum();
        let needed = self.coming() + next;
        self.bounds(memory).into_iter().any(|(held, bound)| held.saturating_sub(leaving) + needed > bound)
    }
}

impl Drop for Retainer {
    /// The mapping is gone, and the reader has let go of everything. What others come to soon stays.
    fn drop(&mut self) {
        let passed = std::mem::take(&mut self.passed).into_iter();
        let windows = std::mem::take(&mut self.windows).into_values().flatten().flatten();
        self.file.retention().forget(self.holder);
        self.files.forget(self.holder);
        let near = self.budget() / NEAR;
        for part in passed.chain(windows) {
            if self.is_short() && !self.file.kept.within(&part).is_empty() {
                self.file.retention().leave(self.holder, part);
                self.drop_pages(near);
            }
        }
        self.drop_pages(near);
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

/// Extents that lie near each other in the file are let go of as one.
fn in_parts(extents: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted = extents.to_vec();
    sorted.sort_by_key(|extent| extent.start);
    let mut parts: Vec<Range<u64>> = Vec::new();
    for extent in sorted {
        match parts.last_mut().filter(|last| extent.start <= last.end + GAP) {
            Some(last) => last.end = last.end.max(extent.end),
            None => parts.push(extent),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Pool, SentFile};

    const MIB: u64 = 1 << 20;

    /// In a session of its own, with a limit of 30 MiB.
    fn retainer(files: &Arc<Files>, file: &Arc<DataFile>, reader: u64) -> Retainer {
        let ledger = Arc::<Ledger>::default();
        let account = ledger.account_of(&file.record);
        let supply = Supply { file: Arc::clone(file), account, pool: Arc::<Pool>::default() };
        Retainer::new(MappingId { slot: 0, generation: 1 }, reader, &supply, files, &ledger, Some(30 * MIB))
    }

    /// A file of 64 MiB, of which nothing is cached.
    fn file(files: &Files) -> Arc<DataFile> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * MIB).unwrap();
        Arc::new(DataFile::new(SentFile::new(file), None, None, &files.held).unwrap())
    }

    fn window(number: u64) -> Range<u64> {
        number * 8 * MIB..(number + 1) * 8 * MIB
    }

    /// What a reader comes to and is kept already needs no room.
    #[test]
    fn only_what_is_missing_needs_room() {
        let files = Arc::<Files>::default();
        let file = file(&files);
        let mut retainer = retainer(&files, &file, 0);
        file.kept.add(0..16 * MIB);
        retainer.advance(1, &[window(0)]);
        retainer.advance(1, &[window(1)]);
        assert!(!retainer.is_short());
        retainer.advance(1, &[window(2)]);
        assert!(retainer.is_short());
    }

    /// A reader that ends leaves what another one comes to.
    #[test]
    fn the_last_reader_takes_what_is_too_much() {
        let files = Arc::<Files>::default();
        let file = file(&files);
        let (mut ahead, mut behind) = (retainer(&files, &file, 0), retainer(&files, &file, 1));
        behind.advance(1, &[window(0)]);
        (1..8).for_each(|number| ahead.advance(1, &[window(number)]));
        file.kept.add(0..64 * MIB);
        drop(ahead);
        assert_eq!(file.kept.within(&window(0)), [window(0)]);
        drop(behind);
        assert!(files.held.bytes() <= 30 * MIB);
    }

    /// Of the file nothing is cached: the kernel has evicted what was fetched.
    #[test]
    fn what_the_kernel_has_evicted_takes_no_room() {
        let files = Arc::<Files>::default();
        let file = file(&files);
        let mut retainer = retainer(&files, &file, 0);
        file.kept.add(0..64 * MIB);
        (0..3).for_each(|number| retainer.advance(1, &[window(number)]));
        assert!(retainer.is_short());
        assert_eq!(retainer.give_up_next(0), None);
        assert_eq!(files.held.bytes(), 0);
    }

    /// The limit of a session is not for what others hold.
    #[test]
    fn a_limit_is_for_the_files_of_the_session() {
        let files = Arc::<Files>::default();
        let (own, foreign) = (file(&files), file(&files));
        let mut retainer = retainer(&files, &own, 0);
        foreign.kept.add(0..64 * MIB);
        retainer.advance(1, &[window(0)]);
        assert!(!retainer.is_short());
        assert_eq!(retainer.room(), 22 * MIB);
        own.kept.add(0..24 * MIB);
        assert!(retainer.is_short());
    }
}
