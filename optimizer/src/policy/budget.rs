//! What there is of the page cache for data files: memory bounds what all of them take, the user what those of a session
//! take.

/// With less than this for the data files nothing is fetched ahead. Requests in flight cannot be reclaimed, and what keeps the
/// program going, its libraries and read-ahead of its own, has to fit beside two windows: it would be evicted for them.
pub const LEAST: u64 = 16 << 20;

/// One bound on page cache, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Bytes that were fetched and not dropped.
    pub held: u64,
    /// Bytes that programs have said that they will need, and that are still to come.
    pub promised: u64,
    /// Bytes that there may be.
    pub most: u64,
}

impl Bound {
    /// That of a memory with room for `most` bytes of the files, of which `crowding` are taken by what their readers have brought in
    /// themselves and come to as often: the kernel makes room for it. Windows need room, too: it gets half at most.
    pub fn of_memory(held: u64, promised: u64, most: u64, crowding: u64) -> Self {
        Self { held, promised, most: most - crowding.min(most / 2) }
    }
}

/// What holds for one file: both bounds at once.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub memory: Bound,
    pub session: Bound,
}

impl Budget {
    /// Bytes that the data files may take.
    pub fn bytes(&self) -> u64 {
        self.memory.most.min(self.session.most)
    }

    /// Bytes that may be fetched beside those that are `coming`, and those that were promised, without anything being dropped
    /// for them.
    pub fn room(&self, coming: u64) -> u64 {
        let taken = |bound: &Bound| bound.held.saturating_add(bound.promised).saturating_add(coming);
        self.bounds().map(|bound| bound.most.saturating_sub(taken(&bound))).min().unwrap_or(0)
    }

    /// Whether there is no room for so many bytes once what is `leaving` has left. What is promised makes itself room when it
    /// comes, which may be never.
    pub fn is_short_of(&self, needed: u64, leaving: u64) -> bool {
        self.bounds().any(|bound| bound.held.saturating_sub(leaving).saturating_add(needed) > bound.most)
    }

    fn bounds(&self) -> impl Iterator<Item = Bound> {
        [self.memory, self.session].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(memory: (u64, u64), session: (u64, u64)) -> Budget {
        let bound = |(held, most)| Bound { held, promised: 0, most };
        Budget { memory: bound(memory), session: bound(session) }
    }

    #[test]
    fn both_bounds_hold() {
        let tight_memory = budget((90, 100), (20, u64::MAX));
        assert_eq!((tight_memory.bytes(), tight_memory.room(4)), (100, 6));
        assert!(!tight_memory.is_short_of(10, 0) && tight_memory.is_short_of(11, 0));
        let tight_session = budget((90, 1000), (20, 30));
        assert_eq!((tight_session.bytes(), tight_session.room(4)), (30, 6));
        assert!(!tight_session.is_short_of(10, 0) && tight_session.is_short_of(11, 0));
    }

    #[test]
    fn what_is_leaving_makes_room() {
        assert!(!budget((100, 100), (0, u64::MAX)).is_short_of(30, 30));
        assert!(budget((100, 100), (0, u64::MAX)).is_short_of(31, 30));
    }

    #[test]
    fn what_is_promised_is_nobodys_room() {
        let mut budget = budget((20, 100), (20, u64::MAX));
        budget.memory.promised = 50;
        assert_eq!(budget.room(4), 26);
        assert!(!budget.is_short_of(80, 0) && budget.is_short_of(81, 0));
    }

    /// A limit that has been halved is held by twice as much; without one, no sum overflows.
    #[test]
    fn any_numbers_do() {
        assert_eq!(budget((200, 100), (0, u64::MAX)).room(0), 0);
        assert_eq!(budget((u64::MAX, u64::MAX), (0, u64::MAX)).room(u64::MAX), 0);
        assert!(!budget((5, u64::MAX), (5, u64::MAX)).is_short_of(u64::MAX, 0));
    }
}
