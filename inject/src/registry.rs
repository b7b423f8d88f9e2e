//! The mappings that an interposed call registered: the only memory that is ever protected.
//!
//! Private memory in a fixed table, so that a forked child has its own copy of it. Handlers hold an entry while they
//! change page tables in it (`Held`); a call that unmaps first takes the entry out of the table, then waits until
//! nobody holds it. So no protection can land on memory that is somebody else's by then.

mod lifecycle;

use self::lifecycle::{Lifecycle, Turns};
use crate::curtain::Curtain;
use crate::populating::Trial;
use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use precache_contract::segment::{MAPPINGS, Method};

/// What is known of a mapping when it is registered.
pub struct Description {
    /// First protected byte, a page boundary.
    pub start: usize,
    /// Bytes protected, whole pages, all inside the file.
    pub length: usize,
    /// File offset of `start`.
    pub offset: u64,
    /// Device and inode number of the file.
    pub file: (u64, u64),
    /// The program's own protection.
    pub protection: c_int,
    pub distance: u64,
    pub method: Method,
}

pub struct Entry {
    lifecycle: Lifecycle,
    start: AtomicUsize,
    end: AtomicUsize,
    offset: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
    protection: AtomicI32,
    generation: AtomicU32,
    guards: AtomicBool,
    /// The next thread that has its turn lifts the curtain for good.
    doomed: AtomicBool,
    /// Initialised while the entry is armed. Without a value until then the table is all zeros, and takes no room in
    /// the library's file.
    curtain: UnsafeCell<MaybeUninit<Curtain>>,
    /// The same holds for it.
    trial: UnsafeCell<MaybeUninit<Trial>>,
}

// SAFETY: `curtain` and `trial` are only reached through `Turn`, of which `TURNS` lets one exist at a time; all else is atomic.
unsafe impl Sync for Entry {}

static TABLE: [Entry; MAPPINGS] = [const { Entry::new() }; MAPPINGS];

/// Entries in use: zero lets every interposed call through at once.
static IN_USE: AtomicU32 = AtomicU32::new(0);

static TURNS: Turns = Turns::new(AtomicU64::new(0));
const _: () = assert!(MAPPINGS <= u64::BITS as usize);

/// How often a mapping has entered or left the table.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// What is armed, in brief: most buffers of most calls are held against this alone. Empty spans are unused.
static ARMED_SPANS: [[AtomicUsize; 2]; MAPPINGS] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAPPINGS];

/// Slots from this one on have never been used.
static TOP: AtomicUsize = AtomicUsize::new(0);

/// All mappings ever armed lie between these: most buffers of most calls do not.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// Ranges that left the table lately. A fault that was on its way when its mapping left is let through again.
static LEFT: [[AtomicUsize; 2]; MAPPINGS] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAPPINGS];
static LEFT_NEXT: AtomicUsize = AtomicUsize::new(0);

impl Entry {
    const fn new() -> Self {
        Self {
            lifecycle: Lifecycle::new(AtomicU32::new(0), AtomicU32::new(0)),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            offset: AtomicU64::new(0),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
            protection: AtomicI32::new(0),
            generation: AtomicU32::new(0),
            guards: AtomicBool::new(false),
            doomed: AtomicBool::new(false),
            curtain: UnsafeCell::new(MaybeUninit::uninit()),
            trial: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    fn covers(&self, address: usize) -> bool {
        (self.start.load(Relaxed)..self.end.load(Relaxed)).contains(&address)
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.lifecycle.is_armed() && self.start.load(Relaxed) < end && start < self.end.load(Relaxed)
    }

    fn is_leaving(&self, start: usize, end: usize) -> bool {
        self.lifecycle.is_leaving() && self.start.load(Relaxed) < end && start < self.end.load(Relaxed)
    }
}

/// A slot that is being filled in.
pub struct Claim {
    slot: usize,
    entry: &'static Entry,
}

impl Claim {
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Number of this use of the slot, odd.
    pub fn generation(&self) -> u32 {
        self.entry.generation.load(Relaxed) | 1
    }

    /// From here on the handler knows the mapping.
    pub fn register(self, what: &Description) -> Held {
        let entry = self.entry;
        // SAFETY: nobody else reaches a claimed entry's curtain and trial: `enter` passes over entries that are not armed,
        // and only the claimer may register.
        unsafe {
            (*entry.curtain.get()).write(Curtain::new(what.length as u64, what.distance, what.method));
            (*entry.trial.get()).write(Trial::UNTRIED);
        }
        entry.start.store(what.start, Relaxed);
        entry.end.store(what.start + what.length, Relaxed);
        entry.offset.store(what.offset, Relaxed);
        entry.device.store(what.file.0, Relaxed);
        entry.inode.store(what.file.1, Relaxed);
        entry.protection.store(what.protection, Relaxed);
        entry.guards.store(false, Relaxed);
        entry.doomed.store(false, Relaxed);
        entry.generation.fetch_or(1, Relaxed);
        LOWEST.fetch_min(what.start, SeqCst);
        HIGHEST.fetch_max(what.start + what.length, SeqCst);
        TOP.fetch_max(self.slot + 1, SeqCst);
        if let Some([start, end]) = ARMED_SPANS.get(self.slot) {
            start.store(what.start, SeqCst);
            end.store(what.start + what.length, SeqCst);
        }
        IN_USE.fetch_add(1, SeqCst);
        entry.lifecycle.arm();
        // Last: whoever did not find the entry after reading the number before, reads another now.
        CHANGES.fetch_add(1, SeqCst);
        Held { slot: self.slot, entry }
    }
}

/// Claims a free slot; `None` when all are taken.
pub fn claim() -> Option<Claim> {
    TABLE.iter().enumerate().find(|(_, entry)| entry.lifecycle.claim()).map(|(slot, entry)| Claim { slot, entry })
}

/// An armed mapping that cannot be unmapped while this exists.
pub struct Held {
    slot: usize,
    entry: &'static Entry,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.entry.lifecycle.release();
    }
}

impl Held {
    fn of(slot: usize, entry: &'static Entry) -> Option<Self> {
        entry.lifecycle.hold().then(|| Held { slot, entry })
    }

