//! Arming against fork: whatever a thread of the parent is in the middle of, the child finds nothing half done that it would
//! take for whole, and nothing that is held for ever.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use precache_models::check;
use precache_models::gate::Gate;
use precache_models::lifecycle::Lifecycle;
use precache_models::{AtomicU32, AtomicU64};
use std::sync::atomic::Ordering::*;

/// One thread enrols the process while another one forks. Loom sees to it that nobody
/// looks at their work, as a child's copy of it does, while it is under way.
fn work_and_fork(worker_looks: bool, fork_waits: bool) {
    check(move || {
        let parent = Arc::new((Gate::new(AtomicU32::new(0), AtomicU32::new(0)), UnsafeCell::new(0)));
        let others = parent.clone();
        let worker = thread::spawn(move || {
            let (gate, work) = &*others;
            // Who would wait does nothing more: that it looks later, loom tries, too.
            if gate.enter() || !worker_looks {
                // SAFETY: loom fails if another thread has it now.
                work.with_mut(|work| unsafe { *work += 1 });
            }
            gate.leave();
        });
        let (gate, work) = &*parent;
        gate.begin_fork();
        if gate.is_quiet() || !fork_waits {
            // SAFETY: as above.
            work.with(|work| assert!(unsafe { *work } <= 1));
        }
        gate.end_fork();
        worker.join().unwrap();
        assert!(gate.is_quiet() && gate.enter());
    });
}

#[test]
fn no_fork_comes_in_the_middle_of_work() {
    work_and_fork(true, true);
}

#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn it_does_if_threads_do_not_look_for_forks() {
    work_and_fork(false, true);
}

#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn it_does_if_forks_do_not_wait() {
    work_and_fork(true, false);
}

/// One place in the table, and where its mapping lies; 0 before it is filled in.
struct World {
    state: AtomicU32,
    holders: AtomicU32,
    start: AtomicU64,
    lifecycle: Lifecycle,
}

const START: u64 = 7;

impl World {
    fn with(state: u32, holders: u32, start: u64) -> Self {
        let (state, holders) = (AtomicU32::new(state), AtomicU32::new(holders));
        let lifecycle = Lifecycle::new(state.clone(), holders.clone());
        Self { state, holders, start: AtomicU64::new(start), lifecycle }
    }

    /// As `arming::arm` does it.
    fn arm(&self) {
        if self.lifecycle.claim() {
            self.start.store(START, Relaxed);
            self.lifecycle.arm();
            self.lifecycle.release();
        }
    }

    fn trip(&self) {
        if self.lifecycle.is_armed() && self.lifecycle.hold() {
            self.lifecycle.release();
        }
    }

    /// What a child has. The words are looked at one after the other: more than can happen to a child, which has them as
    /// they are at one moment, but for the state, that comes first here and last in `arm`.
    fn fork(&self) -> Self {
        Self::with(self.state.load(SeqCst), self.holders.load(SeqCst), self.start.load(SeqCst))
    }

    /// The child adopts the place, then unmaps what is there and maps anew.
    fn use_in_child(&self, resets: bool) {
        if resets {
            self.lifecycle.reset_after_fork();
        }
        if self.lifecycle.is_armed() {
            assert!(self.lifecycle.hold(), "what is armed can be held");
            assert_eq!(self.start.load(Relaxed), START, "what is armed is filled in");
            assert!(self.lifecycle.mark_leaving());
            self.lifecycle.release();
            assert!(!self.lifecycle.is_held(), "held for ever by a thread of the parent");
            self.lifecycle.free();
        }
        assert!(self.lifecycle.claim(), "claimed for ever by a thread of the parent");
    }
}

/// A thread unmaps what is armed, and one forks.
#[test]
fn a_child_finds_places_free_that_the_parent_was_emptying() {
    check(|| {
        let parent = Arc::new(World::with(0, 0, 0));
        parent.arm();
        let unmapping = parent.clone();
        let unmapping = thread::spawn(move || {
            assert!(unmapping.lifecycle.mark_leaving());
            unmapping.lifecycle.free();
        });
        parent.fork().use_in_child(true);
        unmapping.join().unwrap();
    });
}

/// A thread arms, one trips, and one forks.
fn arm_and_fork(resets: bool) {
    check(move || {
        let parent = Arc::new(World::with(0, 0, 0));
        let (arming, tripping) = (parent.clone(), parent.clone());
        let arming = thread::spawn(move || arming.arm());
        let tripping = thread::spawn(move || tripping.trip());
        let child = parent.fork();
        child.use_in_child(resets);
        arming.join().unwrap();
        tripping.join().unwrap();
        // The parent's own is as it was.
        assert!(parent.lifecycle.is_armed() && !parent.lifecycle.is_held());
    });
}

#[test]
fn a_child_finds_every_place_whole_or_free() {
    arm_and_fork(true);
}

#[test]
#[should_panic(expected = "for ever by a thread of the parent")]
fn what_threads_of_the_parent_hold_must_be_forgotten() {
    arm_and_fork(false);
}
