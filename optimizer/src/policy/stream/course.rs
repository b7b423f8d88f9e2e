//! How a stream goes on, and what a trip says about that.

use super::learning::{Learning, Step};
use super::turns::MadeUp;
use super::{Decision, StreamId, Streams};
use crate::policy::storage::{Pace, Storage};
use crate::policy::stride::{Asked, Place, Probe, Starts, Stride};
use crate::policy::window::Windows;
use precache_contract::{PAGE, STEP, STEPS};
use std::ops::Range;

/// Trips in a row that are not where the course says, after which it is learned anew.
const MISSES: u32 = 3;

/// The same where threads read in turns, and the first one often leaps over a checkpoint that another one is about to read.
const MISSES_IN_TURNS: u32 = 16;

/// Trips of which a stream's spacing of checkpoints is known: so many may be heard of before the reader is told of another one.
pub(super) const SPACINGS: usize = 8;

/// Trips in small steps that show a new order: three records and what lies around them.
pub(super) const CLOSE_UP: u32 = 4 * STEPS;

/// How a stream goes on.
#[derive(Clone)]
pub(super) enum Course {
    Unknown,
    /// All of it, one step after the other: it trips exactly at checkpoints, and `probe` is one at a place of no order.
    Forward {
        misses: u32,
        probe: Option<u64>,
        /// It has been looked at in small steps.
        was_doubted: bool,
    },
    /// Record by record, and all is fetched: what lies between costs nothing.
    Dense {
        is_backward: bool,
        /// Bytes of a record, about.
        run: u64,
        /// Bytes from the start of one record to the next.
        period: u64,
    },
    Strided {
        stride: Stride,
        /// Where records have been met.
        starts: Starts,
        asked: Asked,
        misses: u32,
        /// Its last trip was one of them.
        has_missed: bool,
        probe: Option<Probe>,
        /// It has been here before, and trips within records where it is to stop (`Stops`).
        is_again: bool,
    },
}

impl Course {
    /// From here on sequential.
    pub(super) const FORWARD: Self = Self::Forward { misses: 0, probe: None, was_doubted: false };

    fn strided(stride: Stride, starts: Starts, is_again: bool) -> Self {
        Self::Strided { stride, starts, asked: Asked::default(), misses: 0, has_missed: false, probe: None, is_again }
    }

    /// That of a reader of records of a length within these bounds, of which one begins at `position`, and the one before it
    /// `jump` bytes from there.
    pub(super) fn by_jumps(storage: &Storage, position: u64, jump: i64, length: Range<u64>) -> Self {
        let period = jump.unsigned_abs();
        // Something is left out, or it would be one record.
        let high = length.end.min(period.saturating_sub(STEP)).max(length.start);
        // Where that is known roughly, what lies between them may be worth leaving out.
        let likely = if high - length.start > STEP { length.start } else { length.end };
        let gap = period.saturating_sub(likely);
        if gap < PAGE || storage.fetches_gaps(likely, gap) {
            Self::Dense { is_backward: jump < 0, run: likely, period }
        } else {
            let mut starts = Starts::default();
            starts.add(position);
            Self::strided(Stride::new(position, jump, length.start..high), starts, false)
        }
    }

    /// Where records have been met before, from `position` on.
    pub(super) fn again(stride: Stride, starts: Starts, position: u64) -> Self {
        Self::strided(stride.near(position, &starts), starts, true)
    }

    /// That of a pass from `position` on like the one that this is the course of.
    pub(super) fn again_from(&self, position: u64) -> Self {
        match self.clone() {
            Self::Unknown | Self::Forward { .. } => Self::FORWARD,
            Self::Strided { stride, starts, .. } => Self::again(stride, starts, position),
            dense @ Self::Dense { .. } => dense,
        }
    }
}

pub(super) struct Stream {
    pub(super) id: StreamId,
    /// Where the pass began, and where it is.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) learning: Learning,
    pub(super) course: Course,
    pub(super) windows: Option<Windows>,
    /// How far apart the threads are that read it in turns; 0: there is one.
    pub(super) spread: u64,
    pub(super) made_up: MadeUp,
    pub(super) pace: Pace,
    /// Spacing of checkpoints at its last trips, the latest first.
    pub(super) spacings: [u64; SPACINGS],
    /// New places touched since it went on last.
    pub(super) idle: u32,
}

