//! A mapping in use: held against unmapping, and by one thread at a time its curtain changed.

use super::Entry;
use super::lifecycle::Turns;
use super::said::Said;
use crate::curtain::{Curtain, Span};
use crate::populating::Trial;
use crate::sys;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::*};
use precache_contract::segment::{MAPPINGS, Method, Refusal};

#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static TURNS: Turns = Turns::new(AtomicU64::new(0));
const _: () = assert!(MAPPINGS <= u64::BITS as usize);

/// An armed mapping that cannot be unmapped while this exists.
pub struct Held {
    pub(super) slot: usize,
    pub(super) entry: &'static Entry,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.entry.lifecycle.release();
    }
}

impl Held {
    /// `None` if the entry is not armed.
    pub(super) fn of(slot: usize, entry: &'static Entry) -> Option<Self> {
        entry.lifecycle.hold().then(|| Self { slot, entry })
    }

    pub(super) fn covers(&self, address: usize) -> bool {
        (self.start()..self.start() + self.length()).contains(&address)
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

    /// A [`Method`]'s number.
    pub fn method(&self) -> u32 {
        self.entry.method.load(Relaxed)
    }

    /// Whether a guard may lie in this part.
    pub fn has_guards(&self, span: Span) -> bool {
        self.entry.guards.may_lie_in(span)
    }

    /// To be said before a guard is placed on the page at `at`: whoever meets it then knows that it may be one.
    pub fn note_guard(&self, at: u64) {
        self.entry.guards.note(at);
    }

    /// None lies in it, and none has been placed by anybody else.
    pub fn forget_guards(&self) {
        self.entry.guards.forget();
    }

    /// What the program said of it last.
    pub fn said(&self) -> &Said {
        &self.entry.said
    }

    /// To be let go of at the next turn.
    pub fn doom(&self, why: Refusal) {
        self.entry.doom.store(why as u32 + 1, Release);
    }

    /// Why it is to be let go of, if it is.
    pub fn doomed(&self) -> Option<Refusal> {
        Refusal::ALL.get(self.entry.doom.load(Acquire).checked_sub(1)? as usize).copied()
    }

    /// The right to change the curtain, unless another thread has it.
    pub fn try_turn(&self) -> Option<Turn<'_>> {
        // Made only when it is ours: a `Turn` that is dropped ends the turn of whoever has it.
        TURNS.take(self.slot).then(|| Turn { held: self })
    }

    /// The same, waiting: not for signal context. Turns last some microseconds, with all signals blocked.
    pub fn wait_turn(&self) -> Turn<'_> {
        let mut pauses = sys::Pauses::default();
        loop {
            match self.try_turn() {
                Some(turn) => return turn,
                None => pauses.next(),
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
        self.held.entry.method.store(Method::Mprotect as u32, Relaxed);
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

/// Waits until nobody is in its turn who began before this call. Not for signal context.
pub fn await_turns() {
    let (mut begun, mut pauses) = (TURNS.taken(), sys::Pauses::default());
    while begun != 0 {
        pauses.next();
        begun &= TURNS.taken();
    }
}

/// In a forked child: turns are those of the parent's threads.
pub fn reset_after_fork() {
    TURNS.reset_after_fork();
}
