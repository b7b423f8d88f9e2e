//! What is noted for the report of one session by the threads that serve its readers.

use super::worker::lock;
use crate::engine::{Account, FileRecord, Held, Way};
use crate::options::Mode;
use crate::report::{EngineShare, FileReport};
use std::collections::HashMap;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex};

/// Troubles that one session keeps.
const TROUBLES: usize = 100;

/// Files that one session tells one by one.
const FILES: u64 = 1000;

#[derive(Default)]
pub struct Ledger {
    files: Mutex<Known>,
    /// Bytes of these files that were fetched, for whom it may be, and not dropped, as long as they are mapped.
    held: Arc<Held>,
    troubles: Mutex<Vec<String>>,
}

/// Every file that a reader of the session mapped, and what was done with it for the session.
#[derive(Default)]
struct Known {
    /// By the addresses of their records, which are kept.
    files: HashMap<usize, KnownFile>,
    /// How many there were, those included that are summed up.
    count: u64,
    /// All that are not among the first ones and are not mapped any more.
    sums: Option<FileReport>,
}

struct KnownFile {
    /// How many there were before it.
    number: u64,
    record: Arc<FileRecord>,
    account: Arc<Account>,
}

impl Ledger {
    /// What is done with this file, which someone has open, for the session.
    pub fn account_of(&self, record: &Arc<FileRecord>) -> Arc<Account> {
        let mut known = lock(&self.files);
        let address = Arc::as_ptr(record) as usize;
        if let Some(file) = known.files.get(&address) {
            return Arc::clone(&file.account);
        }
        if known.count >= FILES {
            known.sum_up();
        }
        record.kept.count_in(&self.held);
        let account = Arc::<Account>::default();
        let file = KnownFile { number: known.count, record: Arc::clone(record), account: Arc::clone(&account) };
        known.files.insert(address, file);
        known.count += 1;
        account
    }

    /// Bytes of these files that were fetched, for whom it may be, and not dropped, as long as they are mapped.
    pub fn held(&self) -> u64 {
        self.held.bytes()
    }

    /// Bytes of its files that are mapped.
    pub fn size(&self) -> u64 {
        self.held.size()
    }

    /// Something that kept a process from being served.
    pub fn note_trouble(&self, what: String) {
        let mut troubles = lock(&self.troubles);
        if troubles.len() < TROUBLES && !troubles.contains(&what) {
            troubles.push(what);
        }
    }

    /// For a session in this mode that wished for this engine: on each file, in the order in which they were mapped first, and on all others together.
    pub fn reports(&self, mode: Mode, wanted: Option<Way>) -> Vec<FileReport> {
        let mut known = lock(&self.files);
        known.sum_up();
        let mut files: Vec<_> = known.files.values().collect();
        files.sort_by_key(|file| file.number);
        files.into_iter().map(|file| file.report(mode, wanted)).chain(known.sums.clone()).collect()
    }

    /// The troubles so far; they are not told again.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.troubles))
    }
}

impl Known {
    /// Keeps only the sums of what is over, but for the first ones. Whoever fetches for a file has it open.
    fn sum_up(&mut self) {
        let sums = &mut self.sums;
        self.files.retain(|_, file| {
            let stays = file.number < FILES || file.record.kept.is_open();
            if !stays {
                // What was decided is not told of sums.
                sums.get_or_insert_with(FileReport::of_many).add(&file.report(Mode::On, None));
            }
            stays
        });
    }
}

