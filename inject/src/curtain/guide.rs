//! What the optimizer has told about the streams of one mapping.

use super::Span;
use core::sync::atomic::Ordering::Relaxed;
use precache_contract::PAGE;
use precache_contract::segment::{WATCHED, Watch};

/// Where and how one stream goes on. Offsets as everywhere in the curtain; what lies outside the protected part is
/// met by nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guide {
    /// Where the order of reading is known.
    pub known: Span,
    pub is_backward: bool,
    /// Whether what it leaps over is to stay closed.
    pub is_exact: bool,
    /// Where the optimizer wants to hear from the reader; `u64::MAX`: nowhere.
    pub checkpoints: [u64; WATCHED],
    pub stops: Stops,
}

/// Pages that a reader will read which may leap over the grid's checkpoints.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stops {
    /// One of them.
    pub at: u64,
    /// From each to the next; 0: there are none, for it leaves nothing out.
    pub apart: u64,
    /// So many pages before each, and after it, the reader comes to no other one on its way there from the record before. In
    /// half a word each: guides lie on the stack of whoever trips, which may be small.
    pub before: u32,
    pub after: u32,
    /// The first page of a pass.
    pub first: u64,
}

impl Stops {
    pub const NONE: Self = Self { at: 0, apart: 0, before: 0, after: 0, first: 0 };

    /// The next one for a reader at `at`, at least half as far away as they are apart; where the protected part of `length` bytes
    /// ends before, the last one. `u64::MAX`: none lies ahead.
    pub fn next(&self, at: u64, length: u64, is_backward: bool) -> u64 {
        let apart = self.apart.max(PAGE);
        let phase = self.at % apart;
        // The last one up to here, or the first one of all.
        let until = |from: u64| from.saturating_sub(phase) / apart * apart + phase;
        let stop = if is_backward {
            until(at.saturating_sub(apart / 2))
        } else {
            until(at.saturating_add(apart / 2).saturating_add(apart - 1).min(length.saturating_sub(PAGE)))
        };
        let is_ahead = if is_backward { stop < at } else { at < stop && stop < length };
        if is_ahead { stop / PAGE * PAGE } else { u64::MAX }
    }
}

impl Guide {
    /// From a watch in file offsets, for a protected part that begins at `start` of the file.
    #[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
    pub fn of(watch: &Watch, start: u64) -> Self {
        let relative = |offset: u64| offset.saturating_sub(start);
        let mut checkpoints = [u64::MAX; WATCHED];
        for (checkpoint, told) in checkpoints.iter_mut().zip(&watch.checkpoints) {
            let told = told.load(Relaxed);
            *checkpoint = told.checked_sub(start).map_or(u64::MAX, |told| told - told % PAGE);
        }
        let known = Span { start: relative(watch.low.load(Relaxed)), end: relative(watch.high.load(Relaxed)) };
        let [is_backward, is_exact] = [&watch.is_backward, &watch.is_exact].map(|flag| flag.load(Relaxed) != 0);
        let (at, first) = (relative(watch.stop.load(Relaxed)), relative(watch.first_stop.load(Relaxed)));
        let apart = watch.stops_apart.load(Relaxed);
        let [before, after] =
            [&watch.before_stop, &watch.after_stop].map(|told| u32::try_from(told.load(Relaxed) / PAGE).unwrap_or(0));
        let stops = Stops { at, apart, before, after, first };
        Self { known, is_backward, is_exact, checkpoints, stops }
    }
}

/// All that has been told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told<'a> {
    pub guides: &'a [Guide],
    /// Spacing of checkpoints in bytes, instead of that from the beginning; 0: as it was.
    pub distance: u64,
    /// Nobody fetches, so no more is asked than which parts between the grid's points are read.
    pub by_grid: bool,
    /// Whether pages are mapped ahead of readers.
    pub maps_ahead: bool,
}

impl Told<'_> {
    /// Whether the optimizer has spoken at all.
    pub fn is_silence(&self) -> bool {
        self.guides.iter().all(|guide| guide.known.is_empty())
    }

    /// The guide for a reader at `at`.
    pub fn guide(&self, at: u64) -> Option<&Guide> {
        self.guides.iter().find(|guide| guide.known.contains(at))
    }

    /// The guide for one that skips, wherever it is.
    pub fn skipping(&self) -> Option<&Guide> {
        self.guides.iter().find(|guide| guide.stops.apart > 0)
    }

    /// The first checkpoint told after `at`; `u64::MAX` if there is none.
    pub fn after(&self, at: u64) -> u64 {
        let mut first = u64::MAX;
        self.each_checkpoint(&mut |told| {
            if told > at {
                first = first.min(told);
            }
        });
        first
    }

    /// The last one before `at`: where the page begins that follows it.
    pub fn before(&self, at: u64) -> u64 {
        let mut last = 0;
        self.each_checkpoint(&mut |told| {
            if told < at {
                last = last.max(told + PAGE);
            }
        });
        last
    }

    fn each_checkpoint(&self, each: &mut dyn FnMut(u64)) {
        for guide in self.guides.iter().filter(|guide| !guide.known.is_empty()) {
            guide.checkpoints.iter().for_each(|&told| each(told));
        }
    }
}