    pub fn slot(&self) -> usize {
        self.slot
    }

    pub fn generation(&self) -> u32 {
        self.entry.generation.load(Relaxed)
    }

    pub fn start(&self) -> usize {
        self.entry.start.load(Relaxed)
    }

    pub fn length(&self) -> usize {
        self.entry.end.load(Relaxed) - self.start()
    }

    /// File offset of the first protected byte.
    pub fn offset(&self) -> u64 {
        self.entry.offset.load(Relaxed)
    }

    /// Device and inode number of the file.
    pub fn file(&self) -> (u64, u64) {
        (self.entry.device.load(Relaxed), self.entry.inode.load(Relaxed))
    }

    pub fn protection(&self) -> c_int {
        self.entry.protection.load(Relaxed)
    }

    /// Whether a guard may lie in it.
    pub fn has_guards(&self) -> bool {
        self.entry.guards.load(SeqCst)
    }

    /// To be said before a guard is placed: whoever meets it then knows that it may be one.
    pub fn set_guards(&self, may_lie_in_it: bool) {
        self.entry.guards.store(may_lie_in_it, SeqCst);
    }

    /// To be let go of at the next turn.
    pub fn doom(&self) {
        self.entry.doomed.store(true, Release);
    }

    pub fn is_doomed(&self) -> bool {
        self.entry.doomed.load(Acquire)
    }

    /// The right to change the curtain, unless another thread has it.
    pub fn try_turn(&self) -> Option<Turn<'_>> {
        // Made only when it is ours: a `Turn` that is dropped ends the turn of whoever has it.
        TURNS.take(self.slot).then(|| Turn { held: self })
    }

    /// The same, waiting: not for signal context. Turns last some microseconds, with all signals blocked.
    pub fn wait_turn(&self) -> Turn<'_> {
        loop {
            match self.try_turn() {
                Some(turn) => return turn,
                None => sys::yield_now(),
            }
        }
    }
}

/// The sole right to change an entry's curtain.
pub struct Turn<'a> {
    held: &'a Held,
}

impl Turn<'_> {
    /// The mapping gets no guards, though it was registered for them; none has been placed yet.
    pub fn do_without_guards(&mut self) {
        self.curtain().do_without_guards();
    }

    pub fn curtain(&mut self) -> &mut Curtain {
        // SAFETY: the bit in `TURNS` was clear and is set until this drops, so no other reference to the curtain exists; `Held` is
        // made of an armed entry alone, and `register` initialised that.
        unsafe { (*self.held.entry.curtain.get()).assume_init_mut() }
    }

    pub fn trial(&mut self) -> &mut Trial {
        // SAFETY: as for the curtain.
        unsafe { (*self.held.entry.trial.get()).assume_init_mut() }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        TURNS.give_back(self.held.slot);
    }
}

/// Whether no mapping is registered at all.
pub fn is_empty() -> bool {
    IN_USE.load(Relaxed) == 0
}

