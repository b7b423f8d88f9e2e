//! The thread of one reader: waits for its progress and feeds it.

use super::feeder::{Feeder, Supply, Whose};
use super::files::Files;
use super::ledger::Ledger;
use super::retainer::Retainer;
use crate::engine::{Account, Audience, DataFile, FileRecord, Pool, SentFile};
use crate::options::{Populate, RunOptions};
use crate::progress::checkpoints::{Checkpoints, Listener, Registration, Shared, Tally};
use crate::progress::{MappingId, Progress, ProgressSource};
use crossbeam::channel::Receiver;
use precache_contract::ring::What;
use precache_contract::segment::Method;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Progress of mappings that have not been announced yet is kept for them, up to so much.
const EARLY: usize = 1024;

/// News of a mapping that nobody has announced are kept so long, while it may still be. Of an orphan's, whose parents had closed the
/// file, nobody can tell.
const PATIENCE: Duration = Duration::from_secs(5);

/// Mappings of one process that a report lists.
const USES: usize = 256;

/// A mapping and what became of it, for the report.
#[derive(Clone)]
pub struct Use {
    pub(super) id: MappingId,
    pub(super) method: Option<Method>,
    pub record: Arc<FileRecord>,
    pub(super) account: Arc<Account>,
    /// Alive as long as the mapping.
    pub(super) file: Weak<DataFile>,
    pub(super) pool: Weak<Pool>,
    pub(super) tally: Tally,
    pub(super) streams: usize,
    pub(super) faults_before_request: Option<u32>,
}

/// A mapping to be fed from now on.
pub struct Announcement {
    pub id: MappingId,
    pub source: Source,
    /// None: it is gone already, and only reported.
    pub registration: Option<Registration>,
}

/// Where the mapped file comes from.
pub enum Source {
    /// The reader sent its descriptor: the file system has to be asked about it, which may take long.
    Sent(SentFile),
    /// A parent's mapping.
    Known(Supply),
}

/// A mapping whose file the thread has not looked at yet: what a child that is forked meanwhile inherits.
pub struct Unresolved {
    pub id: MappingId,
    pub file: SentFile,
}

/// The thread's side of a reader.
pub struct Worker {
    pub pid: i32,
    pub token: u64,
    pub session: u64,
    pub options: RunOptions,
    pub files: Arc<Files>,
    pub ledger: Arc<Ledger>,
    pub shared: Arc<Shared>,
    pub uses: Arc<Mutex<Vec<Use>>>,
    pub unresolved: Arc<Mutex<Vec<Unresolved>>>,
    pub announcements: Receiver<Announcement>,
}

impl Worker {
    /// Until the reader has died and its last trips are taken.
    pub fn work(self) {
        let mut source = Checkpoints::new(Arc::clone(&self.shared));
        let mut feeders: HashMap<MappingId, Feeder> = HashMap::new();
        let mut early: Vec<(Instant, Progress)> = Vec::new();
        let mut news = Vec::new();
        let mut alive = true;
        while alive {
            alive = source.wait(&mut news, (!early.is_empty()).then_some(PATIENCE));
            while let Ok(announcement) = self.announcements.try_recv() {
                let id = announcement.id;
                self.take_up(announcement, &mut feeders, &source);
                lock(&self.unresolved).retain(|unresolved| unresolved.id != id);
            }
            let now = Instant::now();
            let batch: Vec<_> = early.drain(..).chain(news.drain(..).map(|progress| (now, progress))).collect();
            for (number, (since, progress)) in batch.iter().copied().enumerate() {
                match feeders.get_mut(&progress.mapping) {
                    Some(feeder) => match progress.what {
                        What::Trip => {
                            let mut later = batch.iter().skip(number + 1);
                            let is_next =
                                |later: &Progress| later.mapping == progress.mapping && later.what == What::Trip;
                            let have_come = later.any(|(_, later)| is_next(later));
                            feeder.observe(progress.offset, have_come, &source);
                        }
                        What::Advice(advice, length) => {
                            let part = progress.offset..progress.offset.saturating_add(length);
                            feeder.advise(advice, part, &source);
                        }
                    },
                    None if !source.is_mapped(progress.mapping) || source.is_let_go(progress.mapping) => {}
                    // All that was announced before it died has been taken up.
                    None if !alive || now.duration_since(since) >= PATIENCE => {
                        self.ledger.note_trouble(format!(
                            "nobody could tell the file of a mapping of process {}: it goes on as without precache",
                            self.pid
                        ));
                        source.let_go(progress.mapping);
                    }
                    None if early.len() < EARLY => early.push((since, progress)),
                    None => {
                        self.shared.counters().lost.fetch_add(1, Relaxed);
                    }
                }
            }
            self.keep_count(&feeders);
            feeders.retain(|id, _| source.is_mapped(*id));
        }
    }

