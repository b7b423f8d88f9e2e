//! Threads that read one part in turns, each the next record: none of them leaves a stream's trips behind, all of them
//! together leave nothing out.

use super::course::{Course, Stream};
use super::{Decision, Streams};
use crate::policy::storage::Pace;
use crate::policy::stride::Place;
use precache_contract::{PAGE, REACH, STEP, STEPS};
use std::collections::VecDeque;
use std::ops::Range;

/// Last trips that are looked at, and how often.
const LATEST: usize = 256;
const PAUSE: usize = 8;

/// Steps that are more than one reader goes through before it is known, and how many tenths of a part it takes to have read it.
const PIECE: usize = 2 * STEPS as usize;
const TENTHS: u64 = 9;

/// Pages touched in what a stream left out that are not single ones of another kind, as a tree has them between its records.
const OTHERS: usize = 3;

/// Trips of a stream without another of them, after which they count no more. Threads at their own pace read of its gaps now and
/// then only.
const ALONE: u32 = 64;

/// Pages touched of late in what a stream left out and has passed, each once: a leaf of a tree is touched for each record that it
/// names.
#[derive(Default)]
pub(super) struct MadeUp {
    /// At most [`OTHERS`].
    pages: Vec<u64>,
    /// Trips of the stream since the last of them.
    alone: u32,
}

impl MadeUp {
    /// One was touched here. Whether so many have been that others read what is left out.
    fn add(&mut self, position: u64) -> bool {
        let page = position / PAGE;
        if !self.pages.contains(&page) && self.pages.len() < OTHERS {
            self.pages.push(page);
            self.alone = 0;
        }
        self.pages.len() == OTHERS
    }

    /// The stream has tripped.
    pub(super) fn go_on(&mut self) {
        self.alone += 1;
        if self.alone >= ALONE {
            *self = Self::default();
        }
    }
}

/// Where trips were last.
#[derive(Default)]
pub struct Trail {
    positions: VecDeque<u64>,
    /// Trips since it was looked at.
    unseen: usize,
}

impl Trail {
    pub fn push(&mut self, position: u64) {
        self.positions.truncate(LATEST - 1);
        self.positions.push_front(position);
        self.unseen += 1;
    }

    /// The largest part near a position that has been read with hardly a step left out, if it was read forward on the whole. What
    /// lies before and behind it may be in the middle of being read. Looks once in a while only, unless it is wanted `now`.
    pub fn covered(&mut self, position: u64, now: bool) -> Option<Range<u64>> {
        if self.unseen < PAUSE && !now {
            return None;
        }
        self.unseen = 0;
        let mut steps: Vec<u64> = self.positions.iter().map(|position| position / STEP).collect();
        steps.sort_unstable();
        steps.dedup();
        let is_near = |piece: &&[u64]| {
            let (first, last) = (piece[0] * STEP, piece[piece.len() - 1] * STEP);
            (first.saturating_sub(REACH)..=last + REACH).contains(&position)
        };
        let pieces = steps.chunk_by(|step, next| next - step <= 2).filter(is_near);
        let piece = pieces.max_by_key(|piece| piece.len())?;
        let (count, part) = (piece.len(), piece[0] * STEP..(piece[piece.len() - 1] + 1) * STEP);
        let is_whole = 10 * count as u64 >= TENTHS * (part.end - part.start) / STEP;
        let inside: Vec<u64> = self.positions.iter().copied().filter(|position| part.contains(position)).collect();
        let (later, earlier) = inside.split_at(inside.len() / 2);
        let mean = |of: &[u64]| of.iter().copied().map(u128::from).sum::<u128>() / of.len().max(1) as u128;
        let is_forward = 2 * count > inside.len() && mean(later) > mean(earlier);
        (count >= PIECE && is_whole && is_forward).then_some(part)
    }
}

impl Stream {
    /// Whether it has passed this place just now: whoever trips there reads what it has left out, for what it has read is
    /// open. A stride has begun two records before it was known.
    pub(super) fn has_left_out(&self, position: u64) -> bool {
        let first = match &self.course {
            Course::Forward { .. } => self.first,
            Course::Strided { stride, .. } if !stride.is_backward => {
                self.first.saturating_sub(stride.period().saturating_mul(2))
            }
            _ => return false,
        };
        // Where it began the next pass begins, or another reader.
        let is_passed = first.saturating_add(2 * STEP) < position && position < self.last;
        is_passed && self.idle == 0 && self.last - position <= REACH.max(2 * self.spread)
    }

    /// Whether it skips, and this is none of its records.
    fn leaves_out(&self, position: u64) -> bool {
        matches!(&self.course, Course::Strided { stride, .. } if stride.place(position) == Place::Gap)
    }
}

impl Streams {
    /// Whether a stream seemed to leave out this position until now: other threads read it, maybe as a stream of their own
    /// (`by`). Together they go forward, so far apart; what seemed to skip fetches what it left out of its window too.
    pub(super) fn make_up(&mut self, position: u64, by: Option<usize>, decision: &mut Decision) -> bool {
        let passed = |(index, s): &(usize, &Stream)| Some(*index) != by && s.has_left_out(position);
        let Some((index, _)) = self.streams.iter().enumerate().find(passed) else { return false };
        let spread = self.streams[index].last - position;
        for one in [Some(index), by].into_iter().flatten() {
            let stream = &mut self.streams[one];
            if let Course::Forward { misses, .. } = &mut stream.course {
                (*misses, stream.spread) = (0, stream.spread.max(spread));
            }
        }
        let stream = &mut self.streams[index];
        if stream.leaves_out(position) && stream.made_up.add(position) {
            (stream.course, stream.spread) = (Course::FORWARD, spread);
            let end = stream.windows.as_ref().map_or(position, |windows| windows.end());
            decision.repair = Some((stream.id, self.plan.extents(position..end.max(position))));
        }
        true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_what_is_left_out_counts_once_and_not_for_long() {
        let (leaf, other, third) = (7 * PAGE, 3000 * PAGE, 6000 * PAGE);
        let mut leaves = MadeUp::default();
        assert!(![leaf, leaf + 8, leaf, other, leaf].into_iter().any(|position| leaves.add(position)));
        assert!(leaves.add(third));
        let mut seldom = MadeUp::default();
        for position in [leaf, other, third] {
            assert!(!seldom.add(position));
            (0..ALONE - 1).for_each(|_| seldom.go_on());
            // What was there before is not a new one.
            assert!(!seldom.add(position));
            seldom.go_on();
        }
    }

    /// What was read in turns says nothing of who reads elsewhere.
    #[test]
    fn a_part_is_looked_for_near_the_reader() {
        let mut trail = Trail::default();
        let part = 0..40 * STEP;
        part.clone().step_by(STEP as usize).for_each(|position| trail.push(position));
        let elsewhere = part.end + 2 * REACH;
        (0..3).for_each(|step| trail.push(elsewhere + step * STEP));
        assert_eq!(trail.covered(elsewhere + 2 * STEP, true), None);
        assert_eq!(trail.covered(part.end, true), Some(part));
    }
}
