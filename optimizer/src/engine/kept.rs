//! What was fetched of a file and has not been dropped: only this may ever be dropped.

use super::held::Held;
use super::ranges::Ranges;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

#[derive(Default)]
struct Parts {
    parts: Ranges,
    /// Bytes that are cached and were not fetched here, by the stretch of the file, and their sum.
    others_in: BTreeMap<u64, u64>,
    others: u64,
    /// Bytes that the kernel has evicted, and those of them that the others may have taken the place of.
    evicted: u64,
    crowding: u64,
    /// The file's, and who has it open.
    size: u64,
    users: usize,
    /// Where the bytes count as held while someone has: with those of all files, and with those of each session's.
    counters: Vec<Weak<Held>>,
}

impl Parts {
    /// Changes what the file counts in, if someone has it open.
    fn count(&self, change: impl Fn(&Held)) {
        if self.users > 0 {
            self.counters.iter().filter_map(Weak::upgrade).for_each(|held| change(&held));
        }
    }

    fn enter(&self, held: &Held) {
        held.bytes.fetch_add(self.parts.bytes(), Relaxed);
        held.crowding.fetch_add(self.crowding, Relaxed);
        held.displaced.fetch_add(self.displaced(), Relaxed);
        held.size.fetch_add(self.size, Relaxed);
    }

    fn leave(&self, held: &Held) {
        held.bytes.fetch_sub(self.parts.bytes(), Relaxed);
        held.crowding.fetch_sub(self.crowding, Relaxed);
        held.displaced.fetch_sub(self.displaced(), Relaxed);
        held.size.fetch_sub(self.size, Relaxed);
    }

    /// Bytes that the kernel has evicted lately, beyond what is known to crowd.
    fn displaced(&self) -> u64 {
        self.evicted - self.crowding
    }
}

/// The parts of one file.
pub struct Kept {
    parts: Mutex<Parts>,
    /// What is held of all files.
    all: Weak<Held>,
}

impl Kept {
    /// Of a file of so many bytes. Where it `is_told` to nobody what the kernel evicts, all of it may have been.
    pub fn new(size: u64, held: &Arc<Held>, is_told: bool) -> Self {
        let all = Arc::downgrade(held);
        let evicted = if is_told { 0 } else { size };
        Self { parts: Mutex::new(Parts { size, evicted, counters: vec![all.clone()], ..Parts::default() }), all }
    }

    /// Whether fetching is to wait until something has left, of whatever file.
    pub fn lacks_room(&self) -> bool {
        self.all.upgrade().is_some_and(|held| held.lacks_room())
    }

    /// What is held of this file counts here, too, from now on.
    pub fn count_in(&self, held: &Arc<Held>) {
        let parts = &mut *self.parts();
        parts.counters.retain(|known| known.strong_count() > 0);
        if parts.counters.iter().any(|known| known.as_ptr() == Arc::as_ptr(held)) {
            return;
        }
        parts.counters.push(Arc::downgrade(held));
        if parts.users > 0 {
            parts.enter(held);
        }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Someone has the file open.
    pub fn open(&self) {
        let mut parts = self.parts();
        parts.users += 1;
        if parts.users == 1 {
            parts.count(|held| parts.enter(held));
        }
    }

    /// Someone has it open no longer. What is kept of a file that nobody reads is the kernel's to drop before anything
    /// else, as it was used longest ago: it takes no one's room.
    pub fn close(&self) {
        let mut parts = self.parts();
        if parts.users == 1 {
            parts.count(|held| parts.leave(held));
        }
        parts.users = parts.users.saturating_sub(1);
    }

    /// Whether someone has the file open.
    pub fn is_open(&self) -> bool {
        self.parts().users > 0
    }

    /// This has been fetched.
    pub fn add(&self, part: Range<u64>) {
        let state = &mut *self.parts();
        let added = state.parts.add(part);
        state.count(|held| _ = held.bytes.fetch_add(added, Relaxed));
        self.all.upgrade().iter().for_each(|held| _ = held.remembered.fetch_add(added, Relaxed));
    }

    /// The kernel has evicted so many bytes of the stretch at `start`, and so many are known to be cached there that were not fetched
    /// here.
    pub fn note_evicted(&self, start: u64, evicted: u64, others: u64) {
        let state = &mut *self.parts();
        let before = (state.crowding, state.displaced());
        state.others = state.others + others - state.others_in.insert(start, others).unwrap_or(0);
        // Where nothing is evicted any more, that is forgotten round by round.
        state.evicted =
            if start == 0 { state.evicted - state.evicted / 16 } else { state.evicted }.saturating_add(evicted);
        state.crowding = state.others.min(state.evicted);
        let now = (state.crowding, state.displaced());
        state.count(|held| {
            held.crowding.fetch_add(now.0.wrapping_sub(before.0), Relaxed);
            held.displaced.fetch_add(now.1.wrapping_sub(before.1), Relaxed);
        });
    }

    /// What there is within a range.
    pub fn within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        self.parts().parts.within(range)
    }

    /// The first part.
    pub fn first(&self) -> Option<Range<u64>> {
        self.parts().parts.first()
    }

