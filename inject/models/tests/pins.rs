//! The pin that calls share: as long as one of them is at work, nothing of what it was told is open is closed.

use loom::sync::{Arc, Mutex};
use loom::thread;
use precache_models::shared::Shared;
use precache_models::{AtomicU32, AtomicUsize, check};

/// Two pages, by number; address 0 is nobody's.
const PAGES: [usize; 2] = [1, 2];

/// The pages that are open. Handlers and calls change that in their turn alone.
struct World {
    shared: Shared,
    open: Mutex<[bool; 2]>,
}

/// Whether whoever pins something else looks first whether calls are at work.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    OfWhatIsIdle,
    OfAnything,
}

impl World {
    /// The first page is shared.
    fn new() -> Arc<Self> {
        let shared = Shared::new(AtomicUsize::new(0), AtomicUsize::new(0), AtomicU32::new(0));
        assert!(shared.change(PAGES[0], PAGES[0] + 1));
        shared.has_been_opened();
        shared.leave();
        Arc::new(Self { shared, open: Mutex::new([true, false]) })
    }

    /// As `arming::prepare` does it, and then the system call.
    fn call(&self, page: usize, change: Change) {
        if self.shared.join(page, page + 1) {
            self.access(page);
            return self.shared.leave();
        }
        self.shared.leave();
        if change == Change::OfAnything {
            self.shared.reset();
        }
        if self.shared.change(page, page + 1) {
            self.open.lock().unwrap()[page - 1] = true;
            self.shared.has_been_opened();
            self.access(page);
            self.shared.leave();
        }
    }

    /// As the kernel does it: in nobody's turn.
    fn access(&self, page: usize) {
        assert!(self.open.lock().unwrap()[page - 1], "page {page} is closed");
    }

    /// A handler, in its turn.
    fn close(&self) {
        let mut open = self.open.lock().unwrap();
        for page in PAGES {
            let (pinned, until) = self.shared.range();
            open[page - 1] &= (pinned..until).contains(&page) && !self.shared.retire();
        }
    }
}

fn two_calls_and_a_handler(change: Change) {
    check(move || {
        let world = World::new();
        let calls = PAGES.map(|page| {
            let world = world.clone();
            thread::spawn(move || world.call(page, change))
        });
        world.close();
        calls.into_iter().for_each(|call| call.join().unwrap());
        // Nobody is left.
        assert!(world.shared.change(1, 2));
    });
}

#[test]
fn what_a_call_shares_stays_open() {
    two_calls_and_a_handler(Change::OfWhatIsIdle);
}

#[test]
#[should_panic(expected = "page 1 is closed")]
fn what_calls_are_at_work_on_must_not_change() {
    two_calls_and_a_handler(Change::OfAnything);
}
