//! Threads that read one part in turns, each the next record: none of them leaves a stream's trips behind, all of them
//! together leave nothing out.

use super::course::{Course, SKIP, Stream};
use super::{Decision, Streams};
use crate::policy::storage::Pace;
use crate::policy::stride::Place;
use precache_contract::STEP;
use std::collections::VecDeque;
use std::ops::Range;

/// Last trips that are looked at: the fewer, the shorter the records and the fewer the threads.
const LENGTHS: [usize; 4] = [32, 64, 128, 256];
const LONGEST: usize = 256;

/// Of the steps between the first and the last one, at least so many tenths have been read.
const TENTHS: u64 = 9;

/// Trips in what a stream left out that are not single pages of another kind, as a tree has them between its records.
const OTHERS: u32 = 3;

/// Where trips were last.
#[derive(Default)]
pub struct Trail {
    positions: VecDeque<u64>,
    /// Trips since it was looked at.
    unseen: usize,
}

impl Trail {
    pub fn push(&mut self, position: u64) {
        self.positions.truncate(LONGEST - 1);
        self.positions.push_front(position);
        self.unseen += 1;
    }

    /// The part that has been read, with hardly a step left out, if it was read forward on the whole. Looks once in a while
    /// only, unless it is wanted `now`.
    pub fn covered(&mut self, now: bool) -> Option<Range<u64>> {
        if self.unseen < LENGTHS[0] && !now {
            return None;
        }
        self.unseen = 0;
        LENGTHS.into_iter().filter(|&length| length <= self.positions.len()).find_map(|length| {
            let latest = || self.positions.iter().take(length).copied();
            let mut steps: Vec<u64> = latest().map(|position| position / STEP).collect();
            steps.sort_unstable();
            steps.dedup();
            let (first, last) = (steps.first()?, steps.last()?);
            let is_whole = 10 * steps.len() as u64 >= TENTHS * (last - first + 1);
            let later: u128 = latest().take(length / 2).map(u128::from).sum();
            let earlier: u128 = latest().skip(length / 2).map(u128::from).sum();
            let is_forward = steps.len() > length / 2 && later > earlier;
            (is_whole && is_forward).then_some(first * STEP..(last + 1) * STEP)
        })
    }
}

impl Streams {
    /// Whether a stream seemed to leave out this position until now: other threads read it. One that skips does so together with
    /// them no longer; they want what was left out of its window.
    pub(super) fn is_made_up_for(&mut self, position: u64, decision: &mut Decision) -> bool {
        let passed = self.streams.iter_mut().filter(|s| s.first <= position && position < s.last);
        for stream in passed {
            match &mut stream.course {
                Course::Forward { misses, .. } if stream.last - position <= SKIP.max(stream.spread) => *misses = 0,
                Course::Strided { stride, .. } if !stride.is_backward && stride.place(position) == Place::Gap => {
                    stream.made_up += 1;
                    if stream.made_up < OTHERS {
                        return true;
                    }
                    stream.course = Course::Dense { is_backward: false };
                    let end = stream.windows.as_ref().map_or(position, |windows| windows.end());
                    decision.repair = Some((stream.id, self.plan.extents(position..end.max(position))));
                }
                _ => continue,
            }
            return true;
        }
        false
    }

    /// All that is read of this part, which seemed to be read by many, becomes one stream.
    pub(super) fn read_in_turns(&mut self, index: usize, part: Range<u64>, decision: &mut Decision) -> usize {
        let id = self.streams[index].id;
        let is_of_it = |s: &Stream| s.id != id && !s.is_known() && part.contains(&s.last);
        decision.over.extend(self.streams.iter().filter(|s| is_of_it(s) || s.id == id).map(|s| s.id));
        self.streams.retain(|s| !is_of_it(s));
        let index = self.streams.iter().position(|s| s.id == id).unwrap_or(0);
        self.close_up = 0;
        let stream = &mut self.streams[index];
        (stream.course, stream.windows, stream.pace) = (Course::FORWARD, None, Pace::default());
        (stream.first, stream.spread) = (part.start, part.end - part.start);
        index
    }
}
