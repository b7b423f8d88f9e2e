//! What sessions ask of a pool, and what that makes together.

use crate::options::DEFAULT_MAX_INFLIGHT;
use std::collections::{HashMap, HashSet};

/// Requests that a reader may have in flight itself: the page that it waits for, with what lies around it, and what the kernel
/// reads ahead behind that (`do_async_mmap_readahead` in mm/filemap.c).
const READERS_OWN: usize = 2;

/// What one session asks of the pool, once for each mapping that it has on the mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wish {
    pub session: u64,
    /// Requests in flight; measured what is best, if none are asked for.
    pub jobs: Option<usize>,
    /// Never more than these on the mount, for all sessions together.
    pub max_inflight: Option<usize>,
}

/// All wishes, and how many mappings have each: processes that fork have thousands.
#[derive(Default)]
pub struct Wishes(HashMap<Wish, usize>);

/// What is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Requests in flight that are asked for by those who ask for a number.
    pub asked: usize,
    /// Whether anyone leaves the number to be measured.
    pub is_measured: bool,
    /// Never more than these.
    pub cap: usize,
}

impl Wishes {
    /// Adds a wish; `true`: it is the first of its kind.
    pub fn add(&mut self, wish: Wish) -> bool {
        let count = self.0.entry(wish).or_default();
        *count += 1;
        *count == 1
    }

    /// Takes one back; `true`: it was the last of its kind.
    pub fn remove(&mut self, wish: &Wish) -> bool {
        let Some(count) = self.0.get_mut(wish) else { return false };
        *count -= 1;
        let was_last = *count == 0;
        if was_last {
            self.0.remove(wish);
        }
        was_last
    }

    /// Of several, the largest number of requests and the least bound hold; none without wishes.
    pub fn terms(&self) -> Option<Terms> {
        let wishes = self.0.keys();
        let asked = wishes.clone().filter_map(|wish| wish.jobs).max().unwrap_or(0);
        // A bound that was given holds for all; the one that was not gives way to the requests asked for.
        // It holds for the mount: each session leaves some of them, up to half, for what its readers ask for themselves.
        let sessions: HashSet<u64> = wishes.clone().map(|wish| wish.session).collect();
        let least = wishes.clone().filter_map(|wish| wish.max_inflight).min();
        let bound = least.map(|most| most - (READERS_OWN * sessions.len()).min(most / 2));
        let cap = bound.unwrap_or(DEFAULT_MAX_INFLIGHT.max(asked)).max(1);
        let is_measured = wishes.clone().any(|wish| wish.jobs.is_none());
        (wishes.len() > 0).then_some(Terms { asked, is_measured, cap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Wish = Wish { session: 1, jobs: None, max_inflight: None };

    /// What is asked for, and the bound.
    fn in_force(wishes: &Wishes) -> (usize, usize) {
        wishes.terms().map(|terms| (terms.asked, terms.cap)).unwrap()
    }

    /// What a session asked for goes with it, whatever others do.
    #[test]
    fn wishes_count_as_long_as_their_sessions() {
        let mut wishes = Wishes::default();
        assert_eq!(wishes.terms(), None);
        wishes.add(PLAIN);
        assert_eq!(in_force(&wishes), (0, DEFAULT_MAX_INFLIGHT));
        let modest = Wish { session: 2, jobs: Some(2), max_inflight: Some(3) };
        assert!(wishes.add(modest) && !wishes.add(modest));
        assert_eq!(in_force(&wishes), (2, 2), "one is left for the readers");
        assert!(!wishes.remove(&modest));
        assert_eq!(in_force(&wishes), (2, 2));
        assert!(wishes.remove(&modest));
        assert_eq!(in_force(&wishes), (0, DEFAULT_MAX_INFLIGHT));
    }

    /// A bound that nobody gave is none for who asked for more.
    #[test]
    fn the_default_gives_way_to_what_is_asked_for() {
        let mut wishes = Wishes::default();
        wishes.add(PLAIN);
        let many = Wish { session: 2, jobs: Some(200), max_inflight: None };
        wishes.add(many);
        assert_eq!(in_force(&wishes), (200, 200));
        wishes.add(Wish { session: 3, jobs: None, max_inflight: Some(100) });
        assert_eq!(in_force(&wishes), (200, 94));
        wishes.remove(&many);
        assert_eq!(in_force(&wishes), (0, 96));
    }

    /// However many files it maps, a session's readers are one reader more that asks for something itself.
    #[test]
    fn a_session_counts_once() {
        let mut wishes = Wishes::default();
        for _ in 0..8 {
            wishes.add(Wish { max_inflight: Some(16), ..PLAIN });
        }
        assert_eq!(in_force(&wishes), (0, 14));
        wishes.add(Wish { session: 2, max_inflight: Some(16), ..PLAIN });
        assert_eq!(in_force(&wishes), (0, 12));
    }
}
