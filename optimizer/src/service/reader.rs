//! One reader: a thread that waits for its progress and feeds it.

use super::feeder::Feeder;
use super::files::Files;
use crate::engine::{Account, DataFile, FileRecord, Pool};
use crate::options::RunOptions;
use crate::progress::checkpoints::{Checkpoints, Shared};
use crate::progress::{MappingId, Progress, ProgressSource};
use crate::report::{MappingReport, ReaderReport, Refusals};
use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, Sender, unbounded};
use precache_contract::enrolment::Enrolment;
use precache_contract::segment::{Method, Refusal};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

/// Requests in flight per mount, unless `--jobs` says otherwise.
const JOBS: usize = 32;

/// Progress of mappings that have not been announced yet is kept for them, up to so much.
const EARLY: usize = 1024;

/// Mappings of one process that a report lists.
const USES: usize = 256;

/// A mapping and what became of it, for the report.
#[derive(Clone)]
pub struct Use {
    id: MappingId,
    method: Option<Method>,
    pub record: Arc<FileRecord>,
    account: Arc<Account>,
    /// Alive as long as the mapping.
    file: Weak<DataFile>,
    pool: Weak<Pool>,
    trips: u64,
    streams: usize,
    faults_before_request: Option<u32>,
}

struct Announcement {
    what: Use,
    file: Arc<DataFile>,
    pool: Arc<Pool>,
    extent: std::ops::Range<u64>,
    address: std::ops::Range<u64>,
}

pub struct Reader {
    pid: i32,
    token: u64,
    pub session: u64,
    forked: bool,
    options: RunOptions,
    /// Readable when the process has died.
    life: OwnedFd,
    shared: Arc<Shared>,
    uses: Arc<Mutex<Vec<Use>>>,
    inbox: Sender<Announcement>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Takes over a segment. A forked child's mappings are its parent's.
    pub fn begin(
        pid: i32,
        segment: &File,
        what: Enrolment,
        parent: Option<&Reader>,
        options: Option<&RunOptions>,
    ) -> Result<Self> {
        let shared = Shared::map(segment)?;
        let Some(options) = options.or(parent.map(|parent| &parent.options)) else {
            for mapping in &shared.segment().mappings {
                mapping.veto.store(mapping.generation.load(Relaxed), Relaxed);
            }
            bail!("its session is not open");
        };
        let life = life_of(pid).context("cannot watch it")?;
        let (inbox, announcements) = unbounded();
        let uses = Arc::new(Mutex::new(Vec::new()));
        let worker = Worker {
            pid,
            token: what.token,
            options: options.clone(),
            shared: Arc::clone(&shared),
            uses: Arc::clone(&uses),
            announcements,
        };
        let thread = std::thread::Builder::new().name("reader".into()).stack_size(256 << 10);
        let reader = Self {
            pid,
            token: what.token,
            session: what.session,
            forked: what.parent != 0,
            options: options.clone(),
            life,
            shared,
            uses,
            inbox,
            thread: Some(thread.spawn(move || worker.work())?),
        };
        if let Some(parent) = parent {
            for used in parent.uses() {
                if let (Some(file), Some(pool)) = (used.file.upgrade(), used.pool.upgrade()) {
                    reader.announce(used.id, used.method, file, used.account, pool);
                }
            }
        }
        Ok(reader)
    }

    pub fn token(&self) -> u64 {
        self.token
    }

