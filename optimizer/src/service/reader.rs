//! One reader, as the service holds it: its life, its segment, its mappings, and the thread that feeds it.

use super::files::Files;
use super::worker::{Announcement, Use, Worker, lock};
use crate::engine::{Account, DataFile, Pool};
use crate::options::RunOptions;
use crate::progress::MappingId;
use crate::progress::checkpoints::Shared;
use crate::report::{MappingReport, ReaderReport, Refusals};
use anyhow::{Context, Result, bail};
use crossbeam::channel::{Sender, unbounded};
use precache_contract::enrolment::Enrolment;
use precache_contract::segment::{Method, Refusal};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Requests in flight per mount, unless `--jobs` says otherwise.
const JOBS: usize = 32;

/// One process, as the service sees it.
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
