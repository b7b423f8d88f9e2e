//! What is cached of a data file: who is asked, what the kernel has evicted, and what is dropped.

use super::file::{Account, DataFile};
use super::held::Held;
use super::residency::{Residency, has_to_read};
use super::witness::Witness;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Bytes that are looked at in a millisecond or so.
const STRETCH: u64 = 64 << 20;

/// Who looks after what is cached of an open file.
#[derive(Default)]
pub(super) struct Cached {
    /// Where pages cannot be counted otherwise.
    witness: Option<Witness>,
    /// Whether someone looks what the kernel has evicted, and found any since that was asked last.
    is_looking: AtomicBool,
    has_missed: AtomicBool,
}

impl Cached {
    /// Of a file whose cached pages this tells.
    pub fn new(residency: Residency, held: &Arc<Held>) -> Self {
        Self { witness: (!residency.counts()).then(|| Witness::new(held)), ..Self::default() }
    }
}

impl DataFile {
    /// Forgets what the kernel has evicted of a part: it takes no room any more. Returns how many bytes that is.
    pub(super) fn reconcile(&self, part: Range<u64>) -> u64 {
        let kept = self.kept.within(&part).into_iter();
        let evicted: Vec<_> = kept.flat_map(|kept| self.evicted(&kept)).collect();
        for gone in &evicted {
            self.let_go(gone);
            self.kept.remove(gone);
            self.audiences.tell_gone(gone);
        }
        evicted.iter().map(|gone| gone.end - gone.start).sum()
    }

    /// What of a part that was cached is known not to be any more.
    pub(super) fn evicted(&self, part: &Range<u64>) -> Vec<Range<u64>> {
        match &self.cached.witness {
            Some(witness) => witness.evicted(part, self.request()),
            None => self.residency.evicted(&self.file, part, self.request()),
        }
    }

    /// The data outgrow memory: what the kernel evicts is to be known from now on.
    pub fn watch(&self) {
        self.cached.witness.iter().for_each(Witness::begin);
    }

    /// The chunk is to be read: what was seen of it before says nothing any more.
    pub(super) fn forget(&self, chunk: &Range<u64>) {
        self.let_go(chunk);
    }

    /// The chunk has been fetched. What of it has been dropped again meanwhile would be read a second time. What was cached before is
    /// nobody's to drop, and would stay mapped here as long as the file.
    pub(super) fn see(&self, chunk: &Range<u64>) {
        let Some(witness) = &self.cached.witness else { return };
        let is_kept = || self.kept.bytes_within(chunk) == chunk.end - chunk.start;
        if is_kept() {
            witness.see(&self.file, self.size, chunk);
            if !is_kept() {
                witness.let_go(chunk);
            }
        }
    }

    /// It is to leave the page cache: it is mapped here no longer. Whether anything of it was.
    fn let_go(&self, part: &Range<u64>) -> bool {
        self.cached.witness.as_ref().is_some_and(|witness| witness.let_go(part))
    }

    /// The program has had the kernel drop this part. Whether some of it has stayed, as it was mapped here, and is to go now.
    pub fn was_dropped(&self, part: &Range<u64>) -> bool {
        self.kept.remove(part);
        self.audiences.tell_gone(part);
        self.let_go(part)
    }

    /// Drops a part from the page cache, as far as nobody has it mapped.
    pub fn drop_as_told(&self, part: &Range<u64>) {
        // It is the program that was answered.
        let _ = drop_cached(&self.file, part);
    }

    /// Whether nobody looks at the next stretch yet: whoever asks does then.
    pub fn begin_look(&self) -> bool {
        !self.cached.is_looking.swap(true, Relaxed)
    }