    pub fn life(&self) -> BorrowedFd<'_> {
        self.life.as_fd()
    }

    /// A mapping of the reader, of this file; what is done for it goes into the account.
    pub fn add(&self, what: &Enrolment, file: Arc<DataFile>, account: Arc<Account>, files: &mut Files) {
        let id = MappingId { slot: what.slot as u16, generation: what.generation };
        let Some(mapping) = self.shared.mapping(id) else { return };
        let pool = files.pool_of(&file, self.options.jobs.unwrap_or(JOBS));
        let method = Method::from_number(mapping.method.load(Relaxed));
        self.announce(id, method, file, account, pool);
    }

    fn announce(
        &self,
        id: MappingId,
        method: Option<Method>,
        file: Arc<DataFile>,
        account: Arc<Account>,
        pool: Arc<Pool>,
    ) {
        let Some(mapping) = self.shared.mapping(id) else { return };
        let what = Use {
            id,
            method,
            record: Arc::clone(&file.record),
            account,
            file: Arc::downgrade(&file),
            pool: Arc::downgrade(&pool),
            trips: 0,
            streams: 0,
            faults_before_request: None,
        };
        let (address, length) = (mapping.address.load(Relaxed), mapping.length.load(Relaxed));
        let offset = mapping.offset.load(Relaxed);
        let extent = offset..offset.saturating_add(length);
        let address = address..address.saturating_add(length);
        // The thread ends only when the reader has died: then nothing is lost.
        let _ = self.inbox.send(Announcement { what, file, pool, extent, address });
        self.shared.nudge();
    }

    /// The reader's mappings so far.
    pub fn uses(&self) -> Vec<Use> {
        lock(&self.uses).clone()
    }

    /// The process has died: waits until its last trips are taken.
    pub fn end(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been reported on stderr; what it counted stands.
            let _ = thread.join();
        }
    }

    pub fn report(&self) -> ReaderReport {
        let counters = self.shared.counters();
        let refusals = Refusal::ALL.iter().zip(&counters.refusals).filter(|(_, count)| count.load(Relaxed) > 0);
        let mappings = self.uses().into_iter().map(|used| MappingReport {
            trips: self.shared.trips_of(used.id).unwrap_or(used.trips),
            file: used.record.path.clone(),
            method: match used.method {
                Some(Method::Guard) => "guard".into(),
                Some(Method::Mprotect) => "mprotect".into(),
                None => "unknown".into(),
            },
            streams: used.streams,
            faults_before_first_request: used.faults_before_request,
        });
        ReaderReport {
            pid: self.pid,
            processes: 1,
            forked: self.forked,
            trips: counters.trips.load(Relaxed),
            wakes: counters.wakes.load(Relaxed),
            contended: counters.contended.load(Relaxed),
            lost: counters.lost.load(Relaxed),
            forwarded: counters.forwarded.load(Relaxed),
            lifted_for_calls: counters.lifted_for_calls.load(Relaxed),
            refusals: refusals
                .map(|(why, count)| Refusals { reason: why.explain().into(), count: count.load(Relaxed) })
                .collect(),
            mappings: mappings.collect(),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread's side.
struct Worker {
    pid: i32,
    token: u64,
    options: RunOptions,
    shared: Arc<Shared>,
    uses: Arc<Mutex<Vec<Use>>>,
    announcements: Receiver<Announcement>,
}

impl Worker {
    fn work(self) {
        let mut source = Checkpoints::new(Arc::clone(&self.shared));
        let mut feeders: HashMap<MappingId, Feeder> = HashMap::new();
        let mut early: Vec<Progress> = Vec::new();
        let mut news = Vec::new();
        let mut alive = true;
        while alive {
            alive = source.wait(&mut news);
            while let Ok(announcement) = self.announcements.try_recv() {
                self.take_up(announcement, &mut feeders, &source);
            }
            for progress in early.drain(..).chain(news.drain(..)).collect::<Vec<_>>() {
                match feeders.get_mut(&progress.mapping) {
                    Some(feeder) => feeder.observe(progress.offset, &source),
                    None if early.len() < EARLY && source.is_mapped(progress.mapping) => early.push(progress),
                    None => {}
                }
            }
            self.keep_count(&feeders);
            feeders.retain(|id, _| source.is_mapped(*id));
        }
    }

    /// Begins to feed a mapping, if the kernel shows it as the reader registered it.
    fn take_up(&self, announcement: Announcement, feeders: &mut HashMap<MappingId, Feeder>, source: &Checkpoints) {
        let Announcement { what, file, pool, extent, address } = announcement;
        let (id, account) = (what.id, Arc::clone(&what.account));
        // A forked child announces what its parent's announcement told already.
        if feeders.contains_key(&id) {
            return;
        }
        let mut uses = lock(&self.uses);
        if uses.len() >= USES {
            // The report of a program with so many mappings lacks those that were over first.
            let over = uses.iter().position(|used| !source.is_mapped(used.id)).unwrap_or(0);
            uses.remove(over);
        }
        uses.push(what);
        drop(uses);
        // Of a program that maps and unmaps all the time, most are over before they are looked at.
        if !source.is_mapped(id) {
            return;
        }
        if !is_in_maps(self.pid, &address, file.identity.inode) {
            source.let_go(id);
            return;
        }
        let feeder = Feeder::new(id, self.token, file, account, pool, extent, &self.options);
        feeder.begin(source);
        feeders.insert(id, feeder);
    }

    fn keep_count(&self, feeders: &HashMap<MappingId, Feeder>) {
        for used in lock(&self.uses).iter_mut() {
            if let Some(feeder) = feeders.get(&used.id) {
                used.streams = feeder.streams.requesting();
                used.faults_before_request = feeder.streams.faults_before_request();
            }
            used.trips = self.shared.trips_of(used.id).unwrap_or(used.trips);
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

/// A descriptor that is ready once the process is dead: at once if it died before we heard of it.
fn life_of(pid: i32) -> std::io::Result<OwnedFd> {
    // SAFETY: takes numbers only; the descriptor it makes is ours.
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if number >= 0 {
        // SAFETY: as above.
        return Ok(unsafe { OwnedFd::from_raw_fd(number as i32) });
    }
    match std::io::Error::last_os_error() {
        // A pipe without a writer is at its end.
        error if error.raw_os_error() == Some(libc::ESRCH) => {
            Ok(nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map(|(end, _)| end)?)
        }
        error => Err(error),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