    /// Begins to feed a mapping, if the kernel shows it as the reader registered it.
    fn take_up(&self, announcement: Announcement, feeders: &mut HashMap<MappingId, Feeder>, source: &Checkpoints) {
        let Announcement { id, source: file, registration } = announcement;
        // A forked child announces what its parent's announcement told already.
        if feeders.contains_key(&id) {
            return;
        }
        let Some(supply) = self.resolve(file) else { return source.let_go(id) };
        let file = Arc::clone(&supply.file);
        let what = Use {
            id,
            method: registration.as_ref().and_then(|registration| registration.method),
            record: Arc::clone(&file.record),
            account: Arc::clone(&supply.account),
            file: Arc::downgrade(&file),
            pool: Arc::downgrade(&supply.pool),
            tally: Tally::default(),
            streams: 0,
            faults_before_request: None,
        };
        let mut uses = lock(&self.uses);
        if uses.len() >= USES {
            // The report of a program with so many mappings lacks those that were over first.
            let over = uses.iter().position(|used| !source.is_mapped(used.id)).unwrap_or(0);
            uses.remove(over);
        }
        uses.push(what);
        drop(uses);
        // Of a program that maps and unmaps all the time, most are over before they are looked at.
        let Some(Registration { extent, address, .. }) = registration.filter(|_| source.is_mapped(id)) else { return };
        if !is_in_maps(self.pid, &address, file.identity.inode) {
            source.let_go(id);
            return;
        }
        let listener: Option<Arc<dyn Audience>> = match self.options.populate {
            Populate::Off => None,
            Populate::Auto | Populate::On => Some(Arc::new(Listener { shared: Arc::clone(&self.shared), mapping: id })),
        };
        let limit = self.options.cache_limit;
        let retainer = Retainer::new(id, self.token, &supply, &self.files, &self.ledger, limit);
        let who = Whose { session: self.session, reader: self.token, mapping: id };
        let feeder = Feeder::new(who, supply, extent, &self.options, retainer, listener);
        feeders.insert(id, feeder);
    }

    fn resolve(&self, source: Source) -> Option<Supply> {
        let file = match source {
            Source::Known(supply) => return Some(supply),
            Source::Sent(file) => file,
        };
        match self.files.find_or_add(file, self.options.engine) {
            Ok(file) => {
                if let Some(engine) = self.options.engine.filter(|&engine| !file.is_filled_by(engine)) {
                    self.ledger.note_trouble(format!(
                        "--engine {} has no effect on {}: another session had it filled already, and chose",
                        engine.name(),
                        file.path.display()
                    ));
                }
                let account = self.ledger.account_of(&file.record);
                let pool = self.files.pool_of(&file);
                Some(Supply { file, account, pool })
            }
            Err(error) => {
                self.ledger.note_trouble(format!("a file of process {} cannot be used: {error}", self.pid));
                None
            }
        }
    }

    fn keep_count(&self, feeders: &HashMap<MappingId, Feeder>) {
        for used in lock(&self.uses).iter_mut() {
            if let Some(feeder) = feeders.get(&used.id) {
                used.streams = feeder.streams.requesting();
                used.faults_before_request = feeder.streams.faults_before_request();
            }
            used.tally = self.shared.tally_of(used.id).unwrap_or(used.tally);
        }
    }
}

/// Whether /proc/PID/maps shows this file's pages at these addresses. Only a clear contradiction vetoes: the device
/// number in maps is another than fstat's on overlayfs and btrfs, and another user's maps cannot be read.
fn is_in_maps(pid: i32, address: &std::ops::Range<u64>, inode: u64) -> bool {
    let Ok(maps) = procfs::process::Process::new(pid).and_then(|process| process.maps()) else { return true };
    maps.iter()
        .filter(|map| map.address.0 < address.end && address.start < map.address.1)
        .all(|map| map.inode == inode || matches!(map.pathname, procfs::process::MMapPath::Path(_)))
}

/// What a panicking thread left is whole: counters and lists.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
