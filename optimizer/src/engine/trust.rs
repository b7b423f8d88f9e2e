//! Which chunks need be looked at. Of a file that is cached, every page would be: that takes a processor as long as a twentieth
//! of what a fast reader takes, whom it slows down.

use precache_contract::PAGE;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// So many bytes found cached one after the other are trusted to go on.
const ENOUGH: u64 = 64 << 20;

/// So many after something was missing amid what is trusted: here and there the kernel evicts a page of what is idle.
const AGAIN: u64 = 8 << 20;

/// Of so many chunks one is looked at as a whole all the same: what was evicted in small pieces is found, too.
pub const PERIOD: u64 = 32;

/// The same where nobody tells, and to look is to read: that takes ten times as long.
pub const LONG_PERIOD: u64 = 256;

pub struct Trust {
    period: u64,
    /// Bytes found cached since some were not.
    cached: AtomicU64,
    asked: AtomicU64,
}

impl Trust {
    /// Of `period` chunks one is looked at as a whole.
    pub fn new(period: u64) -> Self {
        Self { period, cached: AtomicU64::new(0), asked: AtomicU64::new(0) }
    }

    /// Where the page lies that stands for the stretch that begins with this chunk; none if the chunk is to be looked at as a
    /// whole.
    pub fn sample(&self, chunk: &Range<u64>, stretch: &Range<u64>) -> Option<u64> {
        if self.cached.load(Relaxed) < ENOUGH {
            return None;
        }
        // Multiples of the golden ratio, as parts of one: neither readers that take turns nor what lies at equal distances is
        // met more than others.
        let part = self.asked.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let of = |whole: u64, part: u64| ((u128::from(part) * u128::from(whole)) >> 64) as u64;
        let length = |range: &Range<u64>| (range.end - range.start).max(1);
        // As many bytes in wholes as if each chunk were asked for.
        let period = (self.period * length(chunk) / length(stretch)).max(2);
        (of(period, part) > 0).then(|| stretch.start + of(length(stretch), part.wrapping_mul(period)) / PAGE * PAGE)
    }

    /// The page that stood for a stretch was missing.
    pub fn disappoint(&self) {
        let shaken = |cached| (cached >= ENOUGH).then_some(ENOUGH - AGAIN);
        // What stood for others may have been at the same time.
        let _ = self.cached.fetch_update(Relaxed, Relaxed, shaken);
    }

    /// So many bytes were looked at, and all of them were cached, or not.
    pub fn note(&self, bytes: u64, all_cached: bool) {
        if all_cached {
            self.cached.fetch_add(bytes, Relaxed);
        } else if self.cached.load(Relaxed) >= ENOUGH {
            self.disappoint();
        } else {
            self.cached.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 128 << 10;
    const STRETCH: u64 = 1 << 20;

    fn trusting() -> Trust {
        let trust = Trust::new(PERIOD);
        trust.note(ENOUGH, true);
        trust
    }

    fn sample(trust: &Trust) -> Option<u64> {
        trust.sample(&(0..CHUNK), &(0..STRETCH))
    }

    fn is_trusted(trust: &Trust) -> bool {
        (0..2 * PERIOD).any(|_| sample(trust).is_some())
    }

    #[test]
    fn what_goes_on_being_cached_is_sampled() {
        let trust = Trust::new(PERIOD);
        trust.note(ENOUGH - 1, true);
        assert!(!is_trusted(&trust));
        trust.note(1, true);
        // Of readers that take turns, each one's is.
        for readers in [1, 2, 7, 8, 32] {
            let samples: Vec<_> = (0..400 * readers).map(|_| sample(&trust)).collect();
            for reader in 0..readers {
                let whole = samples.iter().skip(reader).step_by(readers).filter(|sample| sample.is_none()).count();
                assert!((80..=120).contains(&whole), "{readers} readers: {whole} of 400 as a whole");
            }
        }
    }

    #[test]
    fn any_page_may_stand_for_a_stretch() {
        let trust = trusting();
        let mut pages: Vec<_> = (0..4000).filter_map(|_| sample(&trust)).map(|offset| offset / PAGE).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages, Vec::from_iter(0..STRETCH / PAGE));
    }

    #[test]
    fn what_is_missing_ends_it() {
        let trust = trusting();
        trust.note(1, false);
        assert!(!is_trusted(&trust));
        // Here and there a page of what was trusted is missing.
        trust.note(AGAIN, true);
        assert!(is_trusted(&trust));
        trust.disappoint();
        trust.disappoint();
        assert!(!is_trusted(&trust));
        trust.note(AGAIN, true);
        assert!(is_trusted(&trust));
        trust.note(1, false);
        trust.note(1, false);
        trust.note(ENOUGH - 1, true);
        assert!(!is_trusted(&trust));
        trust.note(1, true);
        assert!(is_trusted(&trust));
    }
}
