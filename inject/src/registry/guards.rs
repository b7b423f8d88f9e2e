//! Where guards may lie in a mapping: to look for them where none can be costs as much as to open pages.

use crate::curtain::Span;
use core::sync::atomic::{AtomicU64, Ordering::*};
use precache_contract::PAGE;

/// From the first page that got one to the last. All zeros: none.
pub struct Guards {
    /// The complement of the first one's offset, so that of both words the larger counts.
    before: AtomicU64,
    end: AtomicU64,
}

impl Guards {
    pub const fn new() -> Self {
        Self { before: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// To be said before a guard is placed on the page at `at`: whoever meets it then finds it.
    pub fn note(&self, at: u64) {
        self.before.fetch_max(!at, SeqCst);
        self.end.fetch_max(at + PAGE, SeqCst);
    }

    /// None lies there any more, and nobody else places one.
    pub fn forget(&self) {
        self.before.store(0, SeqCst);
        self.end.store(0, SeqCst);
    }

    pub fn may_lie_in(&self, span: Span) -> bool {
        !self.before.load(SeqCst) < span.end && span.start < self.end.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_sought_from_the_first_to_the_last() {
        let guards = Guards::new();
        let may_lie = |start: u64, end: u64| guards.may_lie_in(Span { start: start * PAGE, end: end * PAGE });
        assert!(!may_lie(0, 1000));
        guards.note(20 * PAGE);
        assert!(may_lie(0, 1000) && may_lie(20, 21) && !may_lie(0, 20) && !may_lie(21, 1000));
        guards.note(40 * PAGE);
        guards.note(0);
        assert!(may_lie(0, 1) && may_lie(30, 31) && may_lie(40, 41) && !may_lie(41, 1000));
        guards.forget();
        assert!(!may_lie(0, 1000));
    }
}
