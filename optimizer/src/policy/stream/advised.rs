//! What the program itself says about its order of reading, part by part of the file.

use super::course::Course;
use super::{Decision, StreamId, Streams};
use precache_contract::ring::Advice;
use precache_contract::{STEP, STEPS};
use std::ops::Range;

/// Parts that are remembered; of more, those said first are forgotten.
const PARTS: usize = 64;

/// Bytes in a row that bear out that reading is sequential.
const PROOF: u64 = STEPS as u64 * STEP;

#[derive(Default)]
pub struct Advised {
    /// The later holds where parts overlap.
    parts: Vec<(Range<u64>, Advice)>,
    /// The last stream that was taken to be sequential because the program said so.
    believed: Option<StreamId>,
}

impl Advised {
    /// This holds from now on for these bytes of the file.
    fn add(&mut self, part: Range<u64>, advice: Advice) {
        self.parts.retain(|(other, _)| other.start < part.start || part.end < other.end);
        let is_alone = self.parts.iter().all(|(other, _)| other.end <= part.start || part.end <= other.start);
        if advice == Advice::Normal && is_alone {
            return;
        }
        if self.parts.len() == PARTS {
            self.parts.remove(0);
        }
        self.parts.push((part, advice));
    }

    fn at(&self, offset: u64) -> Advice {
        self.parts.iter().rev().find(|(part, _)| part.contains(&offset)).map_or(Advice::Normal, |&(_, advice)| advice)
    }

    /// Whether reading has no order here: nothing is fetched until one is certain all the same.
    pub fn is_random(&self, offset: u64) -> bool {
        self.at(offset) == Advice::Random
    }

    /// What of these extents lies where reading has an order.
    pub fn ordered(&self, extents: Vec<Range<u64>>) -> Vec<Range<u64>> {
        if self.parts.is_empty() {
            return extents;
        }
        let ordered = |extent: Range<u64>| {
            let ends = self.parts.iter().flat_map(|(part, _)| [part.start, part.end]);
            let mut cuts: Vec<u64> =
                ends.filter(|cut| extent.contains(cut)).chain([extent.start, extent.end]).collect();
            cuts.sort_unstable();
            cuts.windows(2)
                .map(|pair| pair[0]..pair[1])
                .filter(|part| !part.is_empty() && !self.is_random(part.start))
                .collect::<Vec<_>>()
        };
        extents.into_iter().flat_map(ordered).collect()
    }
}

impl Streams {
    /// The program says in what order it reads this part of the file: what was known of streams there counts no more if it is
    /// random.
    pub fn advise(&mut self, part: Range<u64>, order: Advice) -> Decision {
        let mut decision = Decision::default();
        if order == Advice::Sequential {
            self.advised.believed = None;
        }
        self.advised.add(part.clone(), order);
        if order == Advice::Random {
            for index in 0..self.streams.len() {
                let last = self.streams[index].last;
                if part.contains(&self.plan.offset(last)) {
                    self.learn_anew(index, last, &mut decision);
                }
            }
        }
        decision
    }

    /// How a new stream goes of which nothing else is known. The program is not believed again before the stream that began
    /// on its word bears it out.
    pub(super) fn course_by_word(&mut self, position: u64) -> Course {
        let bears_out = |id| self.streams.iter().any(|s| s.id == id && s.last.abs_diff(s.first) >= PROOF);
        let is_sequential = self.advised.at(self.plan.offset(position)) == Advice::Sequential;
        if !is_sequential || !self.advised.believed.is_none_or(bears_out) {
            return Course::Unknown;
        }
        self.advised.believed = Some(self.next_id);
        Course::FORWARD
    }

