//! A set of bytes of a file, kept as parts.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Default)]
pub struct Ranges {
    /// Start and end of parts that neither overlap nor touch.
    parts: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Ranges {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many bytes of it were not there before.
    pub fn add(&mut self, part: Range<u64>) -> u64 {
        let (mut start, mut end) = (part.start, part.end);
        let mut added = end - start;
        while let Some((&other_start, &other_end)) = self.parts.range(..=end).next_back().filter(|(_, e)| **e >= start)
        {
            added -= other_end.min(part.end).saturating_sub(other_start.max(part.start));
            (start, end) = (start.min(other_start), end.max(other_end));
            self.parts.remove(&other_start);
        }
        self.parts.insert(start, end);
        self.bytes += added;
        added
    }

    /// Returns how many bytes of it were there until now.
    pub fn remove(&mut self, range: &Range<u64>) -> u64 {
        let mut removed = 0;
        while let Some((&start, &end)) =
            self.parts.range(..range.end).next_back().filter(|(_, end)| **end > range.start)
        {
            self.parts.remove(&start);
            if start < range.start {
                self.parts.insert(start, range.start);
            }
            if range.end < end {
                self.parts.insert(range.end, end);
            }
            removed += end.min(range.end) - start.max(range.start);
        }
        self.bytes -= removed;
        removed
    }

    /// What there is within a range.
    pub fn within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let touching = self.parts.range(..range.end).rev().take_while(|(_, end)| **end > range.start);
        let mut found: Vec<_> = touching.map(|(&s, &e)| s.max(range.start)..e.min(range.end)).collect();
        found.reverse();
        found
    }

    /// The first part.
    pub fn first(&self) -> Option<Range<u64>> {
        self.parts.first_key_value().map(|(&start, &end)| start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_set_of_bytes(changes in prop::collection::vec((any::<bool>(), 0u64..200, 1u64..50), 1..60)) {
            let mut ranges = Ranges::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (add, start, length) in changes {
                let range = start..start + length;
                let before = bytes.len();
                if add {
                    bytes.extend(range.clone());
                    prop_assert_eq!(ranges.add(range), (bytes.len() - before) as u64);
                } else {
                    bytes.retain(|byte| !range.contains(byte));
                    prop_assert_eq!(ranges.remove(&range), (before - bytes.len()) as u64);
                }
                prop_assert_eq!(ranges.bytes(), bytes.len() as u64);
                prop_assert_eq!(ranges.first().map(|part| part.start), bytes.first().copied());
                let found: Vec<_> = ranges.within(&(30..170)).into_iter().flatten().collect();
                let expected: Vec<_> = bytes.iter().copied().filter(|byte| (30..170).contains(byte)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
