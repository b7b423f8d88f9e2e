//! Readers that leave something out: a record is read, a gap is not, and so on at regular distances.
//!
//! ```text
//!   |== record ==|....... gap .......|== record ==|....... gap .......|== record ==|
//!   anchor       low..high           anchor + period                 anchor + 2 periods
//! ```
//!
//! Records begin where they did, a period further; where they begin a little off that, as they do when pages of another
//! kind lie between them now and then, the next ones are sought from there, and the more room is left around them the
//! more they wander.

mod starts;
mod stops;

pub use self::starts::Starts;

use precache_contract::PAGE;
use std::collections::VecDeque;
use std::ops::Range;

/// Records after which the mean period is better than the first.
const ENOUGH: u64 = 32;

/// Records that make a stride: before the first one that is met then.
const KNOWN_BY: u64 = 2;

/// Records by which it is told how much they wander.
const MEMORY: u64 = 2 * ENOUGH;

/// Room, in pages, at either side of where the mean period tells a record: less, and a record in ten lacks a page, which
/// costs its reader a round trip and what the kernel reads around it.
const ROOM: f64 = 0.75;

/// More records in one part are not told apart.
const MOST: u64 = 1 << 20;

/// Where a page lies as the stride tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A record begins here, so many records after the anchor and so many bytes from where it was expected.
    Start { records: u64, deviation: i64 },
    /// Within a record.
    Inside,
    /// Nothing should be read here.
    Gap,
}

#[derive(Clone, Copy, Debug)]
pub struct Stride {
    /// Where the last record met began, or one met in a pass before.
    anchor: u64,
    /// Bytes from the start of one record to the next read.
    period: f64,
    pub is_backward: bool,
    /// A record is at least so long ...
    low: u64,
    /// ... and at most so long.
    high: u64,
    /// The variance of where records begin, in pages squared a record.
    wander: f64,
    /// Where the first record met began, and how many ago.
    base: (u64, u64),
    /// The anchor is known from a pass before, and lies near.
    is_near: bool,
}

impl Stride {
    /// A record begins at `anchor`, the one before `jump` bytes from there; `length` are its bounds in bytes.
    pub fn new(anchor: u64, jump: i64, length: Range<u64>) -> Self {
        let low = length.start.max(PAGE);
        let high = length.end.max(low);
        let period = jump.unsigned_abs().max(PAGE) as f64;
        Self { anchor, period, is_backward: jump < 0, low, high, wander: 0.0, base: (anchor, 0), is_near: false }
    }

    pub fn period(&self) -> u64 {
        self.period as u64
    }

    /// Bytes of a record, at most.
    pub fn longest(&self) -> u64 {
        self.high
    }

    /// Bytes read of so many bytes of the file.
    pub fn share(&self) -> f64 {
        (self.high as f64 / self.period).min(1.0)
    }

    /// Where a record begins, counted from the anchor in reading order; the one before the first byte is its own kind.
    fn start(&self, record: i64) -> i64 {
        let ahead = record as f64 * self.period;
        (self.anchor as i64).saturating_add(if self.is_backward { -ahead } else { ahead }.floor() as i64)
    }

    /// The same; none before the beginning of the file.
    fn place_of(&self, record: i64) -> Option<u64> {
        u64::try_from(self.start(record)).ok()
    }

    /// Pages by which a mean period may be wrong over so many records: of those that it is the mean of, the first and the last
    /// lie within a page of where they would by the true one.
    fn slant(&self, records: u64) -> f64 {
        if self.base.1 >= ENOUGH { records as f64 / self.base.1 as f64 } else { 0.0 }
    }

    /// Bytes by which a record so far off may begin earlier than expected, and later. Before the period is a mean a page
    /// later it may always: that is how the first page of another kind between records shows.
    fn spread(&self, records: i64) -> (u64, u64) {
        let records = records.unsigned_abs();
        let pages = (self.wander * records as f64 + self.slant(records).powi(2)).sqrt();
        let bytes = |pages: f64| (pages * PAGE as f64) as u64;
        if self.base.1 >= ENOUGH {
            // Between two starts that are known records are not pushed back, only aside.
            (bytes(if self.is_near { pages } else { pages + ROOM }), bytes(pages + ROOM))
        } else {
            (bytes(pages), bytes(pages).max(PAGE))
        }
    }

    /// What is fetched for a record: it begins at a page, of the two around where it is expected at the one or the other.
    fn extent(&self, record: i64) -> Range<u64> {
        let (start, (earlier, later)) = (self.start(record), self.spread(record));
        let page = PAGE as i64;
        let first = (start - earlier as i64).max(0) / page * page;
        let end = start + (self.high + later) as i64;
        first as u64..(end.max(0) as u64).next_multiple_of(PAGE)
    }

    /// The records in a part of the file, clipped to it, in reading order.
    pub fn extents(&self, part: Range<u64>) -> Vec<Range<u64>> {
        let number = |at: u64| {
            let ahead = (at as f64 - self.anchor as f64) / self.period;
            if self.is_backward { -ahead } else { ahead }.floor() as i64
        };
        let (a, b) = (number(part.start), number(part.end));
        if a.abs_diff(b) > MOST {
            return vec![part];
        }
        let mut extents: Vec<Range<u64>> = Vec::new();
        for record in a.min(b) - 2..=a.max(b) + 2 {
            let extent = self.extent(record);
            let mut extent = extent.start.max(part.start)..extent.end.min(part.end);
            // Neighbours may overlap where they wander.
            match extents.last() {
                Some(before) if self.is_backward => extent.end = extent.end.min(before.start),
                Some(before) => extent.start = extent.start.max(before.end),
                None => {}
            }
            if extent.start < extent.end {
                extents.push(extent);
            }
        }
        extents
    }