impl KnownFile {
    /// For a session in this mode that wished for this engine.
    fn report(&self, mode: Mode, wanted: Option<Way>) -> FileReport {
        let (file, counters) = (&self.record, &self.account);
        let requested = counters.requested.load(Relaxed);
        let (fetched, cached) = (counters.fetched.load(Relaxed), counters.cached.load(Relaxed));
        let engines = file.engines();
        let decision = match (file.failures.lasting(), mode) {
            (Some(why), _) => format!("could not be read of late: {why}"),
            (None, Mode::Detect) => "watched only (--mode detect)".into(),
            (None, _) if requested == 0 && counters.unafforded.load(Relaxed) > 0 => "nothing pre-cached".into(),
            (None, _) if requested == 0 => "nothing pre-cached: no stream was found in the first faults".into(),
            (None, _) if fetched + cached == 0 && counters.lacked_threads.load(Relaxed) => {
                "nothing pre-cached: the system lets the optimizer start no thread (pids.max, RLIMIT_NPROC)".into()
            }
            (None, _) if fetched + cached == 0 => "nothing pre-cached: the mapping was gone before".into(),
            (None, _) if fetched == 0 => "nothing pre-cached: it was in the page cache already".into(),
            (None, _) => format!("pre-cached by {}", engines.first().map_or("nobody", |(engine, _)| engine)),
        };
        let decision = match counters.unafforded.load(Relaxed) {
            0 => decision,
            bytes => format!("{decision}; {} MiB were left to the program for want of memory", bytes.div_ceil(1 << 20)),
        };
        let decision = match wanted.filter(|&engine| file.is_without_effect(engine)) {
            Some(engine) => format!("{decision}; --engine {} has no effect on it", engine.name()),
            None => decision,
        };
        let decision = match file.failures.left() {
            Some((left, first)) if file.failures.lasting().is_none() => {
                format!(
                    "{decision}; chunks that could not be read and were left to the program: {left}, the first: {first}"
                )
            }
            _ => decision,
        };
        FileReport {
            path: file.path.clone(),
            files: 1,
            size: file.size,
            file_system: format!("{:#x}", file.file_system),
            read_ahead: file.read_ahead,
            residency: file.residency.name().into(),
            engines: engines.into_iter().map(|(engine, bytes)| EngineShare { engine: engine.into(), bytes }).collect(),
            requested,
            fetched,
            cached,
            dropped: counters.dropped.load(Relaxed),
            requests: counters.requests.load(Relaxed),
            most_in_flight: counters.most_in_flight.load(Relaxed),
            decision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{DataFile, SentFile};

    fn open(held: &Arc<Held>) -> DataFile {
        DataFile::new(SentFile::new(tempfile::tempfile().unwrap()), None, None, held).unwrap()
    }

    #[test]
    fn why_nothing_came_is_told() {
        let ledger = Ledger::default();
        let file = open(&Arc::default());
        let account = ledger.account_of(&file.record);
        let decision = || ledger.reports(Mode::On, None)[0].decision.clone();
        assert!(decision().contains("no stream was found"), "{}", decision());
        account.requested.store(1, Relaxed);
        assert!(decision().contains("the mapping was gone"), "{}", decision());
        account.lacked_threads.store(true, Relaxed);
        assert!(decision().contains("start no thread"), "{}", decision());
        account.cached.store(1, Relaxed);
        assert!(decision().contains("in the page cache already"), "{}", decision());
    }

    /// Those that are mapped are told one by one, and so are the first ones; the sums lose nothing.
    #[test]
    fn of_many_files_the_sums_are_told() {
        let (ledger, all) = (Ledger::default(), Arc::<Held>::default());
        let mut stays = None;
        for number in 0..FILES + 20 {
            let file = open(&all);
            let account = ledger.account_of(&file.record);
            assert!(Arc::ptr_eq(&account, &ledger.account_of(&file.record)));
            account.fetched.fetch_add(1 + number, Relaxed);
            account.most_in_flight.fetch_max(number, Relaxed);
            if number == FILES + 3 {
                stays = Some(file);
            }
        }
        let reports = ledger.reports(Mode::On, None);
        assert_eq!(reports.len() as u64, FILES + 1 + 1);
        assert!(
            reports[..FILES as usize].iter().enumerate().all(|(number, report)| report.fetched == 1 + number as u64)
        );
        let stays = stays.unwrap();
        assert!(reports.iter().any(|report| report.path == stays.path && report.fetched == FILES + 4));
        let sums = reports.last().unwrap();
        assert_eq!((sums.files, sums.most_in_flight), (19, FILES + 19));
        let count = FILES + 20;
        assert_eq!(reports.iter().map(|report| report.fetched).sum::<u64>(), count * (count + 1) / 2);
    }

    /// One that is mapped again after it was summed up has another entry, and is held once.
    #[test]
    fn a_file_that_comes_again_counts_once() {
        let (ledger, all) = (Ledger::default(), Arc::<Held>::default());
        let again = open(&all);
        again.kept.add(0..100);
        ledger.account_of(&again.record);
        lock(&ledger.files).files.clear();
        ledger.account_of(&again.record);
        assert_eq!(ledger.held(), 100);
        again.kept.remove(&(0..30));
        assert_eq!(ledger.held(), 70);
    }
}
