//! What becomes of a file of which chunks cannot be read: a chunk that fails is left to the program, which may fare better
//! later or has to be told anyway; where one after the other fails, the storage is left alone for a while, for outages pass.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// After so many failures with nothing read in between the file rests. That is more than one hiccup of the storage brings where
/// few requests are in flight, and costs nothing where many are.
const IN_A_ROW: u32 = 16;
/// How long it rests first, and at most: each failure after a rest doubles it.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(64);

/// Pure: times come from the caller, on one clock.
#[derive(Default)]
pub struct Failures {
    in_a_row: AtomicU32,
    /// Nanoseconds; 0: it does not rest.
    rests_until: AtomicU64,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// Chunks that were left to the program, and why the first one was.
    left: u32,
    first: Option<String>,
    /// Why the file rests, and for how long.
    rest: Option<(String, Duration)>,
}

impl Failures {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A chunk was read. While the file rests nothing is asked for: what comes then was in flight before, and says nothing of the
    /// storage now.
    pub fn end_row(&self, now: Duration) {
        if self.in_a_row.load(Relaxed) > 0 && !self.is_resting(now) {
            self.in_a_row.store(0, Relaxed);
            self.rests_until.store(0, Relaxed);
            self.told().rest = None;
        }
    }

    /// A chunk could not be read.
    pub fn add(&self, why: String, now: Duration) {
        let in_a_row = self.in_a_row.fetch_add(1, Relaxed).saturating_add(1);
        let mut told = self.told();
        told.left = told.left.saturating_add(1);
        told.first.get_or_insert_with(|| why.clone());
        // What was in flight when the rest began says nothing new.
        if in_a_row >= IN_A_ROW && !self.is_resting(now) {
            let rest = told.rest.take().map_or(FIRST_REST, |(_, rest)| (2 * rest).min(LONGEST_REST));
            self.rests_until.store((now + rest).as_nanos() as u64, Relaxed);
            told.rest = Some((why, rest));
        }
    }

    /// Whether nothing is to be fetched now.
    pub fn is_resting(&self, now: Duration) -> bool {
        now.as_nanos() < u128::from(self.rests_until.load(Relaxed))
    }

    /// Why nothing could be read of late, if so many failed in a row.
    pub fn lasting(&self) -> Option<String> {
        self.told().rest.as_ref().map(|(why, _)| why.clone())
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

    fn fail(failures: &Failures, times: u32, now: Duration) {
        (0..times).for_each(|number| failures.add(format!("failure {number}"), now));
    }

    #[test]
    fn only_a_row_of_failures_makes_it_rest() {
        let (failures, now) = (Failures::default(), Duration::from_secs(7));
        for _ in 0..3 {
            fail(&failures, IN_A_ROW - 1, now);
            failures.end_row(now);
        }
        assert!(!failures.is_resting(now));
        assert_eq!((failures.lasting(), failures.left()), (None, Some((3 * (IN_A_ROW - 1), "failure 0".into()))));
        fail(&failures, IN_A_ROW, now);
        assert!(failures.is_resting(now));
        assert_eq!(failures.lasting(), Some(format!("failure {}", IN_A_ROW - 1)));
    }

    #[test]
    fn each_failure_after_a_rest_doubles_it() {
        let (failures, mut now) = (Failures::default(), Duration::ZERO);
        fail(&failures, IN_A_ROW - 1, now);
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            // The others were in flight.
            fail(&failures, 3, now);
            now += Duration::from_millis(seconds * 1000 - 1);
            assert!(failures.is_resting(now), "{seconds} s");
            now += Duration::from_millis(1);
            assert!(!failures.is_resting(now), "{seconds} s");
        }
    }

    #[test]
    fn a_chunk_that_comes_ends_the_rest() {
        let (failures, now) = (Failures::default(), Duration::ZERO);
        fail(&failures, IN_A_ROW, now);
        let later = now + FIRST_REST;
        failures.end_row(later);
        assert_eq!(failures.lasting(), None);
        fail(&failures, IN_A_ROW - 1, later);
        assert!(!failures.is_resting(later), "the row is a new one");
        fail(&failures, 1, later);
        assert!(failures.is_resting(later) && !failures.is_resting(later + FIRST_REST), "so is the rest");
    }

    #[test]
    fn a_chunk_that_was_in_flight_does_not_end_the_rest() {
        let (failures, now) = (Failures::default(), Duration::ZERO);
        fail(&failures, IN_A_ROW, now);
        failures.end_row(now);
        assert!(failures.is_resting(now) && failures.lasting().is_some());
        fail(&failures, 1, now + FIRST_REST);
        assert!(failures.is_resting(now + FIRST_REST), "the row goes on");
    }
}
