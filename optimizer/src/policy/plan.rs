//! The order in which the extents of a file will be read.
//!
//! Positions count bytes along the plan: position 0 is the first byte read. Sequential reading is the plan with one
//! extent; strided and known orders are plans with many.

use precache_contract::PAGE;
use std::ops::Range;

/// Extents of a file in reading order. No byte is in two extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In reading order, each with the position of its first byte.
    extents: Vec<(u64, Range<u64>)>,
    /// Indices of `extents`, sorted by file offset.
    by_offset: Vec<usize>,
    length: u64,
}

impl Plan {
    /// Empty extents are left out.
    pub fn new(extents: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut length = 0;
        let extents: Vec<_> = extents
            .into_iter()
            .filter(|extent| !extent.is_empty())
            .map(|extent| {
                let position = length;
                length += extent.end - extent.start;
                (position, extent)
            })
            .collect();
        let mut by_offset: Vec<_> = (0..extents.len()).collect();
        by_offset.sort_by_key(|&i| extents[i].1.start);
        Self { extents, by_offset, length }
    }

    /// From `start` to `end` without a gap.
    pub fn sequential(range: Range<u64>) -> Self {
        Self::new([range])
    }

    /// One pass over the parts `wanted` of a mapping that covers `extent` of a file of `size` bytes; over all of it without
    /// any. The reader protects whole pages.
    pub fn of_mapping(extent: Range<u64>, size: u64, wanted: impl Iterator<Item = Range<u64>>) -> Self {
        let mut wanted = wanted.peekable();
        let extent = extent.start.min(size)..extent.end.min(size);
        if wanted.peek().is_none() {
            return Self::sequential(extent);
        }
        let pages = |r: Range<u64>| r.start / PAGE * PAGE..r.end.div_ceil(PAGE).saturating_mul(PAGE);
        let wanted = wanted.map(pages).map(|r| r.start.max(extent.start)..r.end.min(extent.end));
        Self::new(in_order(wanted.collect()))
    }

    /// Whether it is one extent, in which what lies so far apart in the file does so along the plan.
    pub fn is_one_piece(&self) -> bool {
        self.extents.len() == 1
    }

    /// Bytes in all.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The position of a byte of the file; `None` if the plan does not read it.
    pub fn position(&self, offset: u64) -> Option<u64> {
        let after = self.by_offset.partition_point(|&i| self.extents[i].1.start <= offset);
        let (position, extent) = &self.extents[*self.by_offset.get(after.checked_sub(1)?)?];
        extent.contains(&offset).then(|| position + (offset - extent.start))
    }

    /// The file offset of a position; the end of the last extent for positions past the plan.
    pub fn offset(&self, position: u64) -> u64 {
        let after = self.extents.partition_point(|(first, _)| *first <= position);
        match self.extents.get(after.wrapping_sub(1)) {
            Some((first, extent)) => (extent.start + (position - first)).min(extent.end),
            None => 0,
        }
    }

    /// The parts of the file at these positions, in reading order.
    pub fn extents(&self, positions: Range<u64>) -> Vec<Range<u64>> {
        let first = self.extents.partition_point(|(at, extent)| at + (extent.end - extent.start) <= positions.start);
        self.extents[first..]
            .iter()
            .take_while(|(at, _)| *at < positions.end)
            .map(|(at, extent)| {
                let start = extent.start + positions.start.saturating_sub(*at);
                start..extent.end.min(extent.start + (positions.end - at))
            })
            .filter(|part| !part.is_empty())
            .collect()
    }
}

/// Sorted, without overlaps or empty ones.
fn in_order(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut end = 0;
    for range in &mut ranges {
        range.start = range.start.max(end);
        end = end.max(range.end);
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plans() -> impl Strategy<Value = Plan> {
        prop::collection::vec((0u64..50, 1u64..50), 1..20).prop_flat_map(|gaps| {
            let mut at = 0;
            let extents: Vec<_> = gaps
                .into_iter()
                .map(|(gap, length)| {
                    let start = at + gap;
                    at = start + length;
                    start..at
                })
                .collect();
            Just(extents).prop_shuffle().prop_map(Plan::new)
        })
    }

    proptest! {
        #[test]
        fn positions_and_offsets_are_inverse(plan in plans()) {
            for position in 0..plan.length() {
                prop_assert_eq!(plan.position(plan.offset(position)), Some(position));
            }
        }

        #[test]
        fn extents_are_the_bytes_in_order(plan in plans(), a in 0u64..1000, b in 0u64..1000) {
            let (a, b) = (a.min(plan.length()), b.min(plan.length()));
            let bytes: Vec<_> = plan.extents(a..b).into_iter().flatten().collect();
            let expected: Vec<_> = (a..b).map(|position| plan.offset(position)).collect();
            prop_assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn overlapping_ranges_become_one_pass() {
        assert_eq!(in_order(vec![50..100, 0..60, 70..80]), [0..60, 60..100]);
    }

    #[test]
    fn gaps_have_no_position() {
        let plan = Plan::new([10..20, 0..5]);
        assert_eq!(plan.position(7), None);
        assert_eq!(plan.position(20), None);
        assert_eq!(plan.position(0), Some(10));
    }
}
