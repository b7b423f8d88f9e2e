//! How a stream goes on, and what a trip says about that.

use super::learning::{Learning, Step};
use super::{Decision, StreamId, Streams};
use crate::policy::storage::{Pace, Storage};
use crate::policy::stride::{Asked, Place, Probe, Stride};
use crate::policy::window::Windows;
use precache_contract::{PAGE, STEP, STEPS};
use std::ops::Range;

/// Trips in a row that are not where the course says, after which it is learned anew.
const MISSES: u32 = 3;

/// The same where threads read in turns, and the first one often leaps over a checkpoint that another one is about to read.
const MISSES_IN_TURNS: u32 = 16;

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
    },
    /// Record by record, and all is fetched: what lies between costs nothing.
    Dense {
        is_backward: bool,
    },
    Strided {
        stride: Stride,
        asked: Asked,
        misses: u32,
        probe: Option<Probe>,
    },
}

impl Course {
    /// From here on sequential.
    pub(super) const FORWARD: Self = Self::Forward { misses: 0, probe: None };

    fn strided(stride: Stride) -> Self {
        Self::Strided { stride, asked: Asked::default(), misses: 0, probe: None }
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
            Self::Dense { is_backward: jump < 0 }
        } else {
            Self::strided(Stride::new(position, jump, length.start..high))
        }
    }

    /// That of a pass from `position` on like the one that this is the course of.
    pub(super) fn again_from(&self, position: u64) -> Self {
        match self.clone() {
            Self::Unknown | Self::Forward { .. } => Self::FORWARD,
            Self::Strided { mut stride, .. } => {
                stride.restart(position);
                Self::strided(stride)
            }
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
    /// Trips, after it, in what it left out.
    pub(super) made_up: u32,
    pub(super) pace: Pace,
    /// Spacing of checkpoints at its last trip but one and at its last: its next one was placed by either, as what is told
    /// arrives late.
    pub(super) spacings: [u64; 2],
    /// New places touched since it went on last.
    pub(super) idle: u32,
}

impl Stream {
    pub(super) fn is_backward(&self) -> bool {
        match &self.course {
            Course::Dense { is_backward } => *is_backward,
            Course::Strided { stride, .. } => stride.is_backward,
            Course::Unknown | Course::Forward { .. } => false,
        }
    }

    /// Of the bytes that it passes, those that it reads.
    pub(super) fn share(&self) -> f64 {
        if let Course::Strided { stride, .. } = &self.course { stride.share() } else { 1.0 }
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self.course, Course::Unknown)
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
        let (mut is_lost, mut leaves_nothing_out) = (false, false);
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
            Course::Dense { .. } => {}
            Course::Forward { misses, probe } => {
                let is_met = probe.is_some_and(|probe| probe / PAGE == position / PAGE);
                if is_met || is_in_place && probe.is_none() {
                    *misses = 0;
                } else if !is_in_place && ahead > STEP {
                    *misses += 1;
                }
                is_lost = *misses >= if stream.spread > 0 { MISSES_IN_TURNS } else { MISSES };
            }
            Course::Strided { stride, asked, misses, probe } => {
                if let Some(probe) = probe.take_if(|probe| probe.at <= position) {
                    stride.learn(&probe, position);
                }
                // At a checkpoint any record may be met, at its start or not, also by a reader that leaves nothing out.
                let fewer = if at_checkpoint { misses.saturating_sub(1) } else { 0 };
                match stride.place(position) {
                    Place::Start { deviation, .. } if at_checkpoint && deviation != 0 => *misses = fewer,
                    Place::Start { records, deviation } => {
                        *misses = fewer;
                        stride.meet(position, records, deviation);
                        if asked.lacks(position)
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
                    Place::Inside => *misses += 1,
                    Place::Gap if at_checkpoint => {
                        *misses += 2;
                        leaves_nothing_out = *misses >= MISSES && !stride.is_backward;
                    }
                    Place::Gap => *misses += 1,
                }
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
        }
    }

    /// From a page to the end of the step that a fault there opens.
    pub(super) fn room_after(&self, position: u64) -> u64 {
        STEP - self.past_grid(position, STEP)
    }

    /// The stream does not go as it went.
    pub(super) fn learn_anew(&mut self, index: usize, position: u64, decision: &mut Decision) {
        let room = self.room_after(position);
        let stream = &mut self.streams[index];
        decision.over.push(stream.id);
        (stream.course, stream.windows, stream.first) = (Course::Unknown, None, position);
        (stream.pace, stream.spread, stream.made_up) = (Pace::default(), 0, 0);
        stream.learning = Learning::begin(position, room, None);
    }
}
