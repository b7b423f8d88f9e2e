//! A bounded set of spans that do not touch each other.

use super::Action;
use super::list::List;
use precache_contract::PAGE;

/// Spans kept at a time, and room for one more, which comes before another one goes.
const CAPACITY: usize = 32;
const ROOM: usize = CAPACITY + 1;

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

/// Spans that are not empty, and do not touch each other.
pub struct Spans(List<Span, ROOM>);

impl Spans {
    pub const fn new() -> Self {
        Self(List::new(Span { start: 0, end: 0 }))
    }

    /// Holds none any more.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Whether one span holds all of this.
    pub fn covers(&self, wanted: Span) -> bool {
        self.0.items().iter().any(|span| span.start <= wanted.start && wanted.end <= span.end)
    }

    /// The first part of `wanted` that no span holds.
    pub fn first_gap(&self, wanted: Span) -> Option<Span> {
        let mut from = wanted.start;
        while let Some(span) = self.0.items().iter().find(|span| span.contains(from)) {
            from = span.end;
        }
        let after = self.0.items().iter().filter(|span| span.start > from).map(|span| span.start).min();
        let gap = Span { start: from, end: after.unwrap_or(wanted.end).min(wanted.end) };
        (!gap.is_empty()).then_some(gap)
    }

    /// Opens what is missing of `wanted`, which is not empty and holds a `recent` page, and adds it. If that is one too many, the
    /// shortest span without such a page is closed again if it `may_close`, else the shortest gap is opened too. `true`: one was
    /// closed.
    pub fn insert(
        &mut self,
        wanted: Span,
        recent: &[u64],
        may_close: impl FnOnce() -> bool,
        apply: &mut dyn FnMut(Action),
    ) -> bool {
        // Nearly always a reader goes on from where one of them ends, and comes to no other.
        let mut touched = self.0.items_mut().iter_mut().filter(|span| span.touches(wanted));
        if let (Some(span), None) = (touched.next(), touched.next())
            && span.start <= wanted.start
        {
            if span.end < wanted.end {
                apply(Action::Open(Span { start: span.end, end: wanted.end }));
                span.end = wanted.end;
            }
            return false;
        }
        self.insert_apart(wanted, recent, may_close, apply)
    }

    /// The same, wherever it lies.
    #[cold]
    fn insert_apart(
        &mut self,
        wanted: Span,
        recent: &[u64],
        may_close: impl FnOnce() -> bool,
        apply: &mut dyn FnMut(Action),
    ) -> bool {
        self.add(wanted, apply);
        if !self.0.is_full() {
            return false;
        }
        let forgotten = |span: &&Span| !recent.iter().any(|&page| span.contains(page));
        let shortest = self.0.items().iter().filter(forgotten).min_by_key(|span| span.length()).copied();
        let closed = shortest.filter(|_| may_close()).and_then(|shortest| self.0.take(|&span| span == shortest));
        match closed {
            Some(span) => apply(Action::Close(span)),
            None => self.add(self.shortest_gap().unwrap_or(wanted), apply),
        }
        closed.is_some()
    }

    /// The shortest of what lies between two spans.
    fn shortest_gap(&self) -> Option<Span> {
        let after = |span: &Span| self.first_gap(Span { start: span.start, end: u64::MAX });
        self.0.items().iter().filter_map(after).min_by_key(|gap| gap.length())
    }

    /// Opens what is missing of `whole`, and adds it.
    #[inline(never)]
    fn add(&mut self, mut whole: Span, apply: &mut dyn FnMut(Action)) {
        let mut rest = whole;
        while !rest.is_empty()
            && let Some(gap) = self.first_gap(rest)
        {
            apply(Action::Open(gap));
            rest.start = gap.end;
        }
        while let Some(span) = self.0.take(|span| span.touches(whole)) {
            whole = whole.hull(span);
        }
        self.0.push(whole);
    }
}
