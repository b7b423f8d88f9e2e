//! Sleep of the optimizer, and who wakes it.
//!
//! Either the sleeper, who says so first and looks for trips then, sees the trip, or the handler, who leaves the trip
//! first and looks for a sleeper then, sees the sleeper.

use crate::atomic::{AtomicU32, Ordering::*, fence};

/// A futex: 1 while the optimizer sleeps.
#[repr(transparent)]
#[derive(Debug)]
pub struct Sleeper(pub AtomicU32);

impl Sleeper {
    /// Whether the handler should wake the optimizer: it sleeps, and nobody else has set out to wake it.
    pub fn take_wake(&self) -> bool {
        fence(SeqCst);
        self.0.load(SeqCst) == 1 && self.0.swap(0, SeqCst) == 1
    }

    /// The optimizer's side: from here on a triggering trip wakes the futex. Look at the ring once more before
    /// sleeping.
    pub fn prepare(&self) {
        self.0.store(1, SeqCst);
        fence(SeqCst);
    }
}
