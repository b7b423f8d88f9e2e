//! Sessions: what each supervisor asked for, and what it will be told.

use super::ledger::Ledger;
use super::lookout::Lookout;
use super::reader::Reader;
use crate::engine::is_populating_known;
use crate::link::message::{Answer, Request};
use crate::options::{Populate, RunOptions};
use crate::report::{FileReport, LockReport, ReaderReport, Refused, SessionReport};
use precache_contract::VERSION;
use precache_contract::segment::Refusal;
use precache_contract::uninjected::Uninjected;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reports of ended processes that one session keeps one by one.
const ENDED: usize = 200;

/// Files that were not accelerated, programs without the library, and lock files, that one session tells apart.
const REFUSED: usize = 1000;
const LOCKS: usize = 1000;

pub struct Session {
    options: RunOptions,
    loaded: bool,
    refused: Vec<Refused>,
    uninjected: Vec<Refused>,
    locks: Vec<LockReport>,
    ended: Vec<ReaderReport>,
    ledger: Arc<Ledger>,
    lookout: Option<Lookout>,
}

impl Session {
    /// A session that is opened `again` began with another optimizer, which knew whether the library was loaded.
    fn new(options: RunOptions, again: bool) -> Self {
        let ledger = Arc::<Ledger>::default();
        if again {
            ledger.note_trouble(
                "the optimizer died or came up late: what was done before it took over is not in the report".into(),
            );
        }
        if options.populate == Populate::On && !is_populating_known() {
            ledger
                .note_trouble("--populate on: this kernel maps no pages ahead (MADV_POPULATE_READ, Linux 5.14)".into());
        }
        Self {
            options,
            loaded: again,
            refused: Vec::new(),
            uninjected: Vec::new(),
            locks: Vec::new(),
            ended: Vec::new(),
            ledger,
            lookout: None,
        }
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn loaded(&mut self) {
        self.loaded = true;
    }

    pub fn refuse(&mut self, file: &File, why: Option<Refusal>) {
        note(&mut self.refused, file, why.map(Refusal::explain));
    }

    /// A program was executed without the library.
    pub fn note_uninjected(&mut self, program: &File, why: Option<Uninjected>) {
        note(&mut self.uninjected, program, why.map(Uninjected::explain));
    }

    pub fn note_lock(&mut self, file: PathBuf, private: bool) {
        if let Some(lock) = self.locks.iter_mut().find(|lock| lock.file == file && lock.private == private) {
            lock.count += 1;
        } else if self.locks.len() < LOCKS {
            if private {
                self.warn_of_writers(&file);
            }
            self.locks.push(LockReport { file, private, count: 1 });
        }
    }

    /// Keeps the report of a process that ended; beyond so many, only their sums.
    fn keep(&mut self, report: ReaderReport) {
        if self.ended.len() < ENDED {
            self.ended.push(report);
        } else if let Some(sums) = self.ended.get_mut(ENDED) {
            sums.add(&report);
        } else {
            self.ended.push(ReaderReport { pid: 0, mappings: Vec::new(), ..report });
        }
    }

    /// Has writers of the database looked for.
    fn warn_of_writers(&mut self, lock: &Path) {
        let data = match lock.to_str().and_then(|path| path.strip_suffix("-lock")) {
            Some(data) => PathBuf::from(data),
            None => lock.with_file_name("data.mdb"),
        };
        if self.lookout.is_none() {
            match Lookout::begin(Arc::clone(&self.ledger)) {
                Ok(lookout) => self.lookout = Some(lookout),
                Err(error) => self.ledger.note_trouble(format!("cannot look for writers of databases: {error}")),
            }
        }
        if let Some(lookout) = &mut self.lookout {
            lookout.ask(data);
        }
    }

    /// Of ranges that were given for files that nobody mapped: by another name, for instance.
    fn note_unused_ranges(&self, files: &[FileReport]) {
        let is_known = |path: &Path| {
            files.iter().any(|file| file.path == path) || self.refused.iter().any(|refused| refused.file == path)
        };
        for range in self.options.ranges.iter().filter(|range| !is_known(&range.file)) {
            self.ledger.note_trouble(format!("--range {}: no process mapped this file", range.file.display()));
        }
    }

    fn report(&mut self, living: &[Reader], session: u64) -> SessionReport {
        let mut readers = std::mem::take(&mut self.ended);
        for reader in living.iter().filter(|reader| reader.session == session) {
            readers.push(reader.report());
        }
        if self.lookout.as_mut().is_some_and(|lookout| !lookout.finish()) {
            self.ledger
                .note_trouble("no answer yet whether databases with private lock files are open for writing".into());
        }
        let files = self.ledger.reports(self.options.mode, self.options.engine);
        // Of files that are told together no path is known any more.
        if !files.is_empty() && !files.iter().any(FileReport::is_of_many) {
            self.note_unused_ranges(&files);
        }
        SessionReport {
            loaded: self.loaded || !readers.is_empty(),
            readers,
            files,
            refused: std::mem::take(&mut self.refused),
            uninjected: std::mem::take(&mut self.uninjected),
            locks: std::mem::take(&mut self.locks),
            troubles: self.ledger.take_troubles(),
        }
    }
}

#[derive(Default)]
pub struct Sessions(HashMap<u64, Session>);

impl Sessions {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn is_open(&self, session: u64) -> bool {
        self.0.contains_key(&session)
    }

    pub fn get_mut(&mut self, session: u64) -> Option<&mut Session> {
        self.0.get_mut(&session)
    }

    /// What the session asked for, and where to note what is done for it.
    pub fn terms_of(&self, session: u64) -> Option<(&RunOptions, &Arc<Ledger>)> {
        self.0.get(&session).map(|session| (&session.options, &session.ledger))
    }

    pub fn close(&mut self, session: u64) {
        self.0.remove(&session);
    }

    /// Keeps what is to be reported of a reader that died.
    pub fn bury(&mut self, mut reader: Reader) {
        reader.end();
        let session = self.0.get_mut(&reader.session);
        if let Some(session) = session {
            session.keep(reader.report());
        }
    }

    /// The session that a supervisor opens, or the last answer to it; `session` is the one that it has opened.
    pub fn answer(&mut self, session: Option<u64>, request: Request, readers: &[Reader]) -> Result<u64, Answer> {
        let refused = |why: String| Err(Answer::Refused { why });
        match (request, session) {
            (Request::Open { version, .. }, _) if version != VERSION => {
                refused(format!("it speaks version {VERSION}, not {version}"))
            }
            (Request::Open { options, .. }, None) if !options.are_sound() => {
                refused("its options make no sense".into())
            }
            (Request::Open { session, .. }, None) if self.is_open(session) => refused("the session is open".into()),
            (Request::Open { session, options, again, .. }, None) => {
                self.0.insert(session, Session::new(options, again));
                Ok(session)
            }
            (Request::Finish, Some(session)) => match self.0.get_mut(&session) {
                Some(open) => Err(Answer::Report(Box::new(open.report(readers, session)))),
                None => refused("the session is not open".into()),
            },
            (Request::Open { .. }, Some(_)) | (Request::Finish, None) => refused("one session a connection".into()),
        }
    }
}

/// Each file once for each reason, up to a number of them.
fn note(list: &mut Vec<Refused>, file: &File, reason: Option<&str>) {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    let refused = Refused { file: path, reason: reason.unwrap_or("unknown reason").to_owned() };
    if list.len() < REFUSED && !list.contains(&refused) {
        list.push(refused);
    }
}
