//! Readers of data that do not fit into memory, epoch after epoch: the policy requests windows for them, and has what there
//! is no room for let go of behind them.

use super::handler::Handler;
use super::late::Late;
use super::memory::{CELL, Memory};
use crate::policy::plan::Plan;
use crate::policy::retention::{Holder, PageCache, Passage};
use crate::policy::storage::Storage;
use crate::policy::stream::Streams;
use crate::policy::window::Sizing;
use precache_contract::{PAGE, segment::Method};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// A reader takes so long for a cell: 400 MB/s ...
const TIME: Duration = Duration::from_micros(160);
/// ... during which the storage delivers so many, of one reader's.
const PACE: usize = 3;

/// Pages of a cell.
pub(super) const PAGES: usize = (CELL / PAGE) as usize;

pub(super) struct Reader<'a> {
    memory: &'a Memory,
    holder: Holder,
    handler: Handler,
    streams: Streams,
    passage: Passage,
    queue: VecDeque<(u32, Range<u64>)>,
    /// What it unmaps at its next trip.
    asked: Option<Range<u64>>,
    /// The cell that it reads next.
    at: usize,
    late: Option<Late>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(memory: &'a Memory, number: u64, method: Method) -> Self {
        let sizing = Sizing { size: 50 * MIB, is_auto: true, threshold: 75 };
        let plan = Plan::sequential(0..memory.size());
        let streams = Streams::new(plan, 0, sizing, 8 * MIB, true, Storage::default());
        let holder = (number, 0);
        let handler = Handler::new((memory.size() / PAGE) as usize, true, method);
        Self {
            memory,
            holder,
            handler,
            streams,
            passage: Passage::new(holder),
            queue: VecDeque::new(),
            asked: None,
            at: 0,
            late: None,
        }
    }

    /// On a machine that is busy.
    pub(super) fn late(self, late: Late) -> Self {
        Self { late: Some(late), ..self }
    }

    /// Reads the next cell, after the last one the first.
    fn step(&mut self) {
        self.read(self.at * PAGES..(self.at + 1) * PAGES);
        self.at = (self.at + 1) % (self.memory.size() / CELL) as usize;
    }

    /// Reads these pages of one cell.
    pub(super) fn read(&mut self, pages: Range<usize>) {
        let cell = pages.start / PAGES;
        self.hear();
        for page in pages {
            if self.handler.is_closed(page) {
                self.trip(page);
            }
        }
        if !self.late.as_mut().is_some_and(Late::stands) {
            (0..PACE).for_each(|_| self.deliver());
        }
        let is_there = self.memory.is_cached(&(cell as u64 * CELL..(cell as u64 + 1) * CELL));
        let time = self.late.as_mut().map_or(TIME, |late| late.time(is_there));
        self.memory.read(self.holder, cell, time);
    }

    /// As the handler does, then as the feeder does.
    fn trip(&mut self, page: usize) {
        if let Some(part) = self.asked.take() {
            self.memory.unmap(self.holder, &part);
        }
        let heard = self.handler.trip(page, self.memory.now().as_secs_f64());
        match (heard, &mut self.late) {
            (Some(heard), Some(late)) => late.trip(heard, self.memory.now()),
            (Some(heard), None) => {
                let left = (0..heard.len()).rev();
                heard.into_iter().zip(left).for_each(|(offset, left)| self.observe(offset, left > 0));
                self.handler.hear(&self.streams);
            }
            (None, _) => {}
        }
    }

    /// The optimizer hears of trips that it has not heard of at once.
    fn hear(&mut self) {
        while let Some(offset) = self.late.as_mut().and_then(|late| late.heard(self.memory.now())) {
            let is_behind = self.late.as_ref().is_some_and(Late::has_more);
            self.observe(offset, is_behind);
            self.handler.hear(&self.streams);
        }
    }

    fn observe(&mut self, offset: u64, is_behind: bool) {
        self.streams.fall_behind(is_behind);
        let decision = self.streams.observe(offset, self.memory.now());
        for &stream in &decision.over {
            self.queue.retain(|(other, _)| *other != stream);
            self.passage.end(stream, self.memory);
        }
        if let Some((stream, extents)) = decision.request {
            let readers = self.memory.note_at_work(self.holder);
            self.passage.advance(stream, &extents, readers, self.memory);
            self.streams.bound_windows(self.passage.longest_window(self.memory));
            self.queue.extend(extents.into_iter().map(|extent| (stream, extent)));
        }
        if self.asked.is_none() {
            self.passage.released(self.memory);
            self.asked = self.passage.go_on(self.memory);
        }
    }

    /// The next cell of what is queued comes, if it is missing.
    fn deliver(&mut self) {
        while let Some((_, extent)) = self.queue.front_mut() {
            let cell = (extent.start / CELL) as usize;
            extent.start = (extent.start / CELL + 1) * CELL;
            if extent.start >= extent.end {
                self.queue.pop_front();
            }
            if self.memory.fetch(cell) {
                return;
            }
        }
    }

    /// Bytes that are fetched while it reads all of it once.
    fn epoch(&mut self) -> u64 {
        epoch(std::slice::from_mut(self))
    }
}