impl Stream {
    pub(super) fn is_backward(&self) -> bool {
        match &self.course {
            Course::Dense { is_backward, .. } => *is_backward,
            Course::Strided { stride, .. } => stride.is_backward,
            Course::Unknown | Course::Forward { .. } => false,
        }
    }

    /// Bytes from the start of one record to the next; 0: it reads no records.
    pub(super) fn period(&self) -> u64 {
        match &self.course {
            Course::Strided { stride, .. } => stride.period(),
            Course::Dense { period, .. } => *period,
            Course::Unknown | Course::Forward { .. } => 0,
        }
    }

    /// Whether it is here: where it tripped last, or, if it goes backward, farther on in the record that begins there.
    pub(super) fn is_at(&self, position: u64) -> bool {
        let record = match &self.course {
            Course::Dense { is_backward: true, period, .. } => *period,
            Course::Strided { stride, .. } if stride.is_backward => stride.longest(),
            _ => PAGE,
        };
        (self.last..self.last.saturating_add(record)).contains(&position)
    }

    /// It is learned anew from here on, where a fault opened so much.
    pub(super) fn forget(&mut self, position: u64, room: u64) {
        (self.course, self.windows, self.first) = (Course::Unknown, None, position);
        (self.pace, self.spread, self.made_up) = (Pace::default(), 0, MadeUp::default());
        self.learning = Learning::begin(position, room, None);
    }

    /// Whether it goes by stops where it has been before.
    pub(super) fn is_again(&self) -> bool {
        matches!(self.course, Course::Strided { is_again: true, .. })
    }

    /// Whether it is told where to stop: it has been here before, or soon comes to where it has.
    pub(super) fn stops(&self, length: u64) -> bool {
        let Course::Strided { stride, is_again, .. } = &self.course else { return false };
        let soon = || self.windows.as_ref().is_some_and(|windows| windows.next_end() >= length);
        *is_again || !stride.is_vague() && soon()
    }

    /// Of the bytes that it passes, those that it reads.
    pub(super) fn share(&self) -> f64 {
        if let Course::Strided { stride, .. } = &self.course { stride.share() } else { 1.0 }
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self.course, Course::Unknown)
    }

    /// Spacings of which either placed its next checkpoint, as what is told arrives late.
    pub(super) fn latest_spacings(&self) -> impl Iterator<Item = u64> {
        self.spacings.iter().copied().take(2)
    }
}

