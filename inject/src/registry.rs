//! The mappings that an interposed call registered: the only memory that is ever protected.
//!
//! Private memory in a fixed table, so that a forked child has its own copy of it. Handlers hold an entry while they
//! change page tables in it (`Held`); a call that unmaps first takes the entry out of the table, then waits until
//! nobody holds it. So no protection can land on memory that is somebody else's by then.

mod brief;
mod guards;
mod held;
mod leaving;
mod lifecycle;
mod said;

pub use self::brief::{
    are_few, could_any_lie_in, could_begin_near, could_lie_in, could_overlap, does_overlap_inline, is_among_few,
    is_in_few, lie_between_few, overlaps,
};
use self::guards::Guards;
pub use self::held::{Held, Turn, await_turns};
pub use self::leaving::{Leaving, await_leaving, have_left, overlaps_or_leaving};
use self::lifecycle::Lifecycle;
use self::said::Said;
use crate::curtain::Curtain;
use crate::glance::GLANCE;
use crate::populating::Trial;
use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*, fence};
use precache_contract::segment::{MAPPINGS, Method};

/// What is known of a mapping when it is registered.
pub struct Description {
    /// First protected byte, a page boundary.
    pub start: usize,
    /// Bytes protected, whole pages, all inside the file.
    pub length: usize,
    /// Bytes of the same mapping before `start` in which something may begin that reaches into it.
    pub lead: usize,
    /// File offset of `start`.
    pub offset: u64,
    /// Device and inode number of the file.
    pub file: (u64, u64),
    /// The program's own protection.
    pub protection: c_int,
    pub distance: u64,
    pub method: Method,
}

/// Of its own page, as far as it goes: a slow reader's trip looks up anew each page that it touches.
#[repr(align(4096))]
pub struct Entry {
    lifecycle: Lifecycle,
    start: AtomicUsize,
    end: AtomicUsize,
    offset: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
    protection: AtomicI32,
    generation: AtomicU32,
    /// A [`Method`]'s number.
    method: AtomicU32,
    guards: Guards,
    said: Said,
    /// Why the next thread that has its turn lifts the curtain for good: the number of a `Refusal`, and one; or 0.
    doom: AtomicU32,
    /// Initialised while the entry is armed. Without a value until then the table is all zeros, and takes no room in
    /// the library's file.
    curtain: UnsafeCell<MaybeUninit<Curtain>>,
    /// The same holds for it.
    trial: UnsafeCell<MaybeUninit<Trial>>,
}

// SAFETY: `curtain` and `trial` are only reached through `Turn`, of which one exists at a time; all else is atomic.
unsafe impl Sync for Entry {}

/// Each of its own page.
const _: () = assert!(size_of::<Entry>() == precache_contract::PAGE as usize);

static TABLE: [Entry; MAPPINGS] = [const { Entry::new() }; MAPPINGS];

/// How often a mapping has entered or left the table, or pages of one were closed.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static CHANGES: AtomicU32 = AtomicU32::new(0);

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
            method: AtomicU32::new(0),
            guards: Guards::new(),
            said: Said::nothing(),
            doom: AtomicU32::new(0),
            curtain: UnsafeCell::new(MaybeUninit::uninit()),
            trial: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.start.load(Relaxed) < end && start < self.end.load(Relaxed)
    }
}

/// A slot that is being filled in.
pub struct Claim {
    slot: usize,
    entry: &'static Entry,
}

impl Claim {
    /// From here on the handler knows the mapping. `None`: another one is armed in a part of it, for two threads have mapped the same
    /// pages at once (`MAP_FIXED`), and whose they are now only the kernel knows. Of the two, one at least sees the other, before any
    /// handler finds it. The slot is free again then, and nobody is about to arm the other. With signals blocked.
    pub fn register(self, what: &Description) -> Option<Held> {
        let entry = self.entry;
        // SAFETY: nobody else reaches a claimed entry's curtain and trial: `Held` is made of armed entries alone, and only
        // the claimer may register.
        unsafe {
            (*entry.curtain.get()).write(Curtain::new(what.length as u64, what.distance, what.method));
            (*entry.trial.get()).write(Trial::UNTRIED);
        }
        let (start, end) = (what.start, what.start + what.length);
        entry.start.store(start, Relaxed);
        entry.end.store(end, Relaxed);
        entry.offset.store(what.offset, Relaxed);
        entry.device.store(what.file.0, Relaxed);
        entry.inode.store(what.file.1, Relaxed);
        entry.protection.store(what.protection, Relaxed);
        entry.method.store(what.method as u32, Relaxed);
        entry.guards.forget();
        entry.said.forget();
        entry.doom.store(0, Relaxed);
        brief::enter(self.slot, start.saturating_sub(what.lead), end);
        if self.is_one_of_two(start, end) {
            brief::leave(self.slot);
            entry.lifecycle.free();
            let mut pauses = sys::Pauses::default();
            while others_in(self.slot, start, end).any(|other| other.lifecycle.is_claimed()) {
                pauses.next();
            }
            return None;
        }
        entry.generation.fetch_or(1, Relaxed);
        GLANCE.in_use.fetch_add(1, SeqCst);
        entry.lifecycle.arm();
        // Last: whoever did not find the entry after reading the number before, reads another now.
        note_change();
        Some(Held { slot: self.slot, entry })
    }