/// Bytes that are fetched while all of them read all of it once, in turn.
fn epoch(readers: &mut [Reader]) -> u64 {
    let memory = readers[0].memory;
    let before = memory.fetched();
    for _ in 0..memory.size() / CELL {
        readers.iter_mut().for_each(Reader::step);
    }
    memory.fetched() - before
}

/// Budgets in MiB that memory leaves of limits a little larger: 31 of each 32. Of smaller ones windows take more, as they
/// are not made shorter for one reader.
const BUDGETS: [u64; 3] = [248, 992, 1984];

/// A file of so many tenths of the budget, in a memory that leaves that.
fn memory(budget: u64, tenths: u64) -> Memory {
    let memory = Memory::new((budget * tenths / 10 * MIB).next_multiple_of(CELL), budget / 31 * 32 * MIB);
    assert_eq!(memory.budget().bytes(), budget * MIB);
    memory
}

/// The most that an epoch may fetch of a file of this size: what does not fit, and 15 % of that.
fn most(memory: &Memory) -> u64 {
    (memory.size() - memory.budget().bytes()) * 115 / 100
}

/// The worst case of the order in which the kernel evicts: what is needed next was used longest ago.
#[test]
fn the_kernel_alone_fetches_everything_in_each_epoch() {
    let memory = memory(992, 14);
    for epoch in 1..=3 {
        (0..(memory.size() / CELL) as usize).for_each(|cell| memory.read((1, 0), cell, TIME));
        assert_eq!(memory.fetched(), epoch * memory.size());
    }
}

#[test]
fn an_epoch_fetches_what_does_not_fit() {
    for budget in BUDGETS {
        let memory = memory(budget, 14);
        let mut reader = Reader::new(&memory, 1, Method::Mprotect);
        reader.epoch();
        for number in 2..=5 {
            let fetched = reader.epoch();
            assert!(fetched <= most(&memory), "{} of {budget} MiB in epoch {number}", fetched / MIB);
        }
        assert_eq!(memory.evicted(), 0, "the kernel had to make room within {budget} MiB");
    }
}

/// The second one is so many MiB behind: what lies between them is there when it comes, and is not kept for the next epoch.
#[test]
fn two_readers_fetch_what_does_not_fit_once() {
    for (budget, behind) in [248, 992].into_iter().flat_map(|budget| [0, 20].map(|behind| (budget, behind))) {
        let memory = memory(budget, 14);
        let mut readers = [Reader::new(&memory, 1, Method::Mprotect), Reader::new(&memory, 2, Method::Mprotect)];
        (0..behind * MIB / CELL).for_each(|_| readers[0].step());
        epoch(&mut readers);
        for number in 2..=5 {
            let fetched = epoch(&mut readers);
            let most = most(&memory) + behind * MIB;
            assert!(fetched <= most, "{} of {budget} MiB in epoch {number}, {behind} behind", fetched / MIB);
        }
        // A reader that is not alone may let go late.
        assert!(memory.evicted() <= budget * MIB / 64, "{} MiB evicted within {budget}", memory.evicted() / MIB);
    }
}

/// In the middle of an epoch the kernel takes half of what is cached, from what came first. The next epoch fetches that part
/// anew and keeps it; from then on no more is fetched than does not fit into what is left, and the kernel takes a window's
/// worth of it at most.
#[test]
fn a_limit_that_is_halved_is_followed() {
    for budget in BUDGETS {
        let memory = memory(budget, 14);
        let mut reader = Reader::new(&memory, 1, Method::Mprotect);
        (0..5 * memory.size() / CELL / 2).for_each(|_| reader.step());
        memory.set_limit(budget / 31 * 16 * MIB);
        (0..memory.size() / CELL / 2).for_each(|_| reader.step());
        reader.epoch();
        let evicted = memory.evicted();
        for number in 5..=8 {
            let fetched = reader.epoch();
            assert!(fetched <= most(&memory), "{} of {budget} MiB in epoch {number}", fetched / MIB);
        }
        let evicted = memory.evicted() - evicted;
        assert!(evicted <= 4 * 8 * MIB, "{} MiB evicted within {budget}", evicted / MIB);
    }
}

/// What comes first stays, all else passes through: each byte is fetched once, and the kernel never has to make room, which
/// it would take from others.
#[test]
fn a_single_pass_leaves_room() {
    for budget in BUDGETS {
        let memory = memory(budget, 40);
        let mut reader = Reader::new(&memory, 1, Method::Mprotect);
        assert_eq!((reader.epoch(), memory.evicted()), (memory.size(), 0));
        assert!(memory.cached() <= memory.budget().bytes(), "{} of {budget} MiB", memory.cached() / MIB);
        assert!(memory.is_cached(&(0..budget / 2 * MIB)));
    }
}
