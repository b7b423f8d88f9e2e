//! Keeps the data files of one mapping within the budget: what does not fit is dropped right behind the reader.
//!
//! The kernel would drop what was read longest ago. Of data that are read in the same order again and again and do not
//! fit, that is always what is needed next, and every epoch reads all of it anew. What is kept here is what came first;
//! what exceeds the budget passes through.

use super::feeder::Supply;
use super::files::Files;
use crate::engine::{Account, DataFile, Lane};
use crate::policy::storage::longest_window;
use crate::policy::stream::StreamId;
use crate::progress::{MappingId, ProgressSource};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Windows of a stream that its reader may still be in: the current one and the one before the next.
const ACTIVE: usize = 2;

/// Gaps up to so many bytes are let go of together with what lies around them.
const GAP: u64 = 1 << 20;

/// Of the budget: another stream that is so near behind reads the pages once more.
const NEAR: u64 = 4;

pub struct Retainer {
    mapping: MappingId,
    /// Number of the reader.
    reader: u64,
    file: Arc<DataFile>,
    account: Arc<Account>,
    files: Arc<Files>,
    /// Bytes of page cache that the user allows.
    limit: u64,
    /// Requested windows of each stream, oldest first.
    windows: HashMap<StreamId, VecDeque<Vec<Range<u64>>>>,
    /// Read, and to be dropped unless there is room.
    passed: VecDeque<Range<u64>>,
    /// What the reader was asked to unmap.
    asked: Option<Range<u64>>,
}

impl Retainer {
    pub fn new(mapping: MappingId, reader: u64, supply: &Supply, files: Arc<Files>, limit: Option<u64>) -> Self {
        Self {
            mapping,
            reader,
            file: Arc::clone(&supply.file),
            account: Arc::clone(&supply.account),
            files,
            limit: limit.unwrap_or(u64::MAX),
            windows: HashMap::new(),
            passed: VecDeque::new(),
            asked: None,
        }
    }

    /// A stream has got on: these extents, in reading order, are requested for it.
    pub fn advance(&mut self, stream: StreamId, extents: &[Range<u64>]) {
        let windows = self.windows.entry(stream).or_default();
        windows.push_back(in_parts(extents));
        while windows.len() > ACTIVE {
            self.passed.extend(windows.pop_front().into_iter().flatten());
        }
        let oldest = windows.front().and_then(|parts| parts.first()).map(|part| part.start);
        self.file.note_position(self.lane(stream), oldest);
    }

    /// A stream is over.
    pub fn end(&mut self, stream: StreamId) {
        self.passed.extend(self.windows.remove(&stream).into_iter().flatten().flatten());
        self.file.note_position(self.lane(stream), None);
    }

    /// Drops what the reader has let go of, and asks it to let go of the next, if there is too much.
    pub fn go_on(&mut self, source: &dyn ProgressSource) {
        if self.asked.is_some() {
            if !source.is_released(self.mapping) {
                return;
            }
            self.asked.take().into_iter().for_each(|part| self.file.drop_pages(&part, &self.account));
        }
        while let Some(part) = self.passed.pop_front() {
            let Some(budget) = self.exceeded() else { continue };
            let awaited = self.file.is_awaited(part.start, budget / NEAR, self.lane(0));
            if !awaited && !self.file.kept.within(&part).is_empty() {
                source.release(self.mapping, &part);
                self.asked = Some(part);
                return;
            }
        }
    }

    fn lane(&self, stream: StreamId) -> Lane {
        self.mapping.lane(self.reader, stream)
    }

    /// Bytes that may be fetched now without anything being dropped for them.
    pub fn room(&self) -> u64 {
        self.budget().saturating_sub(self.files.held.bytes() + self.coming())
    }

    /// Bytes of page cache that the data files may take.
    pub fn budget(&self) -> u64 {
        self.files.memory.budget().min(self.limit)
    }

    /// Bytes that are requested for this mapping's streams and not there yet.
    fn coming(&self) -> u64 {
        let missing = |part: &Range<u64>| {
            let kept: u64 = self.file.kept.within(part).iter().map(|kept| kept.end - kept.start).sum();
            part.end - part.start - kept
        };
        self.windows.values().flatten().flatten().map(missing).sum()
    }

    /// The budget, if what is held and what is on its way exceed it, with room for a window that will be fetched while the
    /// reader has not yet let go of another: else the kernel makes that room, and takes what came first.
    fn exceeded(&self) -> Option<u64> {
        let budget = self.budget();
        let next = if self.file.size > budget { longest_window(self.file.size, budget) } else { 0 };
        (self.files.held.bytes() + self.coming() + next > budget).then_some(budget)
    }
}

impl Drop for Retainer {
    /// The mapping is gone, and the reader has let go of everything.
    fn drop(&mut self) {
        let windows = std::mem::take(&mut self.windows);
        windows.keys().for_each(|&stream| self.file.note_position(self.lane(stream), None));
        let passed = std::mem::take(&mut self.passed);
        for part in self.asked.take().into_iter().chain(passed).chain(windows.into_values().flatten().flatten()) {
            if self.exceeded().is_some() {
                self.file.drop_pages(&part, &self.account);
            }
        }
    }
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
    use crate::engine::Pool;

    const MIB: u64 = 1 << 20;

    /// What a reader comes to and is kept already needs no room.
    #[test]
    fn only_what_is_missing_needs_room() {
        let files = Arc::<Files>::default();
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * MIB).unwrap();
        let file = Arc::new(DataFile::new(file, None, None, &files.held).unwrap());
        let supply = Supply { file: Arc::clone(&file), account: Arc::default(), pool: Arc::<Pool>::default() };
        let mapping = MappingId { slot: 0, generation: 1 };
        let mut retainer = Retainer::new(mapping, 0, &supply, files, Some(30 * MIB));

        let window = |number: u64| number * 8 * MIB..(number + 1) * 8 * MIB;
        file.kept.add(0..16 * MIB);
        retainer.advance(1, &[window(0)]);
        retainer.advance(1, &[window(1)]);
        assert_eq!(retainer.exceeded(), None);
        retainer.advance(1, &[window(2)]);
        assert_eq!(retainer.exceeded(), Some(30 * MIB));
    }
}
