//! A file in the page cache of a machine: the kernel evicts what was used longest ago, once there is more than a limit, and
//! drops on demand only what nobody has mapped.

use crate::policy::budget::{Bound, Budget};
use crate::policy::retention::{AtWork, Holder, PageCache, Retention};
use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, HashMap};
use std::ops::{DerefMut, Range};
use std::time::Duration;

/// Bytes that come and go together.
pub const CELL: u64 = 64 << 10;

/// Bytes that are looked at at once for what the kernel has evicted.
const STRETCH: u64 = 64 << 20;

/// Left free of the limit, as on a true machine.
const SLACK: u64 = 32;

#[derive(Clone, Copy, Default)]
struct Cell {
    /// When it was used last; `None`: it is not cached.
    used: Option<u64>,
    /// Fetched ahead of a reader, and not known to have left.
    is_kept: bool,
}

struct State {
    cells: Vec<Cell>,
    /// Cached cells, the one that was used longest ago first.
    order: BTreeMap<u64, usize>,
    uses: u64,
    mapped: HashMap<Holder, Vec<bool>>,
    limit: u64,
    /// What the user allows.
    allowed: u64,
    /// Where the next look begins.
    reconciled: u64,
    now: Duration,
    held: u64,
    fetched: u64,
    evicted: u64,
    /// Of these, those that were found missing.
    missed: u64,
    at_work: AtWork,
}

pub struct Memory {
    state: RefCell<State>,
    retention: RefCell<Retention>,
}

impl Memory {
    /// For a file of so many bytes, with room for `limit` bytes of it.
    pub fn new(size: u64, limit: u64) -> Self {
        let state = State {
            cells: vec![Cell::default(); (size / CELL) as usize],
            order: BTreeMap::new(),
            uses: 0,
            mapped: HashMap::new(),
            limit,
            allowed: u64::MAX,
            reconciled: 0,
            now: Duration::ZERO,
            held: 0,
            fetched: 0,
            evicted: 0,
            missed: 0,
            at_work: AtWork::default(),
        };
        Self { state: RefCell::new(state), retention: RefCell::default() }
    }

    /// With room for all of it, of which the user allows so much.
    pub fn allowing(size: u64, allowed: u64) -> Self {
        let memory = Self::new(size, 2 * size);
        memory.state.borrow_mut().allowed = allowed;
        memory
    }

    /// The limit becomes another one: what is too much is evicted at once.
    pub fn set_limit(&self, limit: u64) {
        self.state.borrow_mut().limit = limit;
        self.state.borrow_mut().evict();
    }

    /// Fetches a cell ahead of a reader, if it is missing. Whether it was.
    pub fn fetch(&self, cell: usize) -> bool {
        let mut state = self.state.borrow_mut();
        let is_missing = state.cells[cell].used.is_none();
        if is_missing {
            if !std::mem::replace(&mut state.cells[cell].is_kept, true) {
                state.held += CELL;
            }
            state.bring(cell);
        }
        is_missing
    }

    /// A reader reads a cell, which takes so long.
    pub fn read(&self, holder: Holder, cell: usize, time: Duration) {
        let mut state = self.state.borrow_mut();
        state.now += time;
        match state.cells[cell].used {
            Some(_) => state.touch(cell),
            None => state.bring(cell),
        }
        let cells = state.cells.len();
        state.mapped.entry(holder).or_insert_with(|| vec![false; cells])[cell] = true;
    }

    /// The reader unmaps this part.
    pub fn unmap(&self, holder: Holder, part: &Range<u64>) {
        if let Some(mapped) = self.state.borrow_mut().mapped.get_mut(&holder) {
            mapped[cells_of(part)].fill(false);
        }
    }

    /// The mapping is gone.
    pub fn close(&self, holder: Holder) {
        let mut state = self.state.borrow_mut();
        state.mapped.remove(&holder);
        state.at_work.forget(holder);
    }

    /// A reader gets on. Returns how many do.
    pub fn note_at_work(&self, holder: Holder) -> u64 {
        let mut state = self.state.borrow_mut();
        let now = state.now;
        state.at_work.note(holder, now)
    }