    /// The same for the next stretch of the file at each call, all around.
    pub fn reconcile_next(&self) {
        let start = self.reconciled.fetch_add(STRETCH, Relaxed) % self.size.next_multiple_of(STRETCH).max(STRETCH);
        let stretch = start..start + STRETCH;
        let evicted = self.reconcile(stretch.clone());
        let cached = self.residency.count_for_little(&self.file, &stretch);
        let others = cached.map_or(0, |cached| cached.saturating_sub(self.kept.bytes_within(&stretch)));
        if self.residency.tells_evicted() {
            self.kept.note_evicted(start, evicted, others);
        }
        self.cached.has_missed.fetch_or(evicted > 0, Relaxed);
        self.cached.is_looking.store(false, Relaxed);
    }

    /// Whether anything of what is kept was found missing since this was asked last.
    pub fn has_missed(&self) -> bool {
        self.cached.has_missed.swap(false, Relaxed)
    }

    /// Whether all of a chunk is known to be cached.
    pub(super) fn is_cached(&self, chunk: &Range<u64>) -> bool {
        self.residency.is_cached(&self.file, chunk)
    }

    /// Whether the page that stands for a stretch (`Trust`) is cached.
    pub(super) fn keeps(&self, sample: u64) -> bool {
        let page = sample..sample + 1;
        let is_seen = self.cached.witness.as_ref().is_some_and(|witness| witness.is_cached(&page));
        let is_cached = is_seen || self.residency.is_page_cached(&self.file, sample);
        if !is_cached {
            self.trust.disappoint();
        }
        is_cached
    }

    /// The parts of a chunk that are not known to be cached.
    pub(super) fn lacking(&self, chunk: &Range<u64>) -> Vec<Range<u64>> {
        let lacking = match &self.cached.witness {
            Some(witness) if self.residency == Residency::Unknown => witness.lacking(chunk),
            _ => self.residency.lacking(&self.file, chunk),
        };
        // Else whoever reads it will tell.
        if self.residency != Residency::Unknown || lacking.is_empty() {
            self.trust.note(chunk.end - chunk.start, lacking.is_empty());
        }
        lacking
    }

    /// Whether a chunk that has been brought in is not where a mapping finds it. Where nobody tells, its last page is mapped.
    pub(super) fn is_missing(&self, chunk: &Range<u64>) -> bool {
        if self.residency != Residency::Unknown {
            return !self.is_cached(chunk);
        }
        has_to_read(&self.file, chunk.end.saturating_sub(1))
    }

    /// Drops what was fetched of this part from the page cache, as far as nobody has it mapped (posix_fadvise(2), which
    /// succeeds whatever stays). Whether nothing of it is left.
    pub fn drop_pages(&self, part: &Range<u64>, account: &Account) -> bool {
        self.let_go(part);
        for kept in self.kept.within(part) {
            if drop_cached(&self.file, &kept).is_err() {
                continue;
            }
            for gone in self.residency.missing(&self.file, &kept, self.request()) {
                account.dropped.fetch_add(self.kept.remove(&gone), Relaxed);
                self.audiences.tell_gone(&gone);
            }
        }
        self.kept.within(part).is_empty()
    }
}

/// Has the kernel drop what is cached of a part, as far as nobody has it mapped.
fn drop_cached(file: &File, part: &Range<u64>) -> nix::Result<()> {
    let (offset, length) = (part.start as i64, (part.end - part.start) as i64);
    posix_fadvise(file, offset, length, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SentFile;
    use std::io::Write;

    /// What the kernel has taken is no longer held, and counts as evicted.
    #[test]
    fn what_is_missing_was_evicted() {
        const SIZE: u64 = 1 << 20;
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&vec![1; SIZE as usize]).unwrap();
        file.sync_all().unwrap();
        let held = Arc::new(Held::default());
        let data = DataFile::new(SentFile::new(file.try_clone().unwrap()), None, None, &held).unwrap();
        if data.residency != Residency::CacheStat {
            return; // Nobody tells, or only of what is mapped.
        }
        data.kept.add(0..SIZE);
        data.reconcile_next();
        assert_eq!((held.bytes(), held.displaced()), (SIZE, 0));
        drop_cached(&file, &(0..SIZE)).unwrap();
        data.reconcile_next();
        assert_eq!((held.bytes(), held.displaced(), held.known()), (0, SIZE, 0));
    }
}