    /// Whether another one is armed in this range, or about to be: whoever is has written its place before it looks, as this one has.
    fn is_one_of_two(&self, start: usize, end: usize) -> bool {
        fence(SeqCst);
        let is_there = |other: &Entry| other.lifecycle.is_armed_or_claimed();
        others_in(self.slot, start, end).any(is_there) && !cfg!(feature = "sabotage-mapped-twice")
    }
}

/// The places of other mappings that overlap the range, whatever becomes of them.
fn others_in(slot: usize, start: usize, end: usize) -> impl Iterator<Item = &'static Entry> {
    let others = brief::slots_in(start, end).filter(move |&other| other != slot);
    // In brief what lies before a mapping may count as armed, too.
    others.filter_map(|other| TABLE.get(other)).filter(move |other| other.overlaps(start, end))
}

/// Claims a free slot; `None` when all are taken.
pub fn claim() -> Option<Claim> {
    TABLE.iter().enumerate().find(|(_, entry)| entry.lifecycle.claim()).map(|(slot, entry)| Claim { slot, entry })
}

/// Whether there is no slot for another.
pub fn is_full() -> bool {
    GLANCE.in_use.load(Relaxed) as usize >= MAPPINGS
}

/// Whether no mapping is registered at all.
pub fn is_empty() -> bool {
    GLANCE.in_use.load(Relaxed) == 0
}

/// The armed mapping that `address` lies in.
pub fn holding(address: usize) -> Option<Held> {
    let mut armed = brief::slots_at(address).filter_map(|slot| Held::of(slot, TABLE.get(slot)?));
    armed.find(|held| held.covers(address))
}

/// Calls `each` for every armed mapping.
pub fn each(mut each: impl FnMut(Held)) {
    for (slot, entry) in TABLE.iter().enumerate() {
        if entry.lifecycle.is_armed()
            && let Some(held) = Held::of(slot, entry)
        {
            each(held);
        }
    }
}

/// The same for those that overlap the range.
pub fn each_overlapping(start: usize, end: usize, mut each: impl FnMut(Held)) {
    self::each(|held| {
        // Looked at when it is held: until then its place may become another one's.
        if held.entry.overlaps(start, end) {
            each(held);
        }
    });
}

/// Whether one armed mapping holds the whole range.
pub fn is_within_one(start: usize, end: usize) -> bool {
    let mut is_within = false;
    each_overlapping(start, end, |held| {
        is_within |= held.start() <= start && end <= held.start() + held.length();
    });
    is_within
}

/// A number that changes whenever a mapping enters or leaves the table, and whenever pages are closed.
pub fn changes() -> u32 {
    CHANGES.load(SeqCst)
}

/// Pages are about to be closed.
pub fn note_change() {
    CHANGES.fetch_add(1, SeqCst);
}

/// In a forked child, whose only thread this is: nobody else holds anything, and places in which a thread of the parent was
/// putting a mapping, or from which it was taking one, are free. Calls `each` for every armed mapping
/// with its curtain as new.
pub fn reset_after_fork(mut each: impl FnMut(&Held)) {
    held::reset_after_fork();
    leaving::reset_after_fork();
    let mut in_use = 0;
    for (slot, entry) in TABLE.iter().enumerate() {
        if !entry.lifecycle.reset_after_fork() {
            // Even: out of use.
            entry.generation.fetch_add(entry.generation.load(Relaxed) & 1, Relaxed);
            brief::leave(slot);
            continue;
        }
        in_use += 1;
        // The parent has asked for it.
        entry.said.forget_wanted();
        let Some(held) = Held::of(slot, entry) else { continue };
        let mut turn = held.wait_turn();
        turn.curtain().begin_again();
        *turn.trial() = Trial::UNTRIED;
        drop(turn);
        each(&held);
    }
    GLANCE.in_use.store(in_use, SeqCst);
}