    /// Whether a stream comes into a part without an order from outside.
    pub(super) fn enters_disorder(&self, index: usize, position: u64) -> bool {
        let is_random = |position| self.advised.is_random(self.plan.offset(position));
        is_random(position) && !is_random(self.streams[index].first)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Streams;
    use super::*;
    use crate::policy::plan::Plan;
    use crate::policy::storage::Storage;
    use crate::policy::window::Sizing;
    use precache_contract::{PAGE, STEP, STEPS};
    use std::time::Duration;

    const SIZE: u64 = 256 << 20;

    /// Where a record begins, of many at random places.
    fn place(record: u64) -> u64 {
        (record * record * 7919 + record * 104_729) % 1009 * (252 << 10) / PAGE * PAGE
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn streams(advice: Advice) -> Streams {
        let sizing = Sizing { size: 8 << 20, is_auto: false, threshold: 75 };
        let mut streams = Streams::new(Plan::sequential(0..SIZE), 0, sizing, 1 << 20, false, Storage::default());
        let _ = streams.advise(0..SIZE, advice);
        streams
    }

    /// Faults in small steps until something is requested.
    fn faults(streams: &mut Streams, from: u64) -> Option<u32> {
        let observe =
            |fault: &u32| streams.observe(from + u64::from(*fault) * STEP, at(u64::from(*fault))).request.is_some();
        (0..100).find(observe).map(|fault| fault + 1)
    }

    #[test]
    fn what_was_said_last_holds() {
        let mut advised = Advised::default();
        advised.add(0..100, Advice::Random);
        advised.add(20..50, Advice::Sequential);
        advised.add(30..40, Advice::Normal);
        let said = [19, 20, 35, 45, 50, 100].map(|offset| advised.at(offset));
        use Advice::*;
        assert_eq!(said, [Random, Sequential, Normal, Sequential, Random, Normal]);
        assert_eq!(advised.ordered(vec![10..60, 70..80, 90..120]), [20..30, 30..40, 40..50, 100..120]);
        advised.add(0..100, Advice::Normal);
        assert!(advised.parts.is_empty());
    }

    #[test]
    fn a_sequential_reader_is_served_from_its_first_fault() {
        assert_eq!(faults(&mut streams(Advice::Sequential), 64 << 20), Some(1));
        assert_eq!(faults(&mut streams(Advice::Normal), 64 << 20), Some(3));
    }

    /// Records at random places, of a program that says that it is sequential.
    #[test]
    fn a_word_that_is_not_kept_is_not_believed_again() {
        let mut wrong = streams(Advice::Sequential);
        let requests = (0..200).filter(|&record| wrong.observe(place(record), at(record)).request.is_some());
        assert_eq!(requests.count(), 1);
        let _ = wrong.advise(0..SIZE, Advice::Sequential);
        assert!(wrong.observe(place(300), at(300)).request.is_some());
    }

    #[test]
    fn a_random_reader_must_prove_that_it_is_none() {
        let served = faults(&mut streams(Advice::Random), 64 << 20);
        assert!(served.is_some_and(|faults| faults > STEPS), "{served:?}");
        let mut random = streams(Advice::Random);
        for record in 0..200 {
            for step in 0..4 {
                let decision = random.observe(place(record) + step * STEP, at(record));
                assert_eq!(decision.request, None, "at record {record}");
            }
        }
    }

    /// Said in the middle of a pass: what is queued is not wanted any more, and nothing is requested until the order is certain;
    /// taken back, three faults are enough again.
    #[test]
    fn random_ends_a_stream_and_normal_takes_it_back() {
        let mut streams = streams(Advice::Normal);
        assert_eq!(faults(&mut streams, 0), Some(3));
        let stream = streams.latest.unwrap();
        assert_eq!(streams.advise(0..SIZE, Advice::Random).over, [stream]);
        assert_eq!(streams.thresholds().count(), 0);
        assert!(faults(&mut streams, 3 * STEP).is_some_and(|faults| faults > STEPS - 1));
        let _ = streams.advise(0..SIZE, Advice::Random);
        assert!(streams.advise(0..SIZE, Advice::Normal).over.is_empty());
        assert_eq!(faults(&mut streams, 128 << 20), Some(3));
    }

    /// A stream that comes to a part without an order: nothing is requested there before it has shown itself there too.
    #[test]
    fn windows_end_where_reading_is_said_to_be_random() {
        let mut streams = streams(Advice::Normal);
        let disorder = 32 << 20..48 << 20;
        let _ = streams.advise(disorder.clone(), Advice::Random);
        let mut requested = Vec::new();
        for step in 0..(64 << 20) / STEP {
            let request = streams.observe(step * STEP, at(step)).request;
            requested.extend(request.into_iter().flat_map(|(_, extents)| extents).map(|extent| (step * STEP, extent)));
        }
        let inside = |at: u64, extent: &Range<u64>| {
            at < disorder.start + PROOF && extent.end > disorder.start && extent.start < disorder.end
        };
        assert!(requested.iter().all(|(at, extent)| !inside(*at, extent)), "{requested:?}");
        assert!(requested.iter().any(|(_, extent)| extent.end == disorder.start), "{requested:?}");
        assert!(requested.iter().any(|(_, extent)| disorder.contains(&extent.start)), "{requested:?}");
    }
}
