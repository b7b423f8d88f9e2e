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
        Self { known, is_backward, is_exact, checkpoints }
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

    fn checkpoints(&self) -> impl Iterator<Item = u64> {
        let told = self.guides.iter().filter(|guide| !guide.known.is_empty()).flat_map(|guide| &guide.checkpoints);
        told.copied().filter(|&checkpoint| checkpoint != u64::MAX)
    }

    /// The first checkpoint told after `at`; `u64::MAX` if there is none.
    pub fn after(&self, at: u64) -> u64 {
        self.checkpoints().filter(|&told| told > at).min().unwrap_or(u64::MAX)
    }

    /// The last one before `at`: where the page begins that follows it.
    pub fn before(&self, at: u64) -> u64 {
        self.checkpoints().filter(|&told| told < at).max().map_or(0, |told| told + PAGE)
    }
}