    /// Where a page lies.
    pub fn place(&self, at: u64) -> Place {
        let ahead = at as f64 - self.anchor as f64;
        let nearest = (ahead / self.period).round();
        let deviation = at as i64 - (self.anchor as f64 + nearest * self.period).floor() as i64;
        let records = nearest.abs() as u64;
        if deviation.unsigned_abs() <= self.tolerance(records as i64) {
            return Place::Start { records, deviation };
        }
        let within = ahead.rem_euclid(self.period) as u64;
        if within < self.high + self.spread(records as i64).1 { Place::Inside } else { Place::Gap }
    }

    /// Bytes from where a record is expected, so many ahead, to where one may begin: at most half a gap.
    fn tolerance(&self, records: i64) -> u64 {
        let room = (self.period as u64).saturating_sub(self.high) / 2;
        (8 * PAGE).max(self.period() / 16).max(self.spread(records).1).min(room.max(PAGE))
    }

    /// Whether a record that begins here is in the extents as a whole, or as far as these reach in `part`.
    pub fn covers(&self, at: u64, part: &Range<u64>) -> bool {
        let record = at..(at + self.high).min(part.end);
        self.extents(record.clone()) == [record]
    }

    /// A record began here.
    pub fn meet(&mut self, at: u64, records: u64, deviation: i64) {
        if records == 0 {
            return;
        }
        // A page more or less shows that records begin at pages, not that they wander.
        let pages = Some((deviation as f64 / PAGE as f64).abs()).filter(|pages| *pages > 1.0 + self.slant(records));
        // The mean of the latest records: one met soon after the last says less of the wandering than one met long after.
        let (before, now) = ((self.base.1 + KNOWN_BY).min(MEMORY) as f64, records as f64);
        self.wander = (self.wander * before + pages.unwrap_or(0.0).powi(2)) / (before + now);
        self.anchor = at;
        self.base.1 += records;
        if self.base.1 >= ENOUGH {
            self.period = (at.abs_diff(self.base.0) as f64 / self.base.1 as f64).max(PAGE as f64);
        }
    }

    /// Whether trips could tell better how long records are.
    pub fn is_vague(&self) -> bool {
        !self.is_backward && self.high - self.low > PAGE
    }

    /// A place within the first record that begins behind `from`, such that a trip there tells whether records reach so
    /// far; none where that is known to the page.
    pub fn probe(&self, from: u64) -> Option<Probe> {
        if !self.is_vague() {
            return None;
        }
        let record = ((from as f64 - self.anchor as f64) / self.period).ceil().max(1.0) as i64;
        let length = (self.low + (self.high - self.low) / 2) / PAGE * PAGE;
        let at = self.place_of(record)? + length;
        Some(Probe { at, length, next: self.place_of(record + 1)?, is_late: false })
    }

    /// The same within the first gap behind `from`, where only a reader trips that leaves nothing out; none if `from` lies in a
    /// gap itself, and so tells.
    pub fn probe_gap(&self, from: u64) -> Option<Probe> {
        // What lies nearer to a record's beginning, this one's or the next one's, may be taken for a start.
        let near = self.tolerance(1);
        let length = ((self.high.max(near) + self.period().saturating_sub(near)) / 2).next_multiple_of(PAGE);
        if self.is_backward || length <= self.high || self.place(from) == Place::Gap {
            return None;
        }
        let record = ((from as f64 - self.anchor as f64) / self.period).floor() as i64;
        let at = |record| self.place_of(record).map(|start| start / PAGE * PAGE + length);
        let record = if at(record).is_some_and(|at| at > from) { record } else { record + 1 };
        let at = at(record).filter(|&at| self.place(at) == Place::Gap)?;
        Some(Probe { at, length, next: self.place_of(record + 1)?, is_late: false })
    }

    /// The reader tripped at `at`, the first checkpoint it met after the one before the probe.
    pub fn learn(&mut self, probe: &Probe, at: u64) {
        if at == probe.at {
            self.low = self.low.max(probe.length + PAGE).min(self.high);
        } else if !probe.is_late && at.abs_diff(probe.next) <= 4 * PAGE {
            self.high = self.high.min(probe.length).max(self.low);
        }
    }
}

/// What was asked for of the records ahead, each part by the stride as it was then: where records are told now may be
/// another place.
#[derive(Clone, Debug, Default)]
pub struct Asked(VecDeque<(Range<u64>, Stride)>);

impl Asked {
    /// Parts that are remembered: two windows, and both repaired.
    const PARTS: usize = 4;

    /// The extents of this part, which are asked for now.
    pub fn extents(&mut self, stride: &Stride, part: Range<u64>) -> Vec<Range<u64>> {
        if self.0.len() == Self::PARTS {
            self.0.pop_front();
        }
        self.0.push_back((part.clone(), *stride));
        stride.extents(part)
    }

    /// Whether it was not asked for all of the record that begins here, and so of those behind it.
    pub fn lacks(&self, at: u64) -> bool {
        let latest = self.0.iter().rev().find(|(part, _)| part.contains(&at));
        latest.is_some_and(|(part, stride)| !stride.covers(at, part))
    }
}

/// A checkpoint within a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub at: u64,
    /// Bytes from the start of the record.
    length: u64,
    /// Where the next record begins.
    next: u64,
    /// The reader may have passed it before it heard of it: that it did not trip there says nothing.
    pub is_late: bool,
}

impl Probe {
    /// Whether another checkpoint would be taken for an answer.
    pub fn is_disturbed_by(&self, checkpoint: u64) -> bool {
        (self.at + 1..=self.next).contains(&checkpoint)
    }
}

#[cfg(test)]
mod tests;
