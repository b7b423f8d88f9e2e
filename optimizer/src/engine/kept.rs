//! What was fetched of a file and has not been dropped: only this may ever be dropped.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of all files that were fetched and not dropped.
#[derive(Default)]
pub struct Held(AtomicU64);

impl Held {
    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The parts of one file.
pub struct Kept {
    /// Start and end of parts that neither overlap nor touch.
    parts: Mutex<BTreeMap<u64, u64>>,
    held: Arc<Held>,
}

impl Kept {
    pub fn new(held: Arc<Held>) -> Self {
        Self { parts: Mutex::default(), held }
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// This has been fetched.
    pub fn add(&self, part: Range<u64>) {
        let mut parts = self.parts();
        let (mut start, mut end) = (part.start, part.end);
        let mut added = end - start;
        while let Some((&other_start, &other_end)) = parts.range(..=end).next_back().filter(|(_, e)| **e >= start) {
            added -= other_end.min(part.end).saturating_sub(other_start.max(part.start));
            (start, end) = (start.min(other_start), end.max(other_end));
            parts.remove(&other_start);
        }
        parts.insert(start, end);
        self.held.0.fetch_add(added, Relaxed);
    }

    /// What there is within a range.
    pub fn within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let parts = self.parts();
        let touching = parts.range(..range.end).rev().take_while(|(_, end)| **end > range.start);
        let mut found: Vec<_> = touching.map(|(&s, &e)| s.max(range.start)..e.min(range.end)).collect();
        found.reverse();
        found
    }

    /// Bytes of that.
    pub fn bytes_within(&self, range: &Range<u64>) -> u64 {
        self.within(range).iter().map(|part| part.end - part.start).sum()
    }

    /// This has been dropped.
    pub fn remove(&self, range: &Range<u64>) {
        let mut parts = self.parts();
        while let Some((&start, &end)) = parts.range(..range.end).next_back().filter(|(_, end)| **end > range.start) {
            parts.remove(&start);
            if start < range.start {
                parts.insert(start, range.start);
            }
            if range.end < end {
                parts.insert(range.end, end);
            }
            self.held.0.fetch_sub(end.min(range.end) - start.max(range.start), Relaxed);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.remove(&(0..u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Barrier;

    /// Of several readers that let go of a part at the same time, one drops it.
    #[test]
    fn what_several_drop_at_once_goes_once() {
        const THREADS: usize = 4;
        const PARTS: u64 = 2000;
        let held = Arc::new(Held::default());
        let kept = Kept::new(Arc::clone(&held));
        for round in 0..20 {
            (0..PARTS).for_each(|part| kept.add(part * 10..part * 10 + 7));
            let together = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        together.wait();
                        (0..PARTS).for_each(|part| kept.remove(&(part * 10 + 1..part * 10 + 6)));
                    });
                }
            });
            assert_eq!(held.bytes(), PARTS * 2, "round {round}");
            kept.remove(&(0..PARTS * 10));
            assert_eq!((held.bytes(), kept.within(&(0..u64::MAX))), (0, Vec::new()), "round {round}");
        }
    }

    proptest! {
        #[test]
        fn is_a_set_of_bytes(changes in prop::collection::vec((any::<bool>(), 0u64..200, 1u64..50), 1..60)) {
            let held = Arc::new(Held::default());
            let kept = Kept::new(Arc::clone(&held));
            let mut bytes = std::collections::BTreeSet::new();
            for (add, start, length) in changes {
                let range = start..start + length;
                if add {
                    bytes.extend(range.clone());
                    kept.add(range);
                } else {
                    bytes.retain(|byte| !range.contains(byte));
                    kept.remove(&range);
                }
                prop_assert_eq!(held.bytes(), bytes.len() as u64);
                let found: Vec<_> = kept.within(&(30..170)).into_iter().flatten().collect();
                let expected: Vec<_> = bytes.iter().copied().filter(|byte| (30..170).contains(byte)).collect();
                prop_assert_eq!(found, expected);
            }
            drop(kept);
            prop_assert_eq!(held.bytes(), 0);
        }
    }
}
