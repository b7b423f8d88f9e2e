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

    /// Opens what is missing of `wanted` and adds it. When there is no place left, the shortest span is closed again,
    /// but for the `recent` pages.
    pub fn insert(&mut self, wanted: Span, recent: &[u64], apply: &mut dyn FnMut(Action)) {
        let mut rest = wanted;
        while let Some(gap) = self.first_gap(rest) {
            apply(Action::Open(gap));
            rest.start = gap.end;
        }
        let mut whole = wanted;
        for span in &mut self.0 {
            if !span.is_empty() && span.start <= whole.end && whole.start <= span.end {
                whole = Span { start: whole.start.min(span.start), end: whole.end.max(span.end) };
                *span = Span::default();
            }
        }
        let Some(place) = self.0.iter_mut().min_by_key(|span| span.length()) else { return };
        let evicted = core::mem::replace(place, whole);
        evicted.without(recent, &mut |span| apply(Action::Close(span)));
    }
}
