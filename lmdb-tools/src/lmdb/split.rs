//! Equal shares of a sequence of records: arithmetic only.

/// Which of `parts` equal shares of `total` bytes a record belongs to that starts after `before` bytes of others and has
/// `length` bytes: the one in which its middle lies. Shares differ from each other by at most one record's length, and
/// never go back.
pub fn part_of(before: u64, length: u64, total: u64, parts: u32) -> u32 {
    if total == 0 {
        return 0;
    }
    // In half bytes, so that the middle of a record of odd length is exact.
    let middle = 2 * u128::from(before) + u128::from(length);
    let part = middle * u128::from(parts) / (2 * u128::from(total));
    part.min(u128::from(parts) - 1) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_are_contiguous_and_equal(
            lengths in prop::collection::vec(0..5_000_u64, 1..300), parts in 1..40_u32,
        ) {
            let total: u64 = lengths.iter().sum();
            let longest = *lengths.iter().max().unwrap();
            let mut shares = vec![0; parts as usize];
            let (mut before, mut last) = (0, 0);
            for &length in &lengths {
                let part = part_of(before, length, total, parts);
                prop_assert!(part >= last && part < parts);
                shares[part as usize] += length;
                (before, last) = (before + length, part);
            }
            let fair = total as f64 / f64::from(parts);
            for share in shares {
                prop_assert!((share as f64 - fair).abs() <= longest as f64 + 1.0);
            }
        }

        #[test]
        fn no_total_overflows(before in 0..=u64::MAX / 2, length in 0..=u64::MAX / 2, parts in 1..=u32::MAX) {
            prop_assert!(part_of(before, length, u64::MAX, parts) < parts);
        }
    }
}
