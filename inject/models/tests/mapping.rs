//! Arming and unmapping: nothing is ever done to memory that is somebody else's by then.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use precache_models::check;
use precache_models::lifecycle::{Departures, Lifecycle, Turns};
use precache_models::{AtomicU32, AtomicU64};
use std::ops::Range;
use std::sync::atomic::Ordering::*;

/// What is at an address.
#[derive(Debug, Default, PartialEq)]
enum Memory {
    #[default]
    Ours,
    /// Unmapped by the program, and used for something else.
    TheProgram,
}

/// One place in the table and the memory that it stands for, in two halves. Loom sees to it that nobody looks at the memory while another
/// changes it: in the process these are system calls on page tables.
struct World {
    lifecycle: Lifecycle,
    /// Where the mapping lies.
    start: AtomicU32,
    /// As `registry::brief` tells: 0 when it has left.
    in_brief: AtomicU32,
    departures: Departures,
    memory: [UnsafeCell<Memory>; 2],
}

/// Where the mapping lies at first.
const START: u32 = 1;

/// Which half of it is unmapped.
const FIRST: Range<usize> = 0..1;
const SECOND: Range<usize> = 1..2;
const BOTH: Range<usize> = 0..2;

impl World {
    fn with_one_armed() -> Arc<Self> {
        let lifecycle = Lifecycle::new(AtomicU32::new(0), AtomicU32::new(0));
        assert!(lifecycle.claim());
        lifecycle.arm();
        lifecycle.release();
        Arc::new(Self {
            lifecycle,
            start: AtomicU32::new(START),
            in_brief: AtomicU32::new(1),
            departures: Departures::new(AtomicU64::new(0)),
            memory: Default::default(),
        })
    }

    fn covers(&self, address: u32) -> bool {
        self.start.load(Relaxed) == address
    }

    /// A handler at the end of its trip.
    fn arm_a_checkpoint(&self) {
        for half in &self.memory {
            half.with(|memory| {
                // SAFETY: loom fails if another thread has it now.
                assert_eq!(unsafe { &*memory }, &Memory::Ours, "memory of the program is protected");
            });
        }
    }

    fn reuse_the_address(&self, part: Range<usize>) {
        for half in &self.memory[part] {
            // SAFETY: as above.
            half.with_mut(|memory| unsafe { *memory = Memory::TheProgram });
        }
    }

    /// As `registry::holding` does it.
    fn trip(&self) {
        if self.lifecycle.is_armed() && self.covers(START) && self.lifecycle.hold() {
            if self.covers(START) {
                self.arm_a_checkpoint();
            }
            self.lifecycle.release();
        }
    }

    /// As `arming::let_go` and then the program do it: `part` is unmapped, and used anew.
    fn unmap(&self, part: Range<usize>, waits: Waits) {
        // `registry::overlaps_or_leaving`.
        if self.in_brief.load(Relaxed) == 0 && !self.departures.are_any() {
            return self.reuse_the_address(part);
        }
        let mine = self.lifecycle.hold() && {
            // The curtain is lifted here.
            let mine = self.lifecycle.mark_leaving();
            if mine && waits != Waits::Hidden {
                self.departures.begin(1);
            }
            if mine {
                self.in_brief.store(0, SeqCst);
            }
            if mine && waits == Waits::Hidden {
                self.departures.begin(1);
            }
            self.lifecycle.release();
            mine
        };
        // `registry::await_leaving`, also for whoever finds another one at it. Who would wait does nothing
        // more: that it looks later, loom tries, too.
        if waits.includes(mine) && self.lifecycle.is_leaving() && self.lifecycle.is_held() {
            return;
        }
        self.reuse_the_address(part);
    }
}

/// Who waits for handlers at work.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    All,
    /// Who takes the mapping out of the table.
    First,
    /// All, but for who looks when it is gone from where all others look, and is not yet told to be on its way.
    Hidden,
    None,
}

impl Waits {
    fn includes(self, is_first: bool) -> bool {
        matches!(self, Self::All | Self::Hidden) || self == Self::First && is_first
    }
}

fn handlers_and_one_who_unmaps(waits: Waits) {
    check(move || {
        let world = World::with_one_armed();
        let handlers: Vec<_> = (0..2)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || world.trip())
            })
            .collect();
        world.unmap(BOTH, waits);
        handlers.into_iter().for_each(|handler| handler.join().unwrap());
        assert!(!world.lifecycle.is_held());
    });
}

#[test]
fn who_unmaps_waits_for_handlers() {
    handlers_and_one_who_unmaps(Waits::All);
}

#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn without_the_wait_it_fails() {
    handlers_and_one_who_unmaps(Waits::None);
}

/// A handler that looks and then acts, holding nothing until it has looked.
#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn a_check_alone_is_not_enough() {
    check(|| {
        let world = World::with_one_armed();
        let other = world.clone();
        let handler = thread::spawn(move || {
            if other.lifecycle.is_armed() && other.covers(START) {
                other.arm_a_checkpoint();
            }
        });
        world.unmap(BOTH, Waits::All);
        handler.join().unwrap();
    });
}

/// Another mapping takes the place in the table while a handler is on its way to the one before.
#[test]
fn a_place_used_again_is_not_taken_for_the_one_before() {
    check(|| {
        let world = World::with_one_armed();
        let other = world.clone();
        let handler = thread::spawn(move || other.trip());
        world.unmap(BOTH, Waits::All);
        world.lifecycle.free();
        assert!(world.lifecycle.claim());
        world.start.store(START + 1, Relaxed);
        world.lifecycle.arm();
        world.lifecycle.release();
        handler.join().unwrap();
    });
}

/// Each of two threads unmaps a half of the mapping, of which a handler may close either.
fn a_handler_and_two_who_unmap(waits: Waits) {
    check(move || {
        let world = World::with_one_armed();
        let (tripping, other) = (world.clone(), world.clone());
        let handler = thread::spawn(move || tripping.trip());
        let other = thread::spawn(move || other.unmap(SECOND, waits));
        world.unmap(FIRST, waits);
        other.join().unwrap();
        handler.join().unwrap();
        assert!(world.lifecycle.is_leaving() && !world.lifecycle.is_held());
    });
}

#[test]
fn both_of_two_who_unmap_wait_for_handlers() {
    a_handler_and_two_who_unmap(Waits::All);
}

#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn who_comes_second_must_wait_too() {
    a_handler_and_two_who_unmap(Waits::First);
}

#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn who_comes_second_must_be_told_before() {
    a_handler_and_two_who_unmap(Waits::Hidden);
}

fn two_who_change_a_curtain(ask: bool) {
    check(move || {
        let turns = Arc::new((Turns::new(AtomicU64::new(0)), UnsafeCell::new(0)));
        let change = move |turns: &(Turns, UnsafeCell<u32>)| {
            let (turns, curtain) = turns;
            if turns.take(5) || !ask {
                // SAFETY: loom fails if another thread has it now.
                curtain.with_mut(|curtain| unsafe { *curtain += 1 });
                turns.give_back(5);
            }
        };
        let other = turns.clone();
        let handler = thread::spawn(move || change(&other));
        change(&turns);
        handler.join().unwrap();
        assert_eq!(turns.0.taken(), 0);
    });
}

#[test]
fn a_curtain_is_changed_by_one_at_a_time() {
    two_who_change_a_curtain(true);
}

#[test]
#[should_panic(expected = "Concurrent write accesses to `UnsafeCell`")]
fn out_of_turn_it_is_changed_by_two() {
    two_who_change_a_curtain(false);
}
