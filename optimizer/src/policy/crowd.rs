//! What others take of the page cache of a group while the kernel evicts in it.
//!
//! What an ordinary user has cached of another's file nobody tells: what is evicted of it counts as held, and what its reader
//! brings in itself meanwhile as nobody's. Both together exceed the limit, so the kernel goes on evicting, and what it takes is
//! always what is needed next. But it tells how much is cached in the group, and that it had to make room.

use std::time::Duration;

/// The kernel evicts as long as it has made room once in so long.
const LATELY: Duration = Duration::from_secs(10);

/// What a group tells, and what is known of the files in it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Bytes that the group has cached of files.
    pub cached: u64,
    /// How often the kernel had to make room in it so far.
    pub reclaims: u64,
    /// Bytes that were fetched and not dropped, of files that someone has open.
    pub held: u64,
    /// How often someone has closed one: what was held of it is somebody else's then, and the kernel's to evict first.
    pub closed: u64,
}

#[derive(Debug, Default)]
pub struct Crowd {
    last: Option<Seen>,
    /// When room was last made, as far as that was seen.
    pressed: Option<Duration>,
    /// The least that others had cached. They do not need it: it stays when room is made, or goes first.
    least: u64,
}

impl Crowd {
    /// Bytes that others have brought in and that the kernel evicts for. Pure: times come from the caller.
    pub fn note(&mut self, seen: Seen, now: Duration) -> u64 {
        let others = seen.cached.saturating_sub(seen.held);
        let last = self.last.replace(seen);
        let is_as_before = last.is_some_and(|last| last.closed == seen.closed);
        self.least = if is_as_before { self.least.min(others) } else { others };
        if last.is_some_and(|last| last.reclaims != seen.reclaims) {
            self.pressed = Some(now);
        }
        let is_pressed = self.pressed.is_some_and(|when| now.saturating_sub(when) < LATELY);
        if is_pressed { others - self.least } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(cached: u64, held: u64, reclaims: u64) -> Seen {
        Seen { cached, reclaims, held, closed: 0 }
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// A reader that has got ahead of what is fetched brings in what takes its room.
    #[test]
    fn what_comes_while_the_kernel_evicts_crowds() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.note(seen(110, 100, 7), SECOND), 0);
        assert_eq!(crowd.note(seen(150, 100, 7), SECOND), 0, "there is room");
        assert_eq!(crowd.note(seen(150, 100, 8), SECOND), 40);
        assert_eq!(crowd.note(seen(150, 60, 8), 5 * SECOND), 80);
        assert_eq!(crowd.note(seen(150, 60, 8), 12 * SECOND), 0, "nothing is evicted any more");
    }

    /// What lay there before is what the kernel evicts.
    #[test]
    fn what_was_there_before_makes_room() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.note(seen(1000, 0, 0), SECOND), 0);
        for step in 1..10 {
            assert_eq!(crowd.note(seen(1000, step * 100, step), SECOND), 0);
        }
        assert_eq!(crowd.note(seen(1000, 950, 11), SECOND), 0);
        assert_eq!(crowd.note(seen(1000, 900, 12), SECOND), 50);
    }

    /// What is held of a file that nobody reads any more becomes somebody else's.
    #[test]
    fn a_file_that_is_closed_crowds_nobody() {
        let mut crowd = Crowd::default();
        crowd.note(seen(1000, 990, 0), SECOND);
        let closed = Seen { closed: 1, ..seen(1000, 90, 1) };
        assert_eq!(crowd.note(closed, SECOND), 0);
        assert_eq!(crowd.note(Seen { held: 290, reclaims: 2, ..closed }, SECOND), 0);
    }

    /// The look at the group and that at what is held are not of one moment.
    #[test]
    fn more_may_be_held_than_is_cached() {
        let mut crowd = Crowd::default();
        crowd.note(seen(100, 100, 0), SECOND);
        assert_eq!(crowd.note(seen(100, 120, 1), SECOND), 0);
    }
}
