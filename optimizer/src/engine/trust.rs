//! Which chunks need be looked at. Of a file that is cached, every page would be: that takes a processor as long as a twentieth
//! of what a fast reader takes, whom it slows down.

use super::LARGEST_CHUNK;
use precache_contract::PAGE;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// So many bytes found cached one after the other are trusted to go on.
const ENOUGH: u64 = 64 << 20;

/// So many after something was missing amid what is trusted: here and there the kernel evicts a page of what is idle.
const AGAIN: u64 = 8 << 20;

/// Of so many chunks one is looked at as a whole all the same: what was evicted in small pieces is found, too.
const PERIOD: u64 = 32;

/// How a chunk is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// All of its pages.
    Whole,
    /// This one stands for it, and for some others.
    Page(u64),
    /// A page of another stands for it.
    None,
}

#[derive(Default)]
pub struct Trust {
    /// Bytes found cached since some were not.
    cached: AtomicU64,
    chunks: AtomicU64,
}

impl Trust {
    /// How the next chunk is looked at, of so many bytes.
    pub fn look(&self, bytes: u64) -> Look {
        let pages = bytes / PAGE;
        if self.cached.load(Relaxed) < ENOUGH || pages == 0 {
            return Look::Whole;
        }
        // Multiples of the golden ratio, as parts of one: neither readers that take turns nor what lies at equal distances is
        // met more than others.
        let number = self.chunks.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let scale = |part: u64, to: u64| ((u128::from(part) * u128::from(to)) >> 64) as u64;
        // A page stands for no more than the largest chunk.
        let each = (LARGEST_CHUNK / bytes).clamp(1, PERIOD);
        match scale(number, PERIOD) {
            0 => Look::Whole,
            of_period if of_period < PERIOD.div_ceil(each) => Look::Page(scale(number.wrapping_mul(PERIOD), pages)),
            _ => Look::None,
        }
    }

    /// So many bytes were looked at, and all of them were cached, or not.
    pub fn note(&self, bytes: u64, all_cached: bool) {
        if all_cached {
            self.cached.fetch_add(bytes, Relaxed);
        } else if self.cached.load(Relaxed) >= ENOUGH {
            self.cached.store(ENOUGH - AGAIN, Relaxed);
        } else {
            self.cached.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 128 << 10;

    fn trusting() -> Trust {
        let trust = Trust::default();
        trust.note(ENOUGH, true);
        trust
    }

    fn is_trusted(trust: &Trust) -> bool {
        (0..2 * PERIOD).any(|_| trust.look(CHUNK) != Look::Whole)
    }

    #[test]
    fn what_goes_on_being_cached_is_sampled() {
        let trust = Trust::default();
        trust.note(ENOUGH - 1, true);
        assert!(!is_trusted(&trust));
        trust.note(1, true);
        // Of readers that take turns, each one's are.
        for readers in [1, 2, 7, 8, 32] {
            let looks: Vec<_> = (0..320 * readers).map(|_| trust.look(CHUNK)).collect();
            for reader in 0..readers {
                let its: Vec<_> = looks.iter().skip(reader).step_by(readers).collect();
                let whole = its.iter().filter(|look| matches!(look, Look::Whole)).count();
                let pages = its.iter().filter(|look| matches!(look, Look::Page(_))).count();
                assert!((5..=15).contains(&whole), "{readers} readers: {whole} of 320 as a whole");
                assert!((20..=40).contains(&pages), "{readers} readers: {pages} of 320 by a page");
            }
        }
    }

    #[test]
    fn pages_of_all_places_stand_for_large_chunks() {
        let trust = trusting();
        let mut pages: Vec<_> = (0..1000)
            .filter_map(|_| match trust.look(LARGEST_CHUNK) {
                Look::Page(page) => Some(page),
                look => {
                    assert_eq!(look, Look::Whole);
                    None
                }
            })
            .collect();
        assert!(pages.len() > 900);
        pages.sort_unstable();
        pages.dedup();
        assert!(pages.len() > 200 && pages.iter().all(|page| *page < 256), "{pages:?}");
    }

    #[test]
    fn what_is_missing_ends_it() {
        let trust = trusting();
        trust.note(1, false);
        assert!(!is_trusted(&trust));
        // Here and there a page of what was trusted is missing.
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