/// Whether anything armed could lie at or above the address.
pub fn could_lie_above(address: usize) -> bool {
    !is_empty() && address < HIGHEST.load(Relaxed)
}

/// Whether an armed mapping overlaps the range.
pub fn overlaps(start: usize, end: usize) -> bool {
    !is_empty()
        && start < HIGHEST.load(Relaxed)
        && LOWEST.load(Relaxed) < end
        && ARMED_SPANS
            .iter()
            .take(TOP.load(Relaxed))
            .any(|[armed, until]| armed.load(Relaxed) < end && start < until.load(Relaxed))
}

/// The same, or one that another thread is taking out of the table.
pub fn overlaps_or_leaving(start: usize, end: usize) -> bool {
    start < HIGHEST.load(Relaxed)
        && LOWEST.load(Relaxed) < end
        && TABLE.iter().any(|entry| entry.overlaps(start, end) || entry.is_leaving(start, end))
}

/// Waits until no handler is at work in mappings of the range that other threads are taking out of the table. Not for
/// signal context.
pub fn await_leaving(start: usize, end: usize) {
    for entry in &TABLE {
        while entry.is_leaving(start, end) && entry.lifecycle.is_held() {
            sys::yield_now();
        }
    }
}

/// Waits until nobody is in its turn who began before this call. Not for signal context.
pub fn await_turns() {
    let mut begun = TURNS.taken();
    while begun != 0 {
        sys::yield_now();
        begun &= TURNS.taken();
    }
}

/// The armed mapping that `address` lies in.
pub fn holding(address: usize) -> Option<Held> {
    TABLE.iter().enumerate().find_map(|(slot, entry)| {
        if !entry.lifecycle.is_armed() || !entry.covers(address) {
            return None;
        }
        Held::of(slot, entry).filter(|held| held.entry.covers(address))
    })
}

/// Calls `each` for every armed mapping that overlaps the range.
pub fn each_overlapping(start: usize, end: usize, mut each: impl FnMut(Held)) {
    for (slot, entry) in TABLE.iter().enumerate() {
        if entry.overlaps(start, end)
            && let Some(held) = Held::of(slot, entry)
        {
            each(held);
        }
    }
}

/// A mapping on its way out: no handler touches it any more. The slot is free again when this drops.
pub struct Leaving {
    slot: usize,
    entry: &'static Entry,
}

impl Leaving {
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The range that was protected.
    pub fn range(&self) -> (usize, usize) {
        (self.entry.start.load(Relaxed), self.entry.end.load(Relaxed))
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.entry.generation.fetch_add(1, Relaxed);
        self.entry.lifecycle.free();
    }
}

/// Takes the held mapping out of the table and waits for the handlers at work in it. `None`: somebody else is at it.
/// Not for signal context.
pub fn leave(held: Held) -> Option<Leaving> {
    let (slot, entry) = (held.slot, held.entry);
    if let Some(left) = LEFT.get(LEFT_NEXT.fetch_add(1, Relaxed) % LEFT.len()) {
        left[0].store(entry.start.load(Relaxed), Relaxed);
        left[1].store(entry.end.load(Relaxed), Release);
    }
    if !entry.lifecycle.mark_leaving() {
        return None;
    }
    CHANGES.fetch_add(1, SeqCst);
    IN_USE.fetch_sub(1, SeqCst);
    if let Some([_, until]) = ARMED_SPANS.get(slot) {
        until.store(0, SeqCst);
    }
    drop(held);
    while entry.lifecycle.is_held() && !cfg!(feature = "sabotage-unmap-does-not-wait") {
        sys::yield_now();
    }
    Some(Leaving { slot, entry })
}

/// A number that changes whenever a mapping enters or leaves the table.
pub fn changes() -> u32 {
    CHANGES.load(SeqCst)
}

/// Whether `address` belonged to a mapping that left the table lately.
pub fn left_lately(address: usize) -> bool {
    LEFT.iter().any(|[start, end]| (start.load(Relaxed)..end.load(Acquire)).contains(&address))
}

/// In a forked child, whose only thread this is: nobody else holds anything. Calls `each` for every armed mapping
/// with its curtain as new.
pub fn reset_after_fork(mut each: impl FnMut(&Held)) {
    TURNS.reset_after_fork();
    for (slot, entry) in TABLE.iter().enumerate() {
        entry.lifecycle.reset_after_fork();
        // What a thread of the parent was taking out is not protected for long, if at all.
        let Some(held) = Held::of(slot, entry) else { continue };
        let mut turn = held.wait_turn();
        turn.curtain().begin_again();
        *turn.trial() = Trial::UNTRIED;
        drop(turn);
        each(&held);
    }
}
