//! What a walk learns in passing: how long records are, and whether key order is the order of the file.

use serde::Serialize;

/// How far apart two records may lie and still count as neighbours: the read-ahead that most mounts have. The leaf
/// and branch pages that appending interleaves with values stay well below it.
const NEIGHBOURHOOD: u64 = 128 << 10;

/// Statistics of the records visited so far, in constant memory.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    pub sizes: Sizes,
    pub order: Order,
    /// Records whose values have pages of their own.
    pub in_overflow: u64,
}

impl Survey {
    /// Adds the record after those so far in key order; `pages` are those that its reader touches.
    pub fn add(&mut self, length: u64, overflow: bool, pages: (u64, u64)) {
        self.sizes.add(length);
        self.order.add(pages);
        self.in_overflow += u64::from(overflow);
    }
}

/// Lengths of values, in bytes.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    pub count: u64,
    pub total: u64,
    pub min: u64,
    pub max: u64,
    /// Counts by length, in buckets 1/8 of a power of two wide.
    buckets: Vec<u64>,
}

/// The distribution of [`Sizes`], in bytes. Percentiles are upper bounds, at most 1/8 above the true value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distribution {
    pub count: u64,
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

impl Sizes {
    pub fn add(&mut self, length: u64) {
        self.min = if self.count == 0 { length } else { self.min.min(length) };
        self.max = self.max.max(length);
        self.count += 1;
        self.total += length;
        let bucket = bucket(length);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    /// None where there are no records.
    pub fn distribution(&self) -> Option<Distribution> {
        (self.count > 0).then(|| Distribution {
            count: self.count,
            mean: self.total as f64 / self.count as f64,
            min: self.min,
            p50: self.percentile(50),
            p90: self.percentile(90),
            p99: self.percentile(99),
            max: self.max,
        })
    }

    fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// Lengths below 16 have a bucket each; above, each power of two has 8.
fn bucket(length: u64) -> usize {
    if length < 16 {
        return length as usize;
    }
    let power = length.ilog2();
    let eighth = (length >> (power - 3)) & 7;
    16 + (power as usize - 4) * 8 + eighth as usize
}

/// The longest length in a bucket.
fn upper_bound(bucket: usize) -> u64 {
    if bucket < 16 {
        return bucket as u64;
    }
    let (power, eighth) = ((bucket - 16) / 8 + 4, (bucket - 16) as u64 % 8);
    ((8 + eighth) << (power - 3)) + ((1 << (power - 3)) - 1)
}

/// Jumps among the steps in key order from which reading in key order is no longer sequential.
pub const SHUFFLED: f64 = 0.2;

/// Whether records that follow each other in key order follow each other in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    last: Option<(u64, u64)>,
    /// Steps from a record's pages to other pages.
    pub steps: u64,
    /// Steps backwards, or forward over more than the neighbourhood.
    pub jumps: u64,
}

impl Order {
    pub fn add(&mut self, (from, to): (u64, u64)) {
        if let Some((last_from, last_to)) = self.last
            && (from, to) != (last_from, last_to)
        {
            self.steps += 1;
            if from < last_from || from > last_to + NEIGHBOURHOOD {
                self.jumps += 1;
            }
        }
        self.last = Some((from, to));
    }

    /// Jumps among all steps: 0 where the file is in key order, near 1 where it is shuffled.
    pub fn fragmentation(&self) -> f64 {
        if self.steps == 0 { 0.0 } else { self.jumps as f64 / self.steps as f64 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn order_of_the_file() {
        let mut ordered = Order::default();
        for page in 0..100 {
            ordered.add((page * 4096, (page + 1) * 4096));
            ordered.add((page * 4096, (page + 1) * 4096));
        }
        assert_eq!((ordered.steps, ordered.jumps), (99, 0));

        let mut shuffled = Order::default();
        for record in 0..101_u64 {
            let at = record * 37 % 101 * (1 << 20);
            shuffled.add((at, at + 4096));
        }
        assert!(shuffled.fragmentation() > 0.9);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_length(length in 0..u64::MAX / 2) {
            let bound = upper_bound(bucket(length));
            prop_assert!(bound >= length && bound - length <= length / 8);
        }

        #[test]
        fn percentiles_bound_the_truth(mut lengths in prop::collection::vec(0..10_000_000_u64, 1..200)) {
            let mut sizes = Sizes::default();
            lengths.iter().for_each(|&length| sizes.add(length));
            lengths.sort_unstable();
            let found = sizes.distribution().unwrap();
            for (percent, bound) in [(50, found.p50), (90, found.p90), (99, found.p99)] {
                let truth = lengths[(lengths.len() * percent).div_ceil(100) - 1];
                prop_assert!(bound >= truth && bound - truth <= truth / 8);
            }
            prop_assert_eq!((found.min, found.max), (lengths[0], *lengths.last().unwrap()));
        }
    }
}
