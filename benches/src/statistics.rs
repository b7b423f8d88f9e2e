//! Medians, spreads, and how sure one can be of a ratio.

use std::fmt;

use serde::Serialize;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 10_000;
/// With fewer values a bootstrap claims to know more than it does; their range stands in.
const FEW: usize = 6;
/// A lone value has no range: two runs of one command differ by up to this share.
const LONE: f64 = 0.1;

/// Some values of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub count: usize,
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// None without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        let median = median(&mut values)?;
        Some(Self { count: values.len(), median, least: *values.first()?, most: *values.last()? })
    }
}

/// The median of some values, with its confidence interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    pub count: usize,
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Median {
    /// None without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        let middle = median(&mut values)?;
        let count = values.len();
        if count == 1 {
            let doubt = LONE * middle.abs();
            return Some(Self { count, median: middle, low: middle - doubt, high: middle + doubt });
        }
        if count < FEW {
            return Some(Self { count, median: middle, low: *values.first()?, high: *values.last()? });
        }
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| median(&mut (0..count).map(|_| values[dice.below(count)]).collect::<Vec<_>>()))
            .collect();
        medians.sort_by(f64::total_cmp);
        let quantile = |share: f64| medians[(share * (RESAMPLES - 1) as f64).round() as usize];
        Some(Self { count, median: middle, low: quantile(0.025), high: quantile(0.975) })
    }

    /// The same of values that are this less: a median of another kind, known as well.
    pub fn less(self, other: Self) -> Self {
        let (median, low, high) = (self.median - other.median, self.low - other.high, self.high - other.low);
        Self { count: self.count.min(other.count), median, low, high }
    }

    pub fn interval(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}

/// The ratio of paired values: the median of the pairs' ratios, with its confidence interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    pub pairs: usize,
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// Of the values to those measured beside them; None without pairs.
    pub fn of(values: &[f64], to: &[f64]) -> Option<Self> {
        let Median { count, median, low, high } = Median::of(values.iter().zip(to).map(|(value, to)| value / to))?;
        Some(Self { pairs: count, median, low, high })
    }

    pub fn interval(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3}, {} pairs)", self.median, self.low, self.high, self.pairs)
    }
}

/// Sorts the values, and takes the middle.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    match values.len() % 2 {
        1 => Some(upper),
        _ => Some((values[values.len() / 2 - 1] + upper) / 2.0),
    }
}

/// The same throws in every run (xorshift64*), so that the same measurements get the same verdict.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(drawn) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).unwrap().median, 2.0);
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((spread.count, spread.median, spread.least, spread.most), (4, 2.5, 1.0, 4.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn few_pairs_claim_their_whole_range() {
        let ratio = Ratio::of(&[2.0, 3.0, 4.0], &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (3.0, 2.0, 4.0));
    }

    #[test]
    fn a_lone_pair_is_not_sure_of_itself() {
        let ratio = Ratio::of(&[2.0], &[1.0]).unwrap();
        assert!(ratio.low < 1.9 && ratio.high > 2.1, "{ratio:?}");
    }

    #[test]
    fn many_pairs_are_surer_than_their_range() {
        let to = [1.0; 40];
        let values: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i % 5) * 0.01).collect();
        let ratio = Ratio::of(&values, &to).unwrap();
        assert_eq!(ratio.median, 1.02);
        assert!(ratio.low > 1.0 && ratio.high < 1.04, "{ratio:?}");
    }
}