    /// Bytes of that.
    pub fn bytes_within(&self, range: &Range<u64>) -> u64 {
        self.within(range).iter().map(|part| part.end - part.start).sum()
    }

    /// This has been dropped. Returns how many bytes of it were kept until now: of several that drop it, one hears so.
    pub fn remove(&self, range: &Range<u64>) -> u64 {
        let state = &mut *self.parts();
        let removed = state.parts.remove(range);
        state.count(|held| {
            held.bytes.fetch_sub(removed, Relaxed);
            held.left.fetch_add(removed, Relaxed);
        });
        self.all.upgrade().iter().for_each(|held| _ = held.remembered.fetch_sub(removed, Relaxed));
        removed
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let parts = self.parts();
        parts.count(|held| parts.leave(held));
        self.all.upgrade().iter().for_each(|held| _ = held.remembered.fetch_sub(parts.parts.bytes(), Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    /// Of several readers that let go of a part at the same time, one drops it.
    #[test]
    fn what_several_drop_at_once_goes_once() {
        const THREADS: usize = 4;
        const PARTS: u64 = 2000;
        let held = Arc::new(Held::default());
        let kept = Kept::new(1000, &held, true);
        kept.open();
        for round in 0..20 {
            (0..PARTS).for_each(|part| kept.add(part * 10..part * 10 + 7));
            let (together, dropped) = (Barrier::new(THREADS), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        together.wait();
                        let removed = |part| kept.remove(&(part * 10 + 1..part * 10 + 6));
                        dropped.fetch_add((0..PARTS).map(removed).sum::<u64>(), Relaxed);
                    });
                }
            });
            assert_eq!((held.bytes(), dropped.into_inner()), (PARTS * 2, PARTS * 5), "round {round}");
            kept.remove(&(0..PARTS * 10));
            assert_eq!((held.bytes(), kept.within(&(0..u64::MAX))), (0, Vec::new()), "round {round}");
        }
    }

    /// What is kept of a file that nobody reads takes no room, until someone does.
    #[test]
    fn files_that_are_closed_hold_nothing() {
        let held = Arc::new(Held::default());
        let kept = Kept::new(1000, &held, true);
        kept.open();
        kept.add(0..100);
        kept.open();
        kept.close();
        assert!(held.bytes() == 100 && kept.is_open());
        kept.close();
        kept.add(200..300);
        kept.remove(&(0..10));
        assert!(held.bytes() == 0 && !kept.is_open());
        kept.open();
        assert_eq!((held.bytes(), held.known(), held.displaced()), (190, 190, 0));
        kept.note_evicted(0, 30, 10);
        assert_eq!((held.bytes(), held.known(), held.displaced()), (190, 200, 20));
        kept.close();
        assert_eq!((held.bytes(), held.known(), held.displaced()), (0, 190, 0), "no room, and no other file's");
        drop(kept);
        assert_eq!((held.bytes(), held.known()), (0, 0));
    }

    /// What others brought in takes room as far as fetched bytes have been evicted for it, and less of it once nothing is any more.
    #[test]
    fn others_take_what_has_been_evicted() {
        let held = Arc::new(Held::default());
        let kept = Kept::new(1000, &held, true);
        kept.open();
        kept.note_evicted(0, 0, 700);
        assert_eq!(held.crowding(), 0);
        kept.note_evicted(500, 160, 100);
        assert_eq!((held.crowding(), held.displaced()), (160, 0));
        kept.note_evicted(500, 5000, 100);
        assert_eq!((held.crowding(), held.displaced()), (800, 4360));
        kept.note_evicted(500, 0, 0);
        assert_eq!((held.crowding(), held.displaced()), (700, 4460));
        kept.close();
        assert_eq!(held.crowding(), 0);
        kept.open();
        (0..60).for_each(|_| kept.note_evicted(0, 0, 700));
        assert!(held.crowding() < 300, "{}", held.crowding());
        drop(kept);
        assert_eq!(held.crowding(), 0);
    }

    /// Where evictions are told to nobody they are not ruled out.
    #[test]
    fn what_is_not_told_may_be() {
        let held = Arc::new(Held::default());
        let kept = Kept::new(1000, &held, false);
        kept.open();
        assert_eq!((held.displaced(), held.crowding()), (1000, 0));
        kept.close();
        assert_eq!(held.displaced(), 0);
    }

    /// Each session has a sum of its own, of the files that it has mapped.
    #[test]
    fn sessions_count_their_files() {
        let (all, session) = (Arc::new(Held::default()), Arc::new(Held::default()));
        let files = [Kept::new(1000, &all, true), Kept::new(500, &all, true)];
        files.iter().for_each(Kept::open);
        files.iter().for_each(|kept| kept.add(0..100));
        files[0].count_in(&session);
        files[0].count_in(&session);
        assert_eq!((all.bytes(), session.bytes()), (200, 100));
        files.iter().for_each(|kept| _ = kept.remove(&(50..200)));
        assert_eq!((all.bytes(), session.bytes()), (100, 50));
        files[0].close();
        files[1].count_in(&session);
        assert_eq!((all.bytes(), session.bytes()), (50, 50));
        drop(session);
        files[1].add(50..60);
        assert_eq!(all.bytes(), 60);
    }
}
