//! Keeps the data files of one mapping within the budget: what does not fit is dropped right behind the reader.
//!
//! The kernel would drop what was read longest ago. Of data that are read in the same order again and again and do not
//! fit, that is always what is needed next, and every epoch reads all of it anew. What is kept here is what came first;
//! what exceeds the budget passes through.

use super::feeder::Supply;
use super::files::Files;
use super::ledger::Ledger;
use crate::engine::Lane;
use crate::policy::budget::{Bound, Budget, LEAST};
use crate::policy::retention::{Holder, PageCache, Passage, Retention};
use crate::policy::stream::StreamId;
use crate::progress::{MappingId, ProgressSource};
use std::ops::{DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub struct Retainer {
    mapping: MappingId,
    holder: Holder,
    passage: Passage,
    cache: Cache,
}

/// The page cache as one session's readers of one file have it.
struct Cache {
    supply: Supply,
    files: Arc<Files>,
    ledger: Arc<Ledger>,
    /// Bytes of page cache that the user allows the files of the session.
    limit: u64,
}

impl Retainer {
    pub fn new(
        mapping: MappingId,
        reader: u64,
        supply: &Supply,
        files: &Arc<Files>,
        ledger: &Arc<Ledger>,
        limit: Option<u64>,
    ) -> Self {
        let holder = mapping.holder(reader);
        let cache = Cache {
            supply: supply.clone(),
            files: Arc::clone(files),
            ledger: Arc::clone(ledger),
            limit: limit.unwrap_or(u64::MAX),
        };
        Self { mapping, holder, passage: Passage::new(holder), cache }
    }

    /// Whether there is memory to fetch so many bytes ahead; if not, it is told that they were left to the program.
    pub fn can_afford(&self, bytes: u64) -> bool {
        let can = self.cache.files.budget() >= LEAST;
        if !can {
            self.cache.supply.account.unafforded.fetch_add(bytes, Relaxed);
        }
        can
    }

    /// Whether memory is so short that pages of our own take the place of the program's: nothing of the mapping is to wake us
    /// any more, and that is told.
    pub fn is_in_the_way(&self, mapping: &Range<u64>) -> bool {
        let is_so = self.cache.files.budget() < LEAST / 2;
        if is_so {
            self.cache.supply.account.unafforded.fetch_add(mapping.end - mapping.start, Relaxed);
        }
        is_so
    }

    /// A stream has got on: these extents, in reading order, are requested for it.
    pub fn advance(&mut self, stream: StreamId, extents: &[Range<u64>]) {
        let readers = self.cache.files.note_at_work(self.holder);
        self.passage.advance(stream, extents, readers, &self.cache);
        if self.passage.outgrows_memory(&self.cache) {
            self.cache.supply.file.watch();
        }
    }

    /// A stream is over.
    pub fn end(&mut self, stream: StreamId) {
        self.passage.end(stream, &self.cache);
    }

    /// Drops what all have let go of, and asks the reader to let go of the next, if there is too much.
    pub fn go_on(&mut self, source: &dyn ProgressSource) {
        if self.passage.awaits_release() {
            if !source.is_released(self.mapping) {
                return;
            }
            self.passage.released(&self.cache);
        }
        if let Some(part) = self.passage.go_on(&self.cache) {
            source.release(self.mapping, &part);
        }
    }

    /// Has the part fetched in this lane, in order, as far as there is room for it beside what others were promised.
    pub fn promise(&self, lane: Lane, part: Range<u64>) {
        let Cache { supply, files, ledger, .. } = &self.cache;
        // Its file system may not answer, and others wait for their turn.
        supply.file.prepare();
        let _turn = files.promises.turn();
        let room = self.passage.room(&self.cache);
        let part = part.start..part.end.min(part.start.saturating_add(room));
        if !part.is_empty() && self.can_afford(part.end - part.start) {
            supply.pool.request(lane, &supply.file, &supply.account, vec![part.clone()]);
            files.promises.note(lane, supply, ledger, part);
        }
    }

    /// The program has had the kernel drop this part.
    pub fn drop_as_told(&self, part: Range<u64>) {
        // Little can stay so often: what is said again and again waits in no queue.
        if self.cache.supply.file.was_dropped(&part) {
            let file = Arc::downgrade(&self.cache.supply.file);
            self.cache.files.sweeper.do_later(move || file.upgrade().iter().for_each(|file| file.drop_as_told(&part)));
        }
    }

    /// Of windows whose size is left to us.
    pub fn longest_window(&self) -> u64 {
        self.passage.longest_window(&self.cache)
    }
}

impl Drop for Retainer {
    fn drop(&mut self) {
        self.cache.files.forget(self.holder);
        self.passage.finish(&self.cache);
    }
}

impl PageCache for Cache {
    fn size(&self) -> u64 {
        if self.limit < self.files.budget() { self.ledger.size() } else { self.files.held.size() }
    }

    fn budget(&self) -> Budget {
        let (all, own) = self.files.promises.missing(&self.ledger);
        let held = &self.files.held;
        Budget {
            memory: Bound::of_memory(held.bytes(), all, self.files.budget(), held.crowding()),
            session: Bound { held: self.ledger.held(), promised: own, most: self.limit },
        }
    }

    fn kept(&self, part: &Range<u64>) -> u64 {
        self.supply.file.kept.bytes_within(part)
    }

    fn reconcile(&self) -> bool {
        if self.supply.file.begin_look() {
            let file = Arc::downgrade(&self.supply.file);
            self.files.sweeper.do_later(move || {
                if let Some(file) = file.upgrade() {
                    file.reconcile_next();
                }
            });
        }
        self.supply.file.has_missed()
    }

    fn drop_pages(&self, part: &Range<u64>) -> bool {
        self.supply.file.drop_pages(part, &self.supply.account)
    }

    fn drop_soon(&self, part: Range<u64>, near: u64) {
        let (file, account) = (Arc::downgrade(&self.supply.file), Arc::clone(&self.supply.account));
        let record = Arc::clone(&self.supply.file.record);
        self.files.sweeper.do_later(move || {
            let may_go = record.retention().may_go(&part, near, record.age());
            let is_gone = file.upgrade().is_some_and(|file| may_go && file.drop_pages(&part, &account));
            record.retention().dropped(&part, !is_gone);
        });
    }

    fn retention(&self) -> impl DerefMut<Target = Retention> {
        self.supply.file.retention()
    }

    fn now(&self) -> Duration {
        self.supply.file.age()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{DataFile, Pool, SentFile};

    const MIB: u64 = 1 << 20;

    /// In a session of its own, with a limit of 30 MiB.
    fn retainer(files: &Arc<Files>, file: &Arc<DataFile>, reader: u64) -> Retainer {
        let ledger = Arc::<Ledger>::default();
        let account = ledger.account_of(&file.record);
        let supply = Supply { file: Arc::clone(file), account, pool: Arc::<Pool>::default() };
        Retainer::new(MappingId { slot: 0, generation: 1 }, reader, &supply, files, &ledger, Some(30 * MIB))
    }

    /// A file of 64 MiB, of which nothing is cached.
    fn file(files: &Files) -> Arc<DataFile> {
        sized(files, 64 * MIB)
    }

    fn sized(files: &Files, bytes: u64) -> Arc<DataFile> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        Arc::new(DataFile::new(SentFile::new(file), None, None, &files.held).unwrap())
    }

    fn window(number: u64) -> Range<u64> {
        number * 8 * MIB..(number + 1) * 8 * MIB
    }

    /// What a reader comes to and is kept already needs no room.
    #[test]
    fn only_what_is_missing_needs_room() {
        let files = Arc::<Files>::default();
        let file = file(&files);
        let mut retainer = retainer(&files, &file, 0);
        file.kept.add(0..16 * MIB);
        retainer.advance(1, &[window(0)]);
        retainer.advance(1, &[window(1)]);
        assert!(!retainer.passage.is_short(&retainer.cache));
        retainer.advance(1, &[window(2)]);
        assert!(retainer.passage.is_short(&retainer.cache));
    }

    /// Shards, none of which outgrows the limit alone.
    #[test]
    fn files_outgrow_a_limit_together() {
        let files = Arc::<Files>::default();
        let shards = [20, 20].map(|mebibytes| sized(&files, mebibytes * MIB));
        let mut retainer = retainer(&files, &shards[0], 0);
        retainer.advance(1, &[window(0)]);
        let alone = retainer.longest_window();
        retainer.cache.ledger.account_of(&shards[1].record);
        assert!(alone > 8 * MIB && retainer.longest_window() == 8 * MIB);
        retainer.cache.supply.file.kept.add(0..8 * MIB);
        shards[1].kept.add(0..16 * MIB);
        assert!(retainer.passage.is_short(&retainer.cache), "there is room for the next window");
        drop(shards);
        assert!(retainer.longest_window() == alone && !retainer.passage.is_short(&retainer.cache));
    }

    /// A reader that ends leaves what another one comes to.
    #[test]
    fn the_last_reader_takes_what_is_too_much() {
        let files = Arc::<Files>::default();
        let file = file(&files);
        let (mut ahead, mut behind) = (retainer(&files, &file, 0), retainer(&files, &file, 1));
        behind.advance(1, &[window(0)]);
        (1..8).for_each(|number| ahead.advance(1, &[window(number)]));
        file.kept.add(0..64 * MIB);
        drop(ahead);
        assert_eq!(file.kept.within(&window(0)), [window(0)]);
        drop(behind);
        assert!(files.held.bytes() <= 30 * MIB);
    }

    /// Of the file nothing is cached: the kernel has evicted what was fetched.
    #[test]
    fn what_the_kernel_has_evicted_takes_no_room() {
        let files = Arc::<Files>::default();
        let file = file(&files);
        let mut retainer = retainer(&files, &file, 0);
        file.kept.add(0..64 * MIB);
        (0..3).for_each(|number| retainer.advance(1, &[window(number)]));
        assert!(retainer.passage.is_short(&retainer.cache));
        assert!(!retainer.cache.reconcile());
        files.sweeper.finish();
        assert_eq!(files.held.bytes(), 0);
        assert!(retainer.cache.reconcile() && !retainer.passage.is_short(&retainer.cache));
    }

    /// What waited to be dropped when the file was let go of is dropped in the next run.
    #[test]
    fn a_file_that_is_let_go_of_loses_no_part() {
        let files = Arc::<Files>::default();
        let file = file(&files);
        file.kept.add(0..8 * MIB);
        file.retention().leave((0, 0), window(0));
        assert_eq!(file.retention().droppable(0, Duration::ZERO), [window(0)]);
        let (record, supply) = (Arc::clone(&file.record), retainer(&files, &file, 0));
        // Before its job is done there is nobody left who has it open.
        let (go, wait) = crossbeam::channel::bounded::<()>(0);
        files.sweeper.do_later(move || _ = wait.recv());
        supply.cache.drop_soon(window(0), 0);
        drop((supply, file));
        drop(go);
        files.sweeper.finish();
        assert_eq!(record.retention().going(), 0);
    }

    /// The limit of a session is not for what others hold.
    #[test]
    fn a_limit_is_for_the_files_of_the_session() {
        let files = Arc::<Files>::default();
        let (own, foreign) = (file(&files), file(&files));
        let mut retainer = retainer(&files, &own, 0);
        foreign.kept.add(0..64 * MIB);
        retainer.advance(1, &[window(0)]);
        assert!(!retainer.passage.is_short(&retainer.cache));
        assert_eq!(retainer.passage.room(&retainer.cache), 22 * MIB);
        own.kept.add(0..24 * MIB);
        assert!(retainer.passage.is_short(&retainer.cache));
    }
}
