//! Checkpoint trips: the reader's signal handler leaves them in the shared segment and wakes us when one triggers.

use super::{MappingId, Progress, ProgressSource};
use crate::engine::Audience;
use crate::policy::stream::Thresholds;
use memmap2::MmapRaw;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::time::TimeSpec;
use precache_contract::VERSION;
use precache_contract::ring::CAPACITY;
use precache_contract::segment::{Counters, Mapping, Method, PROFIT, Segment};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*, fence};
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use the reader's shared memory: {0}")]
    Io(#[from] std::io::Error),
    #[error(
        "the reader's shared memory is {found} bytes long instead of {expected}: it was built with another version"
    )]
    Length { found: u64, expected: usize },
    #[error("the reader's shared memory could be cut short under us: it is not sealed")]
    NotSealed,
    #[error("the reader speaks version {0} instead of {VERSION}")]
    Version(u32),
}

/// A mapping, as its reader registered it: a stranger's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    pub method: Option<Method>,
    /// The part of the file, and where it lies in the reader.
    pub extent: Range<u64>,
    pub address: Range<u64>,
}

/// What the reader counted of one mapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub trips: u64,
    /// Advice of the program.
    pub advice: u64,
    /// Bytes mapped ahead of it.
    pub populated: u64,
    /// What that gains, in thousandths; 0: not known.
    pub gain: u32,
}

/// The segment of one reader, mapped here too.
pub struct Shared {
    memory: MmapRaw,
    ended: AtomicBool,
    /// Someone wants the source's wait to return.
    nudged: AtomicBool,
}

impl Shared {
    /// Maps the segment that a reader handed over. The reader is not trusted: a file that it could shorten would
    /// raise SIGBUS here.
    pub fn map(file: &File) -> Result<Arc<Self>, Error> {
        let length = file.metadata()?.len();
        if length != Segment::LENGTH as u64 {
            return Err(Error::Length { found: length, expected: Segment::LENGTH });
        }
        let seals = fcntl(file.as_fd(), FcntlArg::F_GET_SEALS).map_err(std::io::Error::from)?;
        if !SealFlag::from_bits_retain(seals).contains(SealFlag::F_SEAL_SHRINK) {
            return Err(Error::NotSealed);
        }
        let shared =
            Self { memory: MmapRaw::map_raw(file)?, ended: AtomicBool::new(false), nudged: AtomicBool::new(false) };
        match shared.segment().version.load(Relaxed) {
            VERSION => Ok(Arc::new(shared)),
            other => Err(Error::Version(other)),
        }
    }

    pub fn segment(&self) -> &Segment {
        // SAFETY: the mapping is page-aligned, `Segment::LENGTH` bytes long and cannot shrink (`map` checked both); a
        // Segment is made of atomics, for which every value is valid whoever writes it.
        unsafe { &*self.memory.as_ptr().cast::<Segment>() }
    }

    pub fn counters(&self) -> &Counters {
        &self.segment().counters
    }

    /// The mapping, unless it is gone.
    pub fn mapping(&self, id: MappingId) -> Option<&Mapping> {
        let mapping = self.segment().mappings.get(usize::from(id.slot))?;
        (mapping.generation.load(Acquire) == id.generation).then_some(mapping)
    }

    /// What stands there of the mapping, unless it is gone.
    pub fn registration(&self, id: MappingId) -> Option<Registration> {
        let mapping = self.mapping(id)?;
        let length = mapping.length.load(Relaxed);
        let part_from = |start: u64| start..start.saturating_add(length);
        Some(Registration {
            method: Method::from_number(mapping.method.load(Relaxed)),
            extent: part_from(mapping.offset.load(Relaxed)),
            address: part_from(mapping.address.load(Relaxed)),
        })
    }

    /// Asks the reader's side to let go of the mapping.
    pub fn let_go(&self, id: MappingId) {
        if let Some(mapping) = self.mapping(id) {
            mapping.veto.store(id.generation, Release);
        }
    }

    /// Makes the source's wait return without news.
    pub fn nudge(&self) {
        self.nudged.store(true, SeqCst);
        self.segment().sleeper.0.store(0, SeqCst);
        futex(&self.segment().sleeper.0, libc::FUTEX_WAKE, i32::MAX as u32, None);
    }

    /// The reader died: ends the source's wait.
    pub fn end(&self) {
        self.ended.store(true, SeqCst);
        self.nudge();
    }

    /// What the reader counted of a mapping; that of one that is gone stands in its slot until that is used again.
    pub fn tally_of(&self, id: MappingId) -> Option<Tally> {
        let mapping = self.segment().mappings.get(usize::from(id.slot))?;
        (mapping.counted.load(Relaxed) == id.generation).then(|| Tally {
            trips: mapping.trips.load(Relaxed),
            advice: mapping.advice.load(Relaxed),
            populated: mapping.populated.load(Relaxed),
            gain: mapping.gain.load(Relaxed),
        })
    }
}

/// The reader of one mapping hears what of its file is in the page cache.
pub struct Listener {
    pub shared: Arc<Shared>,
    pub mapping: MappingId,
}

