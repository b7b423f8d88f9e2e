//! What programs have said that they will need, and what of it is not there yet: the memory for it is nobody else's.

use super::feeder::Supply;
use super::ledger::Ledger;
use super::worker::lock;
use crate::engine::{FileRecord, Lane, Pool};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// What one lane was asked for.
struct Promise {
    lane: Lane,
    file: Arc<FileRecord>,
    pool: Weak<Pool>,
    /// Of the session.
    ledger: Weak<Ledger>,
    /// In the order in which they are queued.
    parts: Vec<Range<u64>>,
}

#[derive(Default)]
pub struct Promises {
    made: Mutex<Vec<Promise>>,
    turn: Mutex<()>,
}

impl Promises {
    /// As long as this is held, nobody else looks for room and promises it.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// The part has been requested in this lane, behind what is queued there.
    pub fn note(&self, lane: Lane, supply: &Supply, ledger: &Arc<Ledger>, part: Range<u64>) {
        let mut made = lock(&self.made);
        if let Some(promise) = made.iter_mut().find(|promise| promise.lane == lane) {
            return promise.parts.push(part);
        }
        let (file, pool) = (Arc::clone(&supply.file.record), Arc::downgrade(&supply.pool));
        made.push(Promise { lane, file, pool, ledger: Arc::downgrade(ledger), parts: vec![part] });
    }

    /// Bytes that are still to come: of all, and for this session. What is queued several times comes once; what is in
    /// flight, which is little, is not counted.
    pub fn missing(&self, session: &Arc<Ledger>) -> (u64, u64) {
        let mut made = lock(&self.made);
        made.retain_mut(Promise::is_outstanding);
        let is_own = |promise: &&Promise| promise.ledger.as_ptr() == Arc::as_ptr(session);
        (missing_of(made.iter()), missing_of(made.iter().filter(is_own)))
    }
}

impl Promise {
    /// Whether something of it is queued yet. What is not has come, or nobody wants it any more.
    fn is_outstanding(&mut self) -> bool {
        let queued = self.pool.upgrade().map_or(0, |pool| pool.queued(self.lane).bytes);
        keep_last(&mut self.parts, queued);
        !self.parts.is_empty()
    }
}

/// What is left of a queue that goes from its front when so many bytes are.
fn keep_last(parts: &mut Vec<Range<u64>>, mut bytes: u64) {
    let mut first = parts.len();
    while bytes > 0 && first > 0 {
        first -= 1;
        let part = &mut parts[first];
        part.start = part.start.max(part.end.saturating_sub(bytes));
        bytes -= part.end - part.start;
    }
    parts.drain(..first);
}

