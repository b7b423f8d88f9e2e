//! Whether a chunk need be looked at as a whole. Of a file that is cached, every page would be: that takes a processor as long as
//! a twentieth of what a fast reader takes, whom it slows down.

use std::sync::atomic::{AtomicU64, Ordering::*};

/// So many bytes found cached one after the other are trusted to go on.
const ENOUGH: u64 = 64 << 20;

/// Of so many chunks one is looked at as a whole all the same: what was evicted in small pieces is found, too.
const PERIOD: u64 = 32;

#[derive(Default)]
pub struct Trust {
    /// Bytes found cached since some were not.
    cached: AtomicU64,
    chunks: AtomicU64,
}

impl Trust {
    /// The page of the next chunk, of so many, that stands for it; none if all of it is to be looked at.
    pub fn sample(&self, pages: u64) -> Option<u64> {
        if self.cached.load(Relaxed) < ENOUGH {
            return None;
        }
        let number = self.chunks.fetch_add(1, Relaxed);
        // Not the same one of each: what others have read may lie at equal distances.
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).checked_rem(pages).filter(|_| !number.is_multiple_of(PERIOD))
    }

    /// So many bytes were looked at, and all of them were cached, or not.
    pub fn note(&self, bytes: u64, all_cached: bool) {
        if all_cached {
            self.cached.fetch_add(bytes, Relaxed);
        } else {
            self.cached.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_being_cached_is_sampled() {
        let trust = Trust::default();
        trust.note(ENOUGH - 1, true);
        assert_eq!(trust.sample(256), None);
        trust.note(1, true);
        let samples: Vec<_> = (0..10 * PERIOD).map(|_| trust.sample(256)).collect();
        assert_eq!(samples.iter().filter(|sample| sample.is_none()).count() as u64, 10);
        let mut pages: Vec<_> = samples.into_iter().flatten().collect();
        pages.sort_unstable();
        pages.dedup();
        assert!(pages.len() > 50 && pages.iter().all(|page| *page < 256), "{pages:?}");
    }

    #[test]
    fn what_is_missing_ends_it() {
        let trust = Trust::default();
        trust.note(2 * ENOUGH, true);
        trust.note(1, false);
        assert!((0..2 * PERIOD).all(|_| trust.sample(256).is_none()));
        trust.note(ENOUGH, true);
        assert!((0..2 * PERIOD).any(|_| trust.sample(256).is_some()));
    }
}
