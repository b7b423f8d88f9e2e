//! How many large pieces to keep in flight on one mount: more, as long as that pays.
//!
//! A file system may drop what is read ahead beyond a bound of its own, and what was dropped is read page by page. FUSE does
//! so while nine of the twelve requests are in flight that it allows by default (`fuse_readahead` in fs/fuse/file.c); other
//! mounts bear more, and nobody tells. So a few are the rule, and where the path has room for more they are tried for a moment.

use super::least::Least;
use std::time::Duration;

/// Pieces to begin with: each is two requests of FUSE, so these are never dropped.
pub const FEW: usize = 4;
/// Numbers of pieces, and how many times the bandwidth of the number before each must bring. With five the first half of the last
/// piece meets eight requests of FUSE and is not dropped; the second may be, and is asked for again when the first has come: that
/// costs processors, and keeps a long path fuller. Never more than the last: the memory for them is taken before anything has come in.
const STEPS: [(usize, f64); 4] = [(FEW, 0.0), (5, 1.05), (10, 1.02), (20, 1.15)];
/// The path has room for more as long as those in flight come in so many times the least latency.
const ROOM: f64 = 2.0;
/// Pieces that show it, after those that were sent before: as many come in a whole number of turns, whichever of these are in flight.
const SPELL: usize = 20;
/// Bytes after which it is tried anew, from the few on, and how many times as many it is each time.
const PAUSE: u64 = 2 << 30;
const LONGER: u64 = 4;
/// Bytes without a spell, after which more are given up again: whoever reads wants less by now.
const UNJUDGED: u64 = 256 << 20;

/// The pieces on one mount. Pure: times come from the caller.
#[derive(Debug)]
pub struct Pieces {
    /// Which of [`STEPS`].
    step: usize,
    /// So many are allowed.
    bound: usize,
    /// Bytes per second with fewer, as long as more are tried.
    surpassed: f64,
    settled: bool,
    spell: Spell,
    /// The least latency of any request to the mount, however small.
    least: Least,
    /// Bytes since the number was changed or settled; those with which it is tried anew.
    since: u64,
    pause: u64,
}

/// Answers with nearly as many in flight as may be, without a break.
#[derive(Debug, Default)]
struct Spell {
    answers: usize,
    /// From the last of those that were sent before.
    began: Duration,
    bytes: u64,
}

impl Default for Pieces {
    fn default() -> Self {
        Self {
            step: 0,
            bound: usize::MAX,
            surpassed: 0.0,
            settled: false,
            spell: Spell::default(),
            least: Least::default(),
            since: 0,
            pause: PAUSE,
        }
    }
}

impl Pieces {
    /// More than so many are not allowed, but one is. Where that lets more in flight, it is not known whether they pay.
    pub fn set_bound(&mut self, bound: usize) {
        let before = self.most();
        self.bound = bound.max(1);
        if self.most() > before {
            self.begin_anew(self.pause);
        }
    }

    /// From the few on.
    fn begin_anew(&mut self, pause: u64) {
        *self = Self { pause, least: self.least, bound: self.bound, ..Self::default() };
    }

    /// So many may be in flight.
    pub fn most(&self) -> usize {
        STEPS[self.step].0.min(self.bound)
    }

    /// A request of any size took so long.
    pub fn hear(&mut self, latency: Duration) {
        self.least.hear(latency);
    }

    /// What comes in now shows nothing, for other ways to fill are tried.
    pub fn interrupt(&mut self) {
        self.spell = Spell::default();
    }

    /// A piece of so many bytes has come in; so many were in flight, with it.
    pub fn learn(&mut self, bytes: u64, in_flight: usize, now: Duration) {
        self.since += bytes;
        if self.settled {
            if self.since >= self.pause {
                self.begin_anew(self.pause.saturating_mul(LONGER));
            }
            return;
        }
        if self.step > 0 && self.since >= UNJUDGED {
            self.step -= 1;
            self.settle();
            return;
        }
        let (most, spell) = (self.most(), &mut self.spell);
        if in_flight * 4 < most * 3 {
            // The rate is that of a reader who wants less.
            *spell = Spell::default();
            return;
        }
        spell.answers += 1;
        if spell.answers <= most {
            spell.began = now;
            return;
        }
        spell.bytes += bytes;
        if spell.answers == most + SPELL {
            let lasted = now.saturating_sub(spell.began).max(Duration::from_micros(1));
            let rate = spell.bytes as f64 / lasted.as_secs_f64();
            self.steer(rate, lasted / SPELL as u32);
        }
    }

    /// By the rate that these have shown, and the time from one answer to the next.
    fn steer(&mut self, rate: f64, each: Duration) {
        let pays = rate >= self.surpassed * STEPS[self.step].1;
        let least = self.least.latency().unwrap_or(Duration::MAX);
        let has_room = (each * self.most() as u32).as_secs_f64() < least.as_secs_f64() * ROOM;
        let is_last = self.step + 1 == STEPS.len() || STEPS[self.step].0 >= self.bound;
        if !pays {
            self.step -= 1;
            self.settle();
        } else if !has_room || is_last {
            self.settle();
        } else {
            self.step += 1;
            (self.surpassed, self.since, self.spell) = (rate, 0, Spell::default());
        }
    }

    /// The number stays for a while.
    fn settle(&mut self) {
        (self.settled, self.since, self.spell) = (true, 0, Spell::default());
    }
}

#[cfg(test)]
mod tests;
