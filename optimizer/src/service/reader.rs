//! One reader, as the service holds it: its life, its segment, its mappings, and the thread that feeds it.

use super::feeder::Supply;
use super::files::Files;
use super::ledger::Ledger;
use super::thread::Thread;
use super::worker::{Announcement, Source, Unresolved, Use, Worker, lock};
use crate::engine::SentFile;
use crate::options::RunOptions;
use crate::process;
use crate::progress::MappingId;
use crate::progress::checkpoints::Shared;
use crate::report::{MappingReport, ReaderReport, Refusals};
use anyhow::{Context, Result, bail};
use crossbeam::channel::{Sender, unbounded};
use precache_contract::enrolment::Enrolment;
use precache_contract::segment::{Method, Refusal};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Mappings that wait for the thread. Each has a file open; what is mapped while so many wait is not served.
const WAITING: usize = 1024;

/// One process, as the service sees it.
pub struct Reader {
    pid: i32,
    token: u64,
    pub session: u64,
    forked: bool,
    options: RunOptions,
    ledger: Arc<Ledger>,
    /// Readable when the process has died.
    life: OwnedFd,
    shared: Arc<Shared>,
    uses: Arc<Mutex<Vec<Use>>>,
    unresolved: Arc<Mutex<Vec<Unresolved>>>,
    inbox: Sender<Announcement>,
    thread: Thread,
    died: Option<Instant>,
    has_ended: bool,
}

impl Reader {
    /// Takes over a segment. A forked child's mappings are its parent's.
    pub fn begin(
        pid: i32,
        segment: &File,
        what: Enrolment,
        parent: Option<&Reader>,
        terms: Option<(&RunOptions, &Arc<Ledger>)>,
        files: &Arc<Files>,
    ) -> Result<Self> {
        let shared = Shared::map(segment)?;
        let begun = Self::serve(pid, &shared, what, parent, terms, files);
        if begun.is_err() {
            // Nobody will hear of its trips.
            for mapping in &shared.segment().mappings {
                mapping.veto.store(mapping.generation.load(Relaxed), Relaxed);
            }
        }
        begun
    }

    fn serve(
        pid: i32,
        shared: &Arc<Shared>,
        what: Enrolment,
        parent: Option<&Reader>,
        terms: Option<(&RunOptions, &Arc<Ledger>)>,
        files: &Arc<Files>,
    ) -> Result<Self> {
        let Some((options, ledger)) = terms.or(parent.map(|parent| (&parent.options, &parent.ledger))) else {
            bail!("its session is not open");
        };
        let life = life_of(pid).context("cannot watch it")?;
        let (inbox, announcements) = unbounded();
        let uses = Arc::new(Mutex::new(Vec::new()));
        let unresolved = Arc::new(Mutex::new(Vec::new()));
        let worker = Worker {
            pid,
            token: what.token,
            session: what.session,
            options: options.clone(),
            files: Arc::clone(files),
            ledger: Arc::clone(ledger),
            shared: Arc::clone(shared),
            uses: Arc::clone(&uses),
            unresolved: Arc::clone(&unresolved),
            announcements,
        };
        let thread = Thread::start("reader", move || worker.work())?;
        let reader = Self {
            pid,
            token: what.token,
            session: what.session,
            forked: what.parent != 0,
            options: options.clone(),
            ledger: Arc::clone(ledger),
            life,
            shared: Arc::clone(shared),
            uses,
            unresolved,
            inbox,
            thread,
            died: None,
            has_ended: false,
        };
        if let Some(parent) = parent {
            reader.inherit(parent);
        }
        Ok(reader)
    }

    /// Takes over the mappings of the process that this one was forked from, whose files it may have closed.
    fn inherit(&self, parent: &Reader) {
        // What the parent had let go of before the fork is none of the child's.
        let is_mapped = |id| self.shared.registration(id).is_some();
        // In this order: what is resolved in between is in both.
        for Unresolved { id, file } in lock(&parent.unresolved).iter().filter(|unresolved| is_mapped(unresolved.id)) {
            match file.try_clone() {
                Ok(file) => self.announce(*id, Source::Sent(file)),
                Err(error) => {
                    self.ledger.note_trouble(format!("a file of process {} cannot be used: {error}", self.pid));
                    self.shared.let_go(*id);
                }
            }
        }
        for used in parent.uses().into_iter().filter(|used| is_mapped(used.id)) {
            if let (Some(file), Some(pool)) = (used.file.upgrade(), used.pool.upgrade()) {
                self.announce(used.id, Source::Known(Supply { file, account: used.account, pool }));
            }
        }
    }

    pub fn token(&self) -> u64 {
        self.token
    }

