//! Two ways to run, beside each other, so that what else happens on the machine meets both.

use std::time::{Duration, Instant};

use crate::measure::Measurement;

/// A run is disturbed if the host took more than this share of the processors' time from it.
const DISTURBED: f64 = 0.02;

#[derive(Debug, thiserror::Error)]
#[error("the output differs from that of the run beside it: `{0}` instead of `{1}`")]
pub struct WrongOutput(String, String);

impl WrongOutput {
    pub fn new(ours: &str, theirs: &str) -> Self {
        Self(ours.trim().into(), theirs.trim().into())
    }
}

/// So many are run however long they take: the range of two says little.
const LEAST: u32 = 3;

/// How many pairs are run.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub most: u32,
    /// But for the first few no pair is begun later than that; what takes so long is seen without many.
    pub patience: Duration,
}

impl Count {
    pub fn exactly(pairs: u32) -> Self {
        Self { most: pairs, patience: Duration::MAX }
    }

    /// Numbers the pairs from 0.
    pub fn pairs(self) -> impl Iterator<Item = u32> {
        let start = Instant::now();
        (0..self.most).take_while(move |pair| *pair < LEAST || start.elapsed() < self.patience)
    }
}

/// Runs made beside each other: the first of the one with the first of the other, and so on.
#[derive(Debug, Default)]
pub struct Pairs {
    pub ours: Vec<Measurement>,
    pub theirs: Vec<Measurement>,
}

impl Pairs {
    /// Who goes first changes from pair to pair, so that neither profits from what the other left behind.
    pub fn alternate(
        count: Count,
        mut ours: impl FnMut() -> anyhow::Result<Measurement>,
        mut theirs: impl FnMut() -> anyhow::Result<Measurement>,
    ) -> anyhow::Result<Self> {
        Self::run(count, |pair| {
            if pair.is_multiple_of(2) {
                let other = theirs()?;
                Ok((ours()?, other))
            } else {
                Ok((ours()?, theirs()?))
            }
        })
    }

    /// Runs ours cold, which leaves the data warm for theirs.
    pub fn cold_then_warm(
        count: Count,
        mut cold: impl FnMut() -> anyhow::Result<Measurement>,
        mut warm: impl FnMut() -> anyhow::Result<Measurement>,
    ) -> anyhow::Result<Self> {
        Self::run(count, |_| Ok((cold()?, warm()?)))
    }

    /// Another pair takes the place of a disturbed one, up to half as many again.
    fn run(
        count: Count,
        mut pair: impl FnMut(u32) -> anyhow::Result<(Measurement, Measurement)>,
    ) -> anyhow::Result<Self> {
        let mut pairs = Self::default();
        for number in (Count { most: count.most + count.most / 2, ..count }).pairs() {
            let (ours, theirs) = pair(number)?;
            pairs.add(ours, theirs)?;
            if pairs.stolen().filter(|share| *share <= DISTURBED).count() == count.most as usize {
                break;
            }
        }
        pairs.settle(count.most as usize);
        Ok(pairs)
    }

    /// What the host took from each pair: from that of its runs from which it took more.
    fn stolen(&self) -> impl Iterator<Item = f64> {
        self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours.stolen.max(theirs.stolen))
    }

    /// The largest share of the time that the host took from one of the pairs.
    pub fn most_stolen(&self) -> f64 {
        self.stolen().fold(0.0, f64::max)
    }

    /// Keeps so many pairs, those that were disturbed least.
    fn settle(&mut self, most: usize) {
        let mut kept: Vec<(usize, f64)> = self.stolen().enumerate().collect();
        kept.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        kept.truncate(most);
        for runs in [&mut self.ours, &mut self.theirs] {
            let mut number = 0..;
            runs.retain(|_| number.next().is_some_and(|number| kept.iter().any(|(kept, _)| *kept == number)));
        }
    }

    fn add(&mut self, ours: Measurement, theirs: Measurement) -> Result<(), WrongOutput> {
        if ours.output != theirs.output {
            return Err(WrongOutput::new(&ours.output, &theirs.output));
        }
        self.ours.push(ours);
        self.theirs.push(theirs);
        Ok(())
    }

    pub fn our_times(&self) -> Vec<f64> {
        times(&self.ours)
    }

    pub fn their_times(&self) -> Vec<f64> {
        times(&self.theirs)
    }
}

pub fn times(runs: &[Measurement]) -> Vec<f64> {
    runs.iter().map(|run| run.seconds).collect()
}

/// The least and the most bytes that the storage delivered in one of the runs; none where nobody counts.
pub fn fetched(runs: &[Measurement]) -> Option<(u64, u64)> {
    let bytes = || runs.iter().filter_map(|run| Some(run.fetched.as_ref()?.bytes));
    bytes().min().zip(bytes().max())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn run(output: &str) -> anyhow::Result<Measurement> {
        stolen(output, 0.0)
    }

    fn stolen(output: &str, stolen: f64) -> anyhow::Result<Measurement> {
        Ok(Measurement { seconds: 1.0, output: output.to_owned(), fetched: None, report: None, stolen })
    }

    #[test]
    fn who_goes_first_changes() {
        let order = RefCell::new(String::new());
        let go = |name| {
            order.borrow_mut().push(name);
            run("")
        };
        let pairs = Pairs::alternate(Count::exactly(3), || go('o'), || go('t')).unwrap();
        assert_eq!(order.into_inner(), "tootto");
        assert_eq!((pairs.ours.len(), pairs.theirs.len()), (3, 3));
    }

    #[test]
    fn impatience_leaves_the_first_few() {
        for (most, left) in [(5, 3), (2, 2)] {
            let count = Count { most, patience: Duration::ZERO };
            assert_eq!(Pairs::cold_then_warm(count, || run(""), || run("")).unwrap().ours.len(), left);
        }
    }

    /// Runs three pairs, more if so much was stolen from some, and says what was stolen from those kept.
    fn kept_of(shares: &[f64]) -> Vec<f64> {
        let mut shares = shares.iter();
        let pairs = Pairs::alternate(Count::exactly(3), || run(""), || stolen("", *shares.next().unwrap())).unwrap();
        assert_eq!(shares.next(), None, "not all were run");
        assert_eq!(pairs.ours.len(), pairs.theirs.len());
        assert_eq!(pairs.most_stolen(), pairs.stolen().max_by(f64::total_cmp).unwrap());
        pairs.stolen().collect()
    }

    #[test]
    fn disturbed_pairs_are_repeated() {
        assert_eq!(kept_of(&[0.0, 0.3, 0.0, 0.0]), [0.0; 3]);
    }

    #[test]
    fn the_least_disturbed_are_kept() {
        assert_eq!(kept_of(&[0.3, 0.0, 0.4, 0.1]), [0.3, 0.0, 0.1]);
    }

    #[test]
    fn another_output_is_an_error() {
        let pairs = Pairs::alternate(Count::exactly(1), || run("checksum=1"), || run("checksum=2"));
        assert!(pairs.unwrap_err().downcast_ref::<WrongOutput>().is_some());
    }
}
