//! By which engine one file is filled, and what each of them has brought in.

use super::residency::Residency;
use super::ways::Way;
use crate::policy::choice::{Choice, Contender};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Calls without effect that prove something if they are most of them: a few may have met a full queue.
const PROOF: u32 = 3;

pub struct Filling {
    /// The engine that was asked for.
    wanted: Option<Way>,
    ways: Vec<Way>,
    choice: Mutex<Choice>,
    /// Bytes that each of the ways brought in.
    bytes: Vec<AtomicU64>,
    /// Chunks that each of the ways was asked for, and those that it had no effect on.
    asked: Vec<AtomicU32>,
    without_effect: Vec<AtomicU32>,
    /// Trials have ended since [`Self::settled`] was asked.
    has_news: AtomicBool,
}

/// What trials on one file have found, for others of its mount.
pub struct Settled {
    ways: Vec<Way>,
    choice: Choice,
}

impl Settled {
    /// Whether it is about the same engines.
    pub fn replaces(&self, other: &Self) -> bool {
        self.ways == other.ways
    }
}

impl Filling {
    /// By the engine that was asked for, while it works, or else by the best that can be had; a mapping surely in `large`
    /// pieces, or not.
    pub fn new(wanted: Option<Way>, residency: Residency, large: bool) -> Self {
        let (ways, choice) = match wanted {
            None => {
                let ways = Way::candidates(residency);
                let choice = Choice::new(ways.iter().map(|way| way.contender(large)));
                (ways, choice)
            }
            Some(Way::Read) => (vec![Way::Read], Choice::new([Way::Read.contender(large)])),
            Some(way) => {
                let reserve = Contender { chunks: [0; 2], handicap: 1.0, is_read: false };
                (vec![way, Way::Read], Choice::new([way.contender(large), reserve]))
            }
        };
        Self {
            wanted,
            bytes: ways.iter().map(|_| AtomicU64::new(0)).collect(),
            asked: ways.iter().map(|_| AtomicU32::new(0)).collect(),
            without_effect: ways.iter().map(|_| AtomicU32::new(0)).collect(),
            ways,
            choice: Mutex::new(choice),
            has_news: AtomicBool::new(false),
        }
    }

    /// Whether it was made for this engine alone.
    pub fn is_by(&self, engine: Way) -> bool {
        self.wanted == Some(engine)
    }

    /// Whether this engine was asked for, and has been found to have no effect here.
    pub fn is_unmet(&self, engine: Way) -> bool {
        self.wanted == Some(engine) && !self.offers(engine)
    }

    /// What its trials have found, once they are over; nothing if it was told already.
    pub fn settled(&self) -> Option<Settled> {
        let choice = self.has_news.swap(false, Relaxed).then(|| self.choice().for_another())??;
        Some(Settled { ways: self.ways.clone(), choice })
    }

    /// Begins with what has been found of these engines on another file, unless it has begun already.
    pub fn begin_with(&self, settled: &[Settled]) {
        let mut choice = self.choice();
        if let Some(settled) = settled.iter().find(|settled| settled.ways == self.ways && choice.is_untouched()) {
            *choice = settled.choice.clone();
        }
    }

    /// Does what may end a trial.
    fn note(&self, what: impl FnOnce(&mut Choice)) {
        let mut choice = self.choice();
        let was_trying = choice.is_trying();
        what(&mut choice);
        if was_trying && !choice.is_trying() {
            self.has_news.store(true, Relaxed);
        }
    }

    fn choice(&self) -> MutexGuard<'_, Choice> {
        self.choice.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn index(&self, way: Way) -> usize {
        self.ways.iter().position(|&other| other == way).unwrap_or(0)
    }

    /// The engine for the next chunk.
    pub fn next(&self) -> Way {
        self.ways.get(self.choice().next()).copied().unwrap_or(Way::Read)
    }

    /// Whether this engine can be had, and has not been found not to work.
    pub fn offers(&self, way: Way) -> bool {
        self.ways.iter().position(|&other| other == way).is_some_and(|index| !self.choice().has_failed(index))
    }

    /// A chunk is asked for.
    pub fn ask(&self, way: Way) {
        self.asked[self.index(way)].fetch_add(1, Relaxed);
    }

    /// A chunk is sent this way, which is to show how fast it is. Returns the way in use, if this one is tried beside it.
    pub fn send(&self, way: Way, now: Duration) -> Option<Way> {
        let (way, mut used) = (self.index(way), None);
        self.note(|choice| {
            used = choice.tried_beside(way);
            choice.send(way, now);
        });
        self.ways.get(used?).copied()
    }

    /// So many bytes were brought in.
    pub fn bring(&self, way: Way, bytes: u64) {
        self.bytes[self.index(way)].fetch_add(bytes, Relaxed);
    }

    /// A chunk of so many bytes, sent this way, has come in.
    pub fn answer(&self, way: Way, bytes: u64, now: Duration) {
        self.note(|choice| choice.answer(self.index(way), bytes, now));
    }

    /// A chunk that was cached already: it says nothing of the engine.
    pub fn take_back(&self, way: Way, now: Duration) {
        self.choice().take_back(self.index(way), now);
    }

    /// A chunk on which the engine had no effect; if that is so for most of them, it is not asked again.
    pub fn miss(&self, way: Way, shows_rate: bool, now: Duration) {
        let index = self.index(way);
        let (asked, missed) = (self.asked[index].load(Relaxed), self.without_effect[index].fetch_add(1, Relaxed) + 1);
        if missed >= PROOF && missed * 2 > asked {
            self.note(|choice| choice.fail(index, now));
        } else if shows_rate {
            self.note(|choice| choice.answer(index, 0, now));
        }
    }

    /// Whether no engine has been chosen yet.
    pub fn is_on_trial(&self) -> bool {
        self.choice().chosen().is_none()
    }

    /// Whether engines are being tried.
    pub fn is_trying(&self) -> bool {
        self.choice().is_trying()
    }

    /// Bytes that each engine brought in, the one with the most first.
    pub fn shares(&self) -> Vec<(&'static str, u64)> {
        let bytes = self.bytes.iter().map(|bytes| bytes.load(Relaxed));
        let mut shares: Vec<_> =
            self.ways.iter().map(|way| way.name()).zip(bytes).filter(|&(_, bytes)| bytes > 0).collect();
        shares.sort_by_key(|&(_, bytes)| Reverse(bytes));
        shares
    }
}