/// Bytes of all these parts that were not fetched yet.
fn missing_of<'a>(promises: impl Iterator<Item = &'a Promise>) -> u64 {
    let in_file = |promise: &'a Promise| promise.parts.iter().map(|part| (&*promise.file, part.clone()));
    let mut parts: Vec<_> = promises.flat_map(in_file).collect();
    parts.sort_by_key(|(file, part)| (std::ptr::from_ref(*file), part.start));
    let (mut missing, mut last) = (0, None);
    for (file, part) in parts {
        // Up to here it has been counted.
        let end = last.filter(|(other, _)| std::ptr::eq::<FileRecord>(*other, file)).map_or(0, |(_, end)| end);
        let part = part.start.max(end)..part.end.max(end);
        missing += part.end - part.start - file.kept.bytes_within(&part);
        last = Some((file, part.end));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{DataFile, SentFile};
    use crate::progress::MappingId;
    use crate::service::files::Files;
    use crate::service::retainer::Retainer;
    use std::sync::Barrier;
    use std::sync::atomic::Ordering::Relaxed;

    const MIB: u64 = 1 << 20;
    const SIZE: u64 = 640 * MIB;
    /// Less than any machine has.
    const LIMIT: u64 = 256 * MIB;
    /// In flight.
    const FLYING: u64 = 4 * MIB;
    const LANE: u32 = u32::MAX;

    /// A file of 640 MiB, of which nothing is cached.
    fn supply(files: &Files, ledger: &Ledger, pool: &Arc<Pool>) -> Supply {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        let file = Arc::new(DataFile::new(SentFile::new(file), None, None, &files.held).unwrap());
        let account = ledger.account_of(&file.record);
        Supply { file, account, pool: Arc::clone(pool) }
    }

    /// Bytes that have come meanwhile, or are about to.
    fn come(supplies: &[Supply]) -> u64 {
        let accounts = supplies.iter().map(|supply| &supply.account);
        accounts.map(|account| account.fetched.load(Relaxed) + account.cached.load(Relaxed)).sum::<u64>() + FLYING
    }

    fn retainer(files: &Arc<Files>, ledger: &Arc<Ledger>, reader: u64, supply: &Supply, limit: u64) -> Retainer {
        Retainer::new(MappingId { slot: 0, generation: 1 }, reader, supply, files, ledger, Some(limit))
    }

    /// Eight processes populate a mapping each, at the same moment.
    #[test]
    fn no_memory_is_promised_twice() {
        let (files, ledger, pool) = (Arc::<Files>::default(), Arc::<Ledger>::default(), Arc::<Pool>::default());
        let supplies: Vec<_> = (0..8).map(|_| supply(&files, &ledger, &pool)).collect();
        let requested = || supplies.iter().map(|supply| supply.account.requested.load(Relaxed)).sum::<u64>();
        let together = Barrier::new(supplies.len());
        let promise = |reader| {
            let retainer = retainer(&files, &ledger, reader, &supplies[reader as usize], LIMIT);
            together.wait();
            retainer.promise((reader, 0, LANE), 0..SIZE);
        };
        for round in 0..200 {
            let before = requested();
            std::thread::scope(|scope| (0..8).for_each(|reader| drop(scope.spawn(move || promise(reader)))));
            let requested = requested() - before;
            let least = LIMIT - come(&supplies).min(LIMIT);
            assert!(
                (least..=LIMIT + FLYING).contains(&requested),
                "{} MiB are requested in round {round}",
                requested / MIB
            );
            pool.forget(|_| true);
            assert_eq!(files.promises.missing(&ledger), (0, 0));
        }
    }

    /// Several of one file want the same bytes, and another session has its own limit.
    #[test]
    fn what_is_promised_to_several_comes_once() {
        let (files, pool) = (Arc::<Files>::default(), Arc::<Pool>::default());
        let (ledger, other) = (Arc::<Ledger>::default(), Arc::<Ledger>::default());
        let supply = supply(&files, &ledger, &pool);
        for reader in 0..4 {
            retainer(&files, &ledger, reader, &supply, u64::MAX)
                .promise((reader, 0, LANE), reader * 64 * MIB..(4 + reader) * 64 * MIB);
        }
        let assert_missing = |mebibytes| {
            let (all, own) = files.promises.missing(&ledger);
            let least = mebibytes * MIB - come(std::slice::from_ref(&supply)).min(mebibytes * MIB);
            assert!(
                all == own && (least..=mebibytes * MIB).contains(&all),
                "{} of {mebibytes} MiB are missing",
                all / MIB
            );
        };
        assert_missing(448);
        assert_eq!(files.promises.missing(&other).1, 0);
        supply.file.kept.add(384 * MIB..SIZE);
        assert_missing(384);
        pool.forget(|(reader, _, _)| reader == 0);
        assert_missing(320);
    }

    #[test]
    fn a_queue_goes_from_its_front() {
        let left = |bytes| {
            let mut parts = vec![0..10, 50..60, 20..30];
            keep_last(&mut parts, bytes);
            parts
        };
        assert_eq!(left(30), [0..10, 50..60, 20..30]);
        assert_eq!(left(14), [56..60, 20..30]);
        assert_eq!(left(11), [59..60, 20..30]);
        assert!(left(0).is_empty());
        assert_eq!(left(99), [0..10, 50..60, 20..30]);
    }
}
