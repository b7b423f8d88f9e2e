//! What was said too early: for sessions that are not open yet, and of mappings whose reader is not known yet. A supervisor that lost
//! its optimizer opens its session at the next one at once, but readers may find that before; and of two threads of a reader one
//! may announce a mapping over a connection that is older than the one over which the other says who they are.

use crate::engine::SentFile;
use precache_contract::enrolment::{Enrolment, Kind};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is kept, and for how long.
const MOST: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is known that something was lost.
const MEMORY: Duration = Duration::from_secs(60);

/// What a process said.
pub struct Word {
    pub pid: i32,
    pub session: u64,
    pub what: What,
}

pub enum What {
    Enrolment(Enrolment, Kind, Option<SentFile>),
    /// An LMDB lock file was opened.
    Lock {
        path: PathBuf,
        private: bool,
    },
}

impl Word {
    /// The token of the reader whose mapping it is about.
    pub fn mapped_by(&self) -> Option<u64> {
        match &self.what {
            What::Enrolment(what, Kind::Mapping, _) => Some(what.token),
            _ => None,
        }
    }
}

/// The words that wait.
#[derive(Default)]
pub struct Early {
    kept: Vec<(Instant, Word)>,
    /// How many of a session that is not open were not kept, or not until it was, and since when.
    lost: HashMap<u64, (Instant, u64)>,
}

impl Early {
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub fn keep(&mut self, word: Word) {
        if self.kept.len() < MOST {
            self.kept.push((Instant::now(), word));
        } else {
            self.lose(word.session);
        }
    }

    fn lose(&mut self, session: u64) {
        if self.lost.len() < MOST || self.lost.contains_key(&session) {
            self.lost.entry(session).or_insert((Instant::now(), 0)).1 += 1;
        }
    }

    /// Takes what was said for a session, in the order in which it was said, and how much more there was.
    pub fn of_session(&mut self, session: u64) -> (Vec<Word>, Option<u64>) {
        (self.take(|word| word.session == session), self.lost.remove(&session).map(|(_, count)| count))
    }

    /// Takes the mappings of a reader.
    pub fn of_reader(&mut self, token: u64) -> Vec<Word> {
        self.take(|word| word.mapped_by() == Some(token))
    }

    /// The reader cannot be served, which was told: nor can its mappings.
    pub fn forget(&mut self, token: u64) {
        drop(self.of_reader(token));
    }

    fn take(&mut self, wanted: impl Fn(&Word) -> bool) -> Vec<Word> {
        self.kept.extract_if(.., |(_, word)| wanted(word)).map(|(_, word)| word).collect()
    }

    /// Forgets what has waited for long. (Where the session is open, it is mappings that came after their reader could not be served,
    /// which was told.)
    pub fn expire(&mut self, is_open: impl Fn(u64) -> bool) {
        let old = self.kept.extract_if(.., |(since, _)| since.elapsed() >= PATIENCE);
        let old: Vec<u64> = old.map(|(_, word)| word.session).collect();
        old.into_iter().filter(|&session| !is_open(session)).for_each(|session| self.lose(session));
        self.lost.retain(|_, (since, _)| since.elapsed() < MEMORY);
    }
}
