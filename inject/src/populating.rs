//! Whether it pays to map pages ahead of the reader: measured where the reader is, stretch by stretch, half of them with
//! and half without. Pure: no calls, no clock.
//!
//! A stretch lies between two checkpoints, and all of it is in the page cache when the reader comes to the first one. How
//! long it takes to the second contains all that mapping costs and saves.

use precache_contract::segment::PROFIT;

/// Stretches of each kind that a judgement takes, and how many go by until the next one.
const SAMPLES: usize = 7;
const TERM: u32 = 1024;

/// Stretches under way at a time: each stream is in one.
const UNDER_WAY: usize = 8;

/// Shorter ones tell more of the trip than of what was read.
const SHORTEST: u64 = 1 << 20;

#[derive(Clone, Copy)]
struct Stretch {
    /// Where the reader trips next; 0: none is under way.
    end: u64,
    bytes: u64,
    /// The clock when it began, in nanoseconds.
    begun: u64,
    kind: usize,
}

const WITHOUT: usize = 0;
const WITH: usize = 1;

pub struct Trial {
    under_way: [Stretch; UNDER_WAY],
    oldest: usize,
    /// Nanoseconds a MiB, of each kind.
    samples: [[u64; SAMPLES]; 2],
    counts: [usize; 2],
    /// What the last judgement found, in thousandths; 0: there was none.
    gain: u32,
    /// Stretches until the next.
    left: u32,
}

impl Trial {
    /// Nothing is known yet.
    pub const UNTRIED: Self = Self {
        under_way: [Stretch { end: 0, bytes: 0, begun: 0, kind: WITHOUT }; UNDER_WAY],
        oldest: 0,
        samples: [[0; SAMPLES]; 2],
        counts: [0; 2],
        gain: 0,
        left: 0,
    };

    /// Speed with pages mapped ahead by that without, in thousandths; 0: not known.
    pub fn gain(&self) -> u32 {
        self.gain
    }

    /// Whether the next stretch is measured, if there is one: only then the clock counts, and asking for it is a system call.
    /// Where none begins, for not all that comes is in the page cache, each trip asks in vain.
    pub fn is_measuring(&self) -> bool {
        self.left == 0
    }

    /// A reader has come to the checkpoint at `at`.
    pub fn arrive(&mut self, at: u64, now: u64) {
        if let Some(stretch) = self.under_way.iter_mut().find(|stretch| stretch.end == at && at != 0) {
            stretch.end = 0;
            let stretch = *stretch;
            self.measure(stretch, now);
        }
    }

    /// The stretch has been read.
    #[cold]
    fn measure(&mut self, stretch: Stretch, now: u64) {
        let pace = u128::from(now.saturating_sub(stretch.begun)) * (1 << 20) / u128::from(stretch.bytes.max(1));
        let kind = stretch.kind;
        if let (Some(count), Some(samples)) = (self.counts.get_mut(kind), self.samples.get_mut(kind))
            && let Some(sample) = samples.get_mut(*count)
        {
            *sample = (pace as u64).max(1);
            *count += 1;
        }
        if self.counts == [SAMPLES; 2] {
            let [without, with] = self.samples.map(median);
            self.gain = (without.saturating_mul(1000) / with).min(u64::from(u32::MAX)) as u32;
            // What is under way ends when nobody measures.
            (self.counts, self.left, self.under_way) = ([0; 2], TERM, Self::UNTRIED.under_way);
        }
    }

    /// It goes on from there to `end`, over so many bytes that are all in the page cache: whether to map them.
    pub fn depart(&mut self, end: u64, bytes: u64, now: u64) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return self.gain >= PROFIT;
        }
        let kind = if self.counts[WITH] <= self.counts[WITHOUT] { WITH } else { WITHOUT };
        if bytes >= SHORTEST
            && let Some(place) = self.under_way.get_mut(self.oldest)
        {
            *place = Stretch { end, bytes, begun: now, kind };
            self.oldest = (self.oldest + 1) % UNDER_WAY;
        }
        kind == WITH
    }

    /// It goes on where not all is in the page cache, which says nothing: whether to map what is.
    pub fn is_worth_it(&self) -> bool {
        self.gain == 0 || self.gain >= PROFIT
    }
}

fn median(mut samples: [u64; SAMPLES]) -> u64 {
    samples.sort_unstable();
    samples.get(SAMPLES / 2).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STRETCH: u64 = 4 << 20;

    /// A reader whose stretches take so long with and without; returns how often pages were mapped in each thousand.
    fn read(trial: &mut Trial, stretches: u64, nanoseconds: impl Fn(bool, u64) -> u64) -> Vec<u32> {
        let mut now = 1;
        let mut mapped = Vec::new();
        for n in 0..stretches {
            let clock = if trial.is_measuring() { now } else { 0 };
            trial.arrive(n * STRETCH, clock);
            let populate = trial.depart((n + 1) * STRETCH, STRETCH, clock);
            now += nanoseconds(populate, n);
            if n % 1000 == 0 {
                mapped.push(0);
            }
            *mapped.last_mut().unwrap() += u32::from(populate);
        }
        mapped
    }

    proptest! {
        #[test]
        fn the_faster_way_wins(with in 200_000u64..2_000_000, without in 200_000u64..2_000_000) {
            prop_assume!(with.abs_diff(without) * 10 > with);
            let mut trial = Trial::UNTRIED;
            let mapped = read(&mut trial, 2000, |populated, _| if populated { with } else { without });
            prop_assert_eq!(mapped[1] > 900, with < without, "{:?}", mapped);
            prop_assert_eq!(trial.gain() >= PROFIT, with < without);
        }
    }

    #[test]
    fn interruptions_do_not_decide() {
        let interrupted = |populated: bool, n: u64| match (populated, n % 5) {
            (true, 0) => 50_000_000,
            (true, _) => 700_000,
            (false, _) => 1_000_000,
        };
        let mut trial = Trial::UNTRIED;
        read(&mut trial, 100, interrupted);
        assert_eq!(trial.gain(), 1000 * 1_000_000 / 700_000);
    }

    #[test]
    fn a_judgement_is_made_anew() {
        let mut trial = Trial::UNTRIED;
        let mapped = read(&mut trial, 5000, |populated, n| 1_000_000 + 300_000 * u64::from(populated == (n < 2000)));
        assert!(mapped[0] < 100 && mapped[4] > 900, "{mapped:?}");
    }

    #[test]
    fn as_long_as_nothing_can_be_told_pages_are_mapped() {
        let mut trial = Trial::UNTRIED;
        for n in 0..100 {
            trial.arrive(n * 1000, n);
            assert!(trial.depart(7, STRETCH, n) && trial.is_worth_it());
        }
    }
}