impl Streams {
    /// The reader has come to `position`: what that says about its course.
    pub(super) fn go_on(&mut self, index: usize, position: u64, decision: &mut Decision) {
        if self.streams[index].is_known() && self.enters_disorder(index, position) {
            return self.learn_anew(index, position, decision);
        }
        if !self.streams[index].is_known() && self.is_untold(&self.streams[index], position) {
            // This says nothing about its order.
            self.streams[index].learning = Learning::begin(position, self.room_after(position), None);
            return;
        }
        let at_checkpoint = self.is_checkpoint(position);
        let is_in_place = self.is_in_place(&self.streams[index], position);
        let storage = self.storage;
        // From there on it goes in leaps, up to a checkpoint.
        let is_long = self.streams[index].learning.faults() >= STEPS;
        let room = if is_long { self.distance } else { self.room_after(position) };
        let is_random = self.advised.is_random(self.plan.offset(position));
        // The end of what a fault opens where the handler knows no order, at present or no longer.
        let is_step = self.streams[index].last.abs_diff(position) <= STEP && self.past_grid(position, STEP) == 0;
        let is_on_grid = self.is_on_any_grid(position);
        let (mut is_lost, mut leaves_nothing_out, mut is_doubtful) = (false, false, false);
        let stops = self.streams[index].stops(self.plan.length());
        let stream = &mut self.streams[index];
        let ahead = stream.last.abs_diff(position);
        match &mut stream.course {
            Course::Unknown => match stream.learning.trip(position, room) {
                Step::Learning => {}
                Step::Sequential => {
                    if stream.windows.is_some() || is_random {
                        stream.course = Course::FORWARD;
                        self.close_up = 0;
                    }
                }
                Step::Strided { jump, length } => {
                    stream.windows = None;
                    stream.first = position;
                    self.close_up = 0;
                    stream.course = Course::by_jumps(&storage, position, jump, length);
                }
            },
            Course::Dense { run, period, .. } => is_lost = storage.gaps_are_dear(*run, period.saturating_sub(*run)),
            Course::Forward { misses, probe, was_doubted } => {
                let is_met = probe.is_some_and(|probe| probe / PAGE == position / PAGE);
                if is_met || is_in_place && probe.is_none() {
                    *misses = 0;
                } else if !is_in_place && ahead > STEP {
                    *misses += 1;
                    is_doubtful = is_on_grid && stream.spread == 0 && !std::mem::replace(was_doubted, true);
                }
                is_lost = *misses >= if stream.spread > 0 { MISSES_IN_TURNS } else { MISSES };
            }
            Course::Strided { stride, starts, asked, misses, has_missed, probe, is_again } => {
                let (before, had_missed) = (*misses, *has_missed);
                stream.made_up.go_on();
                let is_known = *is_again && starts.surround(position);
                if is_known {
                    *stride = stride.near(position, starts);
                }
                let at_checkpoint = at_checkpoint || stops && stride.is_stop(position);
                if let Some(probe) = probe.take_if(|probe| probe.at <= position) {
                    stride.learn(&probe, position);
                }
                // At a checkpoint any record may be met, at its start or not, also by a reader that leaves nothing out.
                let fewer = if at_checkpoint { misses.saturating_sub(1) } else { 0 };
                match stride.place(position) {
                    Place::Start { deviation, .. } if at_checkpoint && deviation != 0 => *misses = fewer,
                    Place::Start { records, deviation } if *is_again && !stride.may_begin(records, deviation) => {}
                    // One that skips comes to no record by a step: it is farther on in one, or reads what lies between.
                    Place::Start { .. } if is_step && !is_known && !stride.is_backward => {}
                    Place::Start { records, deviation } => {
                        *misses = fewer;
                        if !is_known {
                            starts.add(position);
                            if *is_again {
                                // The mean is that of the first pass, which came here from elsewhere.
                                *stride = stride.near(position, starts);
                            } else {
                                stride.meet(position, records, deviation);
                            }
                        }
                        if !is_known
                            && asked.lacks(position)
                            && let Some(windows) = &stream.windows
                        {
                            let length = self.plan.length();
                            let ahead = if stride.is_backward {
                                length - windows.end().min(length)..(position + PAGE).min(length)
                            } else {
                                position..windows.end()
                            };
                            let extents = asked.extents(stride, ahead).into_iter().flat_map(|e| self.plan.extents(e));
                            decision.repair = Some((stream.id, extents.collect()));
                        }
                    }
                    Place::Inside if at_checkpoint => *misses = fewer,
                    Place::Inside if *is_again => {}
                    Place::Inside if is_step && !stride.is_backward && !had_missed => {}
                    Place::Inside => *misses += 1,
                    // A tree's pages, which lie there, are sentinels, too.
                    Place::Gap if at_checkpoint && !*is_again => {
                        *misses += 2;
                        leaves_nothing_out = *misses >= MISSES && !stride.is_backward;
                    }
                    Place::Gap => *misses += 1,
                }
                *has_missed = *misses > before;
                is_lost = *misses >= MISSES;
            }
        }
        if leaves_nothing_out {
            // It is not heard of before its next checkpoint, which lies as far as for a reader that skips.
            let first = self.spacing(&self.streams[index]);
            self.learn_anew(index, position, decision);
            let windows = Windows::begin(self.sizing, self.plan.length(), position, 1.0).at_least(first);
            let stream = &mut self.streams[index];
            (stream.course, stream.windows) = (Course::FORWARD, Some(windows));
        } else if is_lost {
            self.learn_anew(index, position, decision);
            self.close_up = CLOSE_UP;
        } else if is_doubtful {
            // Of a reader whose records begin where checkpoints of some grid do, these show little; small steps do at once.
            self.close_up = CLOSE_UP;
        }
    }

    /// From a page to the end of what a fault there opens, at most: a step; where the handler takes an order for known, up to its
    /// next checkpoint.
    pub(super) fn room_after(&self, position: u64) -> u64 {
        let offset = self.plan.offset(position);
        let step = STEP - self.past_grid(position, STEP);
        if self.thresholds().any(|told| told.known.contains(&offset)) {
            let from = position + STEP.min(self.distance) - 1;
            (from + self.distance - self.past_grid(from, self.distance)).saturating_sub(position).max(step)
        } else {
            step
        }
    }

    /// The stream does not go as it went.
    pub(super) fn learn_anew(&mut self, index: usize, position: u64, decision: &mut Decision) {
        let room = self.room_after(position);
        self.remember(index);
        let stream = &mut self.streams[index];
        decision.over.push(stream.id);
        stream.forget(position, room);
    }
}