    pub fn life(&self) -> BorrowedFd<'_> {
        self.life.as_fd()
    }

    /// A mapping of the reader, of this file.
    pub fn add(&self, what: &Enrolment, file: SentFile) {
        let Ok(slot) = u16::try_from(what.slot) else { return };
        self.announce(MappingId { slot, generation: what.generation }, Source::Sent(file));
    }

    /// A mapping of the reader of whose file nothing is known: nobody will feed it.
    pub fn let_go(&self, what: &Enrolment) {
        if let Ok(slot) = u16::try_from(what.slot) {
            self.shared.let_go(MappingId { slot, generation: what.generation });
        }
    }

    fn announce(&self, id: MappingId, source: Source) {
        if self.inbox.len() >= WAITING {
            return self.shared.let_go(id);
        }
        if let Source::Sent(file) = &source
            && let Ok(file) = file.try_clone()
        {
            lock(&self.unresolved).push(Unresolved { id, file });
        }
        // The thread ends only when the reader has died: then nothing is lost.
        let registration = self.shared.registration(id);
        let _ = self.inbox.send(Announcement { id, source, registration });
        self.shared.nudge();
    }

    /// The reader's mappings so far.
    pub fn uses(&self) -> Vec<Use> {
        lock(&self.uses).clone()
    }

    /// The process has died: its last trips are to be taken.
    pub fn note_death(&mut self) {
        self.died.get_or_insert_with(Instant::now);
        self.shared.end();
    }

    /// Waits until that is done, or seems not to be done any more.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.note_death();
        if !self.thread.wait(self.died.unwrap_or_else(Instant::now)) {
            self.ledger.note_trouble(format!(
                "the storage of a file of process {} does not answer, or the machine is too busy: what it did last is not in the \
                 report",
                self.pid
            ));
        }
    }

    pub fn report(&self) -> ReaderReport {
        let counters = self.shared.counters();
        let refusals = Refusal::ALL.iter().zip(&counters.refusals).filter(|(_, count)| count.load(Relaxed) > 0);
        let mappings = self.uses().into_iter().map(|used| (self.shared.tally_of(used.id).unwrap_or(used.tally), used));
        let mappings = mappings.map(|(tally, used)| MappingReport {
            trips: tally.trips,
            advice: tally.advice,
            populated: tally.populated,
            populate_gain: (tally.gain > 0).then_some(f64::from(tally.gain) / 1000.0),
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
            in_handler: counters.in_handler.load(Relaxed),
            wakes: counters.wakes.load(Relaxed),
            contended: counters.contended.load(Relaxed),
            lost: counters.lost.load(Relaxed),
            disorders: counters.disorders.load(Relaxed),
            forwarded: counters.forwarded.load(Relaxed),
            lifted_for_calls: counters.lifted_for_calls.load(Relaxed),
            all_pinned: counters.all_pinned.load(Relaxed),
            unserved: counters.unserved.load(Relaxed),
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
    match process::open(pid) {
        // A pipe without a writer is at its end.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
            Ok(nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map(|(end, _)| end)?)
        }
        opened => opened,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use precache_contract::VERSION;
    use precache_contract::enrolment::Kind;
    use precache_contract::ring::{News, What};
    use precache_contract::segment::{Mapping, Segment};
    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;

    /// A segment with a mapping of generation 5 in its first slot.
    pub fn segment() -> File {
        let memory = File::from(memfd_create("segment", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        memory.set_len(Segment::LENGTH as u64).unwrap();
        fcntl(&memory, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).unwrap();
        memory.write_all_at(&VERSION.to_ne_bytes(), offset_of!(Segment, version) as u64).unwrap();
        let generation = offset_of!(Segment, mappings) + offset_of!(Mapping, generation);
        memory.write_all_at(&5u32.to_ne_bytes(), generation as u64).unwrap();
        memory
    }

    /// A field of its first mapping.
    fn field(memory: &File, offset: usize) -> u32 {
        let mut word = [0; 4];
        memory.read_exact_at(&mut word, (offset_of!(Segment, mappings) + offset) as u64).unwrap();
        u32::from_ne_bytes(word)
    }

    pub fn options() -> RunOptions {
        let options = serde_json::from_value(serde_json::json!({
            "distance": 4096, "distance_auto": true, "size": 4096, "size_auto": true, "threshold": 75, "data": [],
            "exclude": [], "min_file": 0, "ranges": [], "mode": "on", "protect": "auto", "populate": "auto", "jobs": null,
            "max_inflight": null, "engine": null, "cache_limit": null, "private_lock": false, "quiet": true, "verbose": false,
        }));
        options.unwrap()
    }

    /// Of a mapping that nobody announces the report tells, also where the process ends soon; it is let go of, for a child may have it.
    #[test]
    fn what_nobody_announces_is_told_and_let_go_of() {
        let (memory, ledger) = (segment(), Arc::<Ledger>::default());
        let what = Enrolment::new(Kind::Reader, 1, 2, 0, 0);
        let pid = std::process::id() as i32;
        let mut reader = Reader::begin(pid, &memory, what, None, Some((&options(), &ledger)), &Arc::default()).unwrap();
        reader.shared.segment().news.push(News { slot: 0, generation: 5, offset: 0, what: What::Trip });
        reader.end();
        assert_eq!(field(&memory, offset_of!(Mapping, veto)), 5);
        let troubles = ledger.take_troubles();
        assert!(matches!(&troubles[..], [one] if one.contains("nobody could tell the file")), "{troubles:?}");
    }

    /// Whom nobody watches cannot be served; its mappings are not left armed for nobody.
    #[test]
    fn who_cannot_be_served_is_let_go_of() {
        let memory = segment();
        let what = Enrolment::new(Kind::Reader, 1, 2, 0, 0);
        let begun = Reader::begin(-1, &memory, what, None, Some((&options(), &Arc::default())), &Arc::default());
        assert!(begun.is_err());
        assert_eq!(field(&memory, offset_of!(Mapping, veto)), 5);
    }
}
