//! What becomes of a file of which chunks cannot be read: a chunk that fails is left to the program, which may fare better
//! later or has to be told anyway; a file of which nothing can be read any more is given up.

use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Mutex, MutexGuard};

/// So many failures with nothing read in between end it. That is more than one hiccup of the storage brings where few
/// requests are in flight, and costs nothing where many are.
const IN_A_ROW: u32 = 16;

#[derive(Default)]
pub struct Failures {
    in_a_row: AtomicU32,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// Chunks that were left to the program, and why the first one was.
    left: u32,
    first: Option<String>,
    ended: Option<String>,
}

impl Failures {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A chunk was read.
    pub fn end_row(&self) {
        if self.in_a_row.load(Relaxed) > 0 {
            self.in_a_row.store(0, Relaxed);
        }
    }

    /// A chunk could not be read.
    pub fn add(&self, why: String) {
        let in_a_row = self.in_a_row.fetch_add(1, Relaxed) + 1;
        let mut told = self.told();
        told.left = told.left.saturating_add(1);
        told.first.get_or_insert_with(|| why.clone());
        if in_a_row >= IN_A_ROW {
            told.ended.get_or_insert(why);
        }
    }

    /// Why nothing is fetched any more.
    pub fn ended(&self) -> Option<String> {
        self.told().ended.clone()
    }

    /// How many chunks were left to the program, and why the first one was.
    pub fn left(&self) -> Option<(u32, String)> {
        let told = self.told();
        told.first.clone().map(|first| (told.left, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_row_of_failures_ends_it() {
        let failures = Failures::default();
        for round in 0..3 * IN_A_ROW {
            failures.add(format!("failure {round}"));
            if round % (IN_A_ROW - 1) == 0 {
                failures.end_row();
            }
        }
        assert_eq!((failures.ended(), failures.left()), (None, Some((3 * IN_A_ROW, "failure 0".into()))));
        (0..IN_A_ROW).for_each(|_| failures.add("again".into()));
        assert_eq!(failures.ended(), Some("again".into()));
    }
}
