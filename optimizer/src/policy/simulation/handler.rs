//! What happens in a reader: which of its pages are closed, the curtain that places them, and what its handler has been told.

use super::curtain::{Action, Clock, Curtain, Guide, Told};
use crate::policy::stream::Streams;
use crate::progress::checkpoints::tell;
use precache_contract::PAGE;
use precache_contract::segment::{Mapping, Method};
use std::sync::atomic::Ordering::Relaxed;

pub struct Handler {
    closed: Vec<bool>,
    curtain: Curtain,
    /// What the optimizer has told the handler.
    shared: Box<Mapping>,
    /// Offsets of trips that have woken nobody: the optimizer hears of them with the next one that wakes it. It sleeps
    /// whenever it has nothing to do, which is as deaf as it can be.
    unheard: Vec<u64>,
}

impl Handler {
    pub fn new(pages: usize, is_armed: bool, method: Method) -> Self {
        Self {
            closed: vec![is_armed; pages],
            curtain: Curtain::new(pages as u64 * PAGE, 8 << 20, method),
            // SAFETY: a Mapping is made of atomics alone, for which zero is a valid value (core::sync::atomic: same in-memory
            // representation as the integer).
            shared: unsafe { Box::new_zeroed().assume_init() },
            unheard: Vec::new(),
        }
    }

    /// Whether touching the page is a trip.
    pub fn is_closed(&self, page: usize) -> bool {
        self.closed[page]
    }

    /// The reader trips on a page, at this second. The offsets of all trips that the optimizer has not heard of, if this one
    /// wakes it.
    pub fn trip(&mut self, page: usize, now: f64) -> Option<Vec<u64>> {
        // As the handler does, what is told first decides who hears of the trip, then where the next one is.
        let is_urgent = !self.shared.is_quiet(page as u64 * PAGE);
        let guides: Vec<_> = self.shared.watched().iter().map(|watch| Guide::of(watch, 0)).collect();
        let told =
            Told { guides: &guides, distance: self.shared.distance.load(Relaxed), by_grid: false, maps_ahead: false };
        let closed = &mut self.closed;
        let milliseconds = 1 + (now * 1e3) as u64;
        self.curtain.trip(page as u64 * PAGE, &told, &Clock::new(&|| milliseconds), &mut |action| match action {
            Action::Open(span) => closed[(span.start / PAGE) as usize..(span.end / PAGE) as usize].fill(false),
            Action::Close(span) => closed[(span.start / PAGE) as usize..(span.end / PAGE) as usize].fill(true),
            Action::Guard(at) => closed[(at / PAGE) as usize] = true,
            Action::Lift(at) => closed[(at / PAGE) as usize] = false,
        });
        self.unheard.push(page as u64 * PAGE);
        is_urgent.then(|| std::mem::take(&mut self.unheard))
    }

    /// The optimizer tells what it expects.
    pub fn hear(&self, streams: &Streams) {
        tell(&self.shared, streams.distance(), &mut streams.thresholds());
    }
}