    /// Time passes.
    pub fn wait(&self, time: Duration) {
        self.state.borrow_mut().now += time;
    }

    /// Bytes that are cached.
    pub fn cached(&self) -> u64 {
        self.state.borrow().order.len() as u64 * CELL
    }

    pub fn is_cached(&self, part: &Range<u64>) -> bool {
        self.state.borrow().cells[cells_of(part)].iter().all(|cell| cell.used.is_some())
    }

    /// Bytes that came from the storage, whoever asked for them.
    pub fn fetched(&self) -> u64 {
        self.state.borrow().fetched
    }

    /// Bytes that the kernel had to make room for by itself.
    pub fn evicted(&self) -> u64 {
        self.state.borrow().evicted
    }
}

impl State {
    fn bring(&mut self, cell: usize) {
        self.fetched += CELL;
        self.touch(cell);
        self.evict();
    }

    fn touch(&mut self, cell: usize) {
        self.uses += 1;
        if let Some(before) = self.cells[cell].used.replace(self.uses) {
            self.order.remove(&before);
        }
        self.order.insert(self.uses, cell);
    }

    /// What was used longest ago goes, whoever has it mapped.
    fn evict(&mut self) {
        while self.order.len() as u64 * CELL > self.limit
            && let Some((_, cell)) = self.order.pop_first()
        {
            self.cells[cell].used = None;
            self.mapped.values_mut().for_each(|mapped| mapped[cell] = false);
            self.evicted += CELL;
        }
    }

    /// What is kept no longer, because it is not there.
    fn forget_missing(&mut self, part: &Range<u64>) -> bool {
        let before = self.held;
        for cell in &mut self.cells[cells_of(part)] {
            if cell.used.is_none() && std::mem::take(&mut cell.is_kept) {
                self.held -= CELL;
            }
        }
        self.held < before
    }
}

fn cells_of(part: &Range<u64>) -> Range<usize> {
    (part.start / CELL) as usize..part.end.div_ceil(CELL) as usize
}

impl PageCache for Memory {
    fn size(&self) -> u64 {
        self.state.borrow().cells.len() as u64 * CELL
    }

    fn budget(&self) -> Budget {
        let state = self.state.borrow();
        let others = (state.order.len() as u64 * CELL).saturating_sub(state.held);
        let crowding = others.min(state.missed);
        let memory = Bound::of_memory(state.held, 0, state.limit - state.limit / SLACK, crowding);
        Budget { memory, session: Bound { held: state.held, promised: 0, most: state.allowed } }
    }

    fn kept(&self, part: &Range<u64>) -> u64 {
        let state = self.state.borrow();
        let within = |cell: usize| part.end.min((cell as u64 + 1) * CELL) - part.start.max(cell as u64 * CELL);
        cells_of(part).filter(|&cell| state.cells[cell].is_kept).map(within).sum()
    }

    fn reconcile(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let size = state.cells.len() as u64 * CELL;
        let start = state.reconciled;
        let end = (start + STRETCH).min(size);
        state.reconciled = if end < size { end } else { 0 };
        let held = state.held;
        let has_left = state.forget_missing(&(start..end));
        state.missed = if start == 0 { state.missed - state.missed / 16 } else { state.missed } + held - state.held;
        has_left
    }

    fn drop_pages(&self, part: &Range<u64>) -> bool {
        let state = &mut *self.state.borrow_mut();
        for number in cells_of(part) {
            let cell = &mut state.cells[number];
            if cell.is_kept && !state.mapped.values().any(|mapped| mapped[number]) {
                state.order.remove(&cell.used.take().unwrap_or(0));
            }
        }
        state.forget_missing(part);
        state.cells[cells_of(part)].iter().all(|cell| !cell.is_kept)
    }

    fn drop_soon(&self, part: Range<u64>, _: u64) {
        let is_left = !self.drop_pages(&part);
        self.retention().dropped(&part, is_left);
    }

    fn retention(&self) -> impl DerefMut<Target = Retention> {
        self.retention.borrow_mut() as RefMut<'_, Retention>
    }

    fn now(&self) -> Duration {
        self.state.borrow().now
    }
}
