//! A bounded set of spans that do not touch each other.

use super::Action;
use precache_contract::PAGE;

/// Spans kept at a time.
const CAPACITY: usize = 32;

/// Part of the mapping: `start..end` in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
}

impl Span {
    pub fn contains(self, at: u64) -> bool {
        (self.start..self.end).contains(&at)
    }

    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the two together leave no gap.
    fn touches(self, other: Self) -> bool {
        !self.is_empty() && self.start <= other.end && other.start <= self.end
    }

    fn distance(self, other: Self) -> u64 {
        self.start.saturating_sub(other.end).max(other.start.saturating_sub(self.end))
    }

    /// From the first byte of the two to the last.
    fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Calls `each` for the parts between these pages.
    pub fn without(self, pages: &[u64], each: &mut dyn FnMut(Self)) {
        let mut from = self.start;
        while from < self.end {
            let next = pages.iter().copied().filter(|&page| page >= from && page < self.end).min().unwrap_or(self.end);
            let part = Self { start: from, end: next };
            if !part.is_empty() {
                each(part);
            }
            from = next + PAGE;
        }
    }
}

/// Empty spans are unused places.
pub struct Spans([Span; CAPACITY]);

impl Spans {
    pub const fn new() -> Self {
        Self([Span { start: 0, end: 0 }; CAPACITY])
    }

    /// Empties all places.
    pub fn forget(&mut self) {
        for span in &mut self.0 {
            *span = Span { start: 0, end: 0 };
        }
    }

    /// Whether one span holds all of this.
    pub fn covers(&self, wanted: Span) -> bool {
        self.0.iter().any(|span| span.start <= wanted.start && wanted.end <= span.end)
    }

    /// The first part of `wanted` that no span holds.
    pub fn first_gap(&self, wanted: Span) -> Option<Span> {
        let mut from = wanted.start;
        while let Some(span) = self.0.iter().find(|span| span.contains(from)) {
            from = span.end;
        }
        let after = self.0.iter().filter(|span| !span.is_empty() && span.start > from).map(|span| span.start).min();
        let gap = Span { start: from, end: after.unwrap_or(wanted.end).min(wanted.end) };
        (!gap.is_empty()).then_some(gap)
    }

    /// Opens what is missing of `wanted` and adds it. When there is no place left, the shortest span without a `recent`
    /// page is closed again if that `may_close`, else what lies between this and the nearest is opened too. `true`: one
    /// was closed.
    pub fn insert(&mut self, wanted: Span, recent: &[u64], may_close: bool, apply: &mut dyn FnMut(Action)) -> bool {
        let mut whole = wanted;
        let mut closed = false;
        if self.is_full(wanted) {
            let forgotten = |span: &&mut Span| may_close && !recent.iter().any(|&page| span.contains(page));
            match self.0.iter_mut().filter(forgotten).min_by_key(|span| span.length()) {
                Some(span) => {
                    apply(Action::Close(core::mem::take(span)));
                    closed = true;
                }
                None => {
                    let nearest = self.0.iter().min_by_key(|span| span.distance(wanted)).copied().unwrap_or(wanted);
                    whole = whole.hull(nearest);
                }
            }
        }
        let mut rest = whole;
        while let Some(gap) = self.first_gap(rest) {
            apply(Action::Open(gap));
            rest.start = gap.end;
        }
        for span in &mut self.0 {
            if span.touches(whole) {
                whole = whole.hull(core::mem::take(span));
            }
        }
        if let Some(place) = self.0.iter_mut().find(|span| span.is_empty()) {
            *place = whole;
        }
        closed
    }

    /// Whether there is neither a place for this nor a span that it could join.
    fn is_full(&self, wanted: Span) -> bool {
        self.0.iter().all(|span| !span.is_empty() && !span.touches(wanted))
    }
}