impl Audience for Listener {
    fn note(&self, part: Range<u64>, is_cached: bool) {
        let Some(mapping) = self.shared.mapping(self.mapping) else { return };
        match is_cached {
            true => mapping.presence.add(part),
            false => mapping.presence.remove(part),
        }
    }
}

/// `FUTEX_WAIT` or `FUTEX_WAKE` on a word that another process uses too (futex(2)).
fn futex(word: &std::sync::atomic::AtomicU32, operation: libc::c_int, value: u32, most: Option<Duration>) {
    let most = most.map(TimeSpec::from_duration);
    let timeout = most.as_ref().map_or(std::ptr::null(), |most| std::ptr::from_ref::<libc::timespec>(most.as_ref()));
    // SAFETY: the word and the time live through the call. WAIT without a time limit takes a null timeout; all outcomes (woken,
    // the value had changed, the time is over) mean to look again.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout);
    }
}

/// Writes down for the handler how far apart checkpoints are to be, and where its trips are urgent.
pub fn tell(mapping: &Mapping, distance: u64, thresholds: &mut dyn Iterator<Item = Thresholds>) {
    mapping.distance.store(distance, Release);
    let mut watched = 0;
    for (watch, told) in mapping.watches.iter().zip(thresholds.map(Some).chain(std::iter::repeat(None))) {
        // Nothing is quiet or known while it changes: a trip in between wakes us once too often.
        watch.clear();
        let Some(told) = told else { continue };
        for (checkpoint, at) in watch.checkpoints.iter().zip(told.checkpoints) {
            checkpoint.store(at, Release);
        }
        watch.is_backward.store(u64::from(told.is_backward), Release);
        watch.stop.store(told.stops.at, Release);
        watch.first_stop.store(told.stops.first, Release);
        watch.before_stop.store(told.stops.before, Release);
        watch.after_stop.store(told.stops.after, Release);
        watch.stops_apart.store(told.stops.apart, Release);
        watch.is_exact.store(u64::from(told.is_exact), Release);
        watch.low.store(told.known.start, Release);
        watch.high.store(told.known.end, Release);
        watch.quiet_low.store(told.quiet.start, Release);
        watch.quiet_high.store(told.quiet.end, Release);
        watched += 1;
    }
    mapping.watched.store(watched, Release);
}

/// The progress source made of checkpoint trips.
pub struct Checkpoints {
    shared: Arc<Shared>,
}

impl Checkpoints {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn drain(&self, news: &mut Vec<Progress>) {
        // No more than fit: a reader that goes on filling the ring does not fill our memory.
        let told = std::iter::from_fn(|| self.shared.segment().news.pop()).take(CAPACITY as usize);
        for one in told {
            news.push(Progress {
                mapping: MappingId { slot: one.slot, generation: one.generation },
                offset: one.offset,
                what: one.what,
            });
        }
    }
}

impl ProgressSource for Checkpoints {
    fn wait(&mut self, news: &mut Vec<Progress>, most: Option<Duration>) -> bool {
        let segment = self.shared.segment();
        segment.sleeper.prepare();
        self.drain(news);
        if !self.shared.nudged.swap(false, SeqCst) && news.is_empty() && !self.shared.ended.load(SeqCst) {
            futex(&segment.sleeper.0, libc::FUTEX_WAIT, 1, most);
            self.drain(news);
        }
        segment.sleeper.0.store(0, SeqCst);
        self.drain(news);
        !self.shared.ended.load(SeqCst)
    }

    fn has_more_news(&self) -> bool {
        // Whoever trips says so before it looks at what was told: it has seen what was told before this, or is seen here. (On
        // processors that put a load before a store, once in a while neither.)
        fence(SeqCst);
        !self.shared.segment().news.is_empty()
    }

    fn is_mapped(&self, mapping: MappingId) -> bool {
        self.shared.mapping(mapping).is_some()
    }

    fn expect(&self, mapping: MappingId, distance: u64, thresholds: &mut dyn Iterator<Item = Thresholds>) {
        if let Some(mapping) = self.shared.mapping(mapping) {
            tell(mapping, distance, thresholds);
        }
    }

    fn maps_in_vain(&self, mapping: MappingId) -> bool {
        let gain = self.shared.mapping(mapping).map_or(0, |shared| shared.gain.load(Relaxed));
        (1..PROFIT).contains(&gain)
    }

    fn release(&self, mapping: MappingId, part: &std::ops::Range<u64>) {
        if let Some(shared) = self.shared.mapping(mapping) {
            shared.letting_go.ask(part.start, part.end);
        }
    }

    fn is_released(&self, mapping: MappingId) -> bool {
        self.shared.mapping(mapping).is_none_or(|shared| shared.letting_go.is_met())
    }

    fn let_go(&self, mapping: MappingId) {
        self.shared.let_go(mapping);
    }

    fn is_let_go(&self, id: MappingId) -> bool {
        self.shared.mapping(id).is_some_and(|mapping| mapping.veto.load(Relaxed) == id.generation)
    }
}
