//! Where records began in a pass, for the next one: each is where it was, while a mean period is some pages off in the middle of
//! a long file.

use super::Stride;

/// Starts that are remembered, at most.
const MOST: usize = 1024;

/// By place.
#[derive(Clone, Debug, Default)]
pub struct Starts {
    starts: Vec<u64>,
    /// Bytes from one to the next, at least: the longer the file, the more, so that they lie all along it.
    apart: u64,
}

impl Starts {
    /// A record begins here.
    pub fn add(&mut self, at: u64) {
        if self.nearest(at).is_some_and(|near| near.abs_diff(at) < self.apart.max(1)) {
            return;
        }
        let place = self.starts.partition_point(|&start| start < at);
        self.starts.insert(place, at);
        if self.starts.len() > MOST {
            let all = self.starts[MOST] - self.starts[0];
            self.apart = 2 * all / MOST as u64;
            let mut next = 0;
            self.starts.retain(|&start| {
                let is_kept = start >= next;
                if is_kept {
                    next = start + self.apart;
                }
                is_kept
            });
        }
    }

    /// Whether records have been met on both sides of this place.
    pub fn surround(&self, at: u64) -> bool {
        self.starts.first().is_some_and(|&first| first <= at) && self.starts.last().is_some_and(|&last| at <= last)
    }

    fn nearest(&self, at: u64) -> Option<u64> {
        let (before, after) = self.starts.split_at(self.starts.partition_point(|&start| start < at));
        before.last().into_iter().chain(after.first()).copied().min_by_key(|start| start.abs_diff(at))
    }
}

impl Stride {
    /// As it was around here.
    pub fn near(&self, at: u64, starts: &Starts) -> Self {
        Self { anchor: starts.nearest(at).unwrap_or(self.anchor), is_near: starts.surround(at), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_found() {
        let mut starts = Starts::default();
        assert_eq!(starts.nearest(7), None);
        // A backward reader comes to the last one first.
        for at in [400, 300, 200, 300] {
            starts.add(at);
        }
        for (at, nearest) in [(0, 200), (200, 200), (249, 200), (251, 300), (1000, 400)] {
            assert_eq!(starts.nearest(at), Some(nearest), "from {at}");
            assert_eq!(starts.surround(at), (200..=400).contains(&at), "{at}");
        }
    }

    #[test]
    fn of_many_some_are_remembered_all_along() {
        let mut starts = Starts::default();
        let all = 10 * MOST as u64;
        (0..all).for_each(|at| starts.add(1000 * at));
        let starts = starts.starts;
        assert!((MOST / 4..=MOST).contains(&starts.len()) && starts.is_sorted());
        let farthest = starts.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(farthest <= Some(4 * 1000 * all / MOST as u64), "{farthest:?}");
    }
}
