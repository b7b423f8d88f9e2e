//! Later passes: records are where they were, and where the reader has been before it trips only where it is told to stop, at
//! pages in the middle of records.

use super::{Place, Stride};
use precache_contract::PAGE;

impl Stride {
    /// Whether a record, so many after the anchor, may begin so many bytes from where it was expected, and is not rather met within.
    pub fn may_begin(&self, records: u64, deviation: i64) -> bool {
        let (earlier, later) = self.spread(records as i64);
        (-((earlier + PAGE) as i64)..=(later + PAGE) as i64).contains(&deviation)
    }

    /// The page in the middle of a record: to there its reader comes, wherever in its room the record begins.
    fn middle(&self, record: i64) -> u64 {
        (self.start(record) + (self.low / 2) as i64).max(0) as u64 / PAGE * PAGE
    }

    /// How many records ahead of the anchor the one is whose middle is here.
    fn ahead(&self, at: u64) -> f64 {
        let ahead = (at as f64 - (self.anchor + self.low / 2) as f64) / self.period;
        if self.is_backward { -ahead } else { ahead }
    }

    /// The first page from `at` on, in reading order, to which the reader surely comes.
    pub fn stop(&self, at: u64) -> u64 {
        self.middle(self.ahead(at).ceil() as i64)
    }

    /// Whether the reader may have been told to trip here: where records are told to be now may be some pages off.
    pub fn is_stop(&self, at: u64) -> bool {
        const OFF: u64 = 4 * PAGE;
        // Not at a record's start.
        let most = OFF.min(self.low / 4);
        let at = at as i64 - (self.low / 2) as i64;
        let off = (at - self.anchor as i64) as f64 / self.period;
        ((off - off.round()).abs() * self.period) as u64 <= most
    }

    /// Whether a record begins here to the page, or the reader may have been told to trip here: seldom so by chance.
    pub fn is_exact(&self, at: u64) -> bool {
        let begins = matches!(self.place(at), Place::Start { deviation, .. } if deviation.unsigned_abs() <= PAGE);
        begins || self.is_stop(at)
    }

    /// Bytes from the middle of what is left out between two records, in reading order, to the middle of the second one: how long
    /// the first one is may vary.
    pub fn reach(&self) -> u64 {
        self.low / 2 + self.period().saturating_sub(self.high) / 2
    }

    /// Bytes from one record to another that lies about so far from it, and at least to the next.
    pub fn apart(&self, distance: u64) -> u64 {
        ((distance as f64 / self.period).floor().max(1.0) * self.period) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 196 * PAGE;

    fn one_of_four(is_backward: bool) -> Stride {
        let jump = if is_backward { -(PERIOD as i64) } else { PERIOD as i64 };
        Stride::new(1000 * PAGE, jump, 48 * PAGE..49 * PAGE)
    }

    #[test]
    fn a_stop_is_in_the_middle_of_the_next_record() {
        let middle = |record: u64| (1000 + 24) * PAGE + record * PERIOD;
        let (forward, backward) = (one_of_four(false), one_of_four(true));
        for (at, ahead, behind) in [(middle(0), 0, 0), (middle(0) + PAGE, 1, 0), (middle(1) - PAGE, 1, 0)] {
            assert_eq!(forward.stop(at), middle(ahead));
            assert_eq!(backward.stop(at), middle(behind));
        }
        for off in 0..=4 {
            assert!(forward.is_stop(middle(3) + off * PAGE) && forward.is_stop(middle(3) - off * PAGE));
        }
        assert!(!forward.is_stop(middle(3) + 5 * PAGE) && !forward.is_stop(1000 * PAGE));
    }

    #[test]
    fn stops_are_whole_periods_apart() {
        let stride = one_of_four(false);
        let apart = |distance| stride.apart(distance);
        assert_eq!(
            [apart(0), apart(PERIOD), apart(2 * PERIOD - 1), apart(7 * PERIOD)],
            [1, 1, 1, 7].map(|n| n * PERIOD)
        );
    }

    #[test]
    fn only_what_is_where_it_is_expected_may_be_a_start() {
        let mut stride = one_of_four(false);
        (1..100).for_each(|record| stride.meet(1000 * PAGE + record * PERIOD, 1, 0));
        for (pages, may_begin) in [(0, true), (1, true), (-1, true), (8, false), (-8, false)] {
            assert_eq!(stride.may_begin(10, pages * PAGE as i64), may_begin, "{pages} pages off");
        }
    }
}
