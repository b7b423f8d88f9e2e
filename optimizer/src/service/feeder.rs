//! One mapping of one reader: its progress in, requests to the engine out.

use super::retainer::Retainer;
use crate::engine::{Account, Audience, DataFile, Lane, Pool, Seat, Wish};
use crate::options::{Mode, RunOptions};
use crate::policy::plan::Plan;
use crate::policy::storage::Storage;
use crate::policy::stream::{Decision, StreamId, Streams, Thresholds};
use crate::policy::wanted::Wanted;
use crate::policy::window::Sizing;
use crate::progress::{MappingId, ProgressSource};
use precache_contract::ring::Advice;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Where data come from: the file, the session's account of it, and the pool of its mount.
#[derive(Clone)]
pub struct Supply {
    pub file: Arc<DataFile>,
    pub account: Arc<Account>,
    pub pool: Arc<Pool>,
}

/// Which mapping it is, of which reader, whose session.
pub struct Whose {
    pub session: u64,
    pub reader: u64,
    pub mapping: MappingId,
}

pub struct Feeder {
    mapping: MappingId,
    extent: Range<u64>,
    /// Number of the reader, so that lanes of different readers differ.
    reader: u64,
    file: Arc<DataFile>,
    account: Arc<Account>,
    pool: Arc<Pool>,
    /// Goes after all that was queued has been forgotten.
    _seat: Seat,
    mode: Mode,
    pub streams: Streams,
    retainer: Retainer,
    begun: Instant,
    /// What the source was told last.
    told: (u64, Vec<Thresholds>),
    /// Hears what is cached, if the reader maps pages ahead of itself.
    listener: Option<Arc<dyn Audience>>,
    /// What the program says that it will need.
    wanted: Wanted,
}

/// The lane of what the program says that it will need, and how many parts may be queued there: of a program that says so
/// faster than the storage delivers, the rest is read as it comes to it.
const WANTED: StreamId = StreamId::MAX;
const MOST_WANTED: usize = 1024;

/// Farthest checkpoints of a reader that maps pages ahead of itself, at each of them. Mapping so much takes a fraction of a
/// millisecond, during which signals wait.
const STRETCH: u64 = 4 << 20;

impl Feeder {
    /// For a mapping that covers `extent` of the file; `listener` hears what is cached, if pages are mapped ahead of its
    /// reader.
    pub fn new(
        Whose { session, reader, mapping }: Whose,
        supply: Supply,
        extent: Range<u64>,
        options: &RunOptions,
        retainer: Retainer,
        listener: Option<Arc<dyn Audience>>,
    ) -> Self {
        let file = &supply.file;
        let origin = extent.start.min(file.size);
        let extent = origin..extent.end.min(file.size);
        let wanted = Wanted::new(extent.clone(), file.request());
        let ranges = options.ranges.iter().filter(|range| range.file == file.path);
        let plan = Plan::of_mapping(extent.clone(), file.size, ranges.map(|range| range.start..range.end));
        let sizing = Sizing { size: options.size, is_auto: options.size_auto, threshold: options.threshold };
        let storage = Storage { chunk: file.request(), ..Storage::default() };
        let streams = Streams::new(plan, origin, sizing, options.distance, options.distance_auto, storage);
        let Supply { file, account, pool } = supply;
        listener.iter().for_each(|listener| file.audiences.add(listener));
        let (begun, told) = (Instant::now(), (0, Vec::new()));
        let mode = options.mode;
        let max_inflight = options.max_inflight.map(NonZeroUsize::get);
        let seat = pool.join(Wish { session, jobs: options.jobs, max_inflight });
        Self {
            mapping,
            extent,
            reader,
            file,
            account,
            pool,
            _seat: seat,
            mode,
            streams,
            retainer,
            begun,
            told,
            listener,
            wanted,
        }
    }

    /// A reader is at `offset`, or was: more news of it `have_come`.
    pub fn observe(&mut self, offset: u64, have_come: bool, source: &dyn ProgressSource) {
        if self.mode != Mode::On {
            return;
        }
        if let Some(estimate) = self.pool.estimate() {
            self.streams.measured(estimate);
        }
        let maps_ahead = self.listener.is_some() && !source.maps_in_vain(self.mapping);
        self.streams.keep_within(if maps_ahead { STRETCH } else { u64::MAX });
        self.streams.fall_behind(have_come || source.has_more_news());
        let decision = self.streams.observe(offset, self.begun.elapsed());
        self.carry_out(decision, source);
        let parts = self.wanted.tripped(offset, self.streams.has_begun());
        self.fetch(parts);
        if have_come || source.has_more_news() {
            self.streams.told_late();
        }
        self.retainer.go_on(source);
    }

    fn carry_out(&mut self, decision: Decision, source: &dyn ProgressSource) {
        if !decision.over.is_empty() {
            self.pool.forget(|lane| decision.over.iter().any(|&stream| lane == self.lane(stream)));
            for &stream in &decision.over {
                self.retainer.end(stream);
            }
        }
        let fits = |wanted: &(StreamId, Vec<Range<u64>>)| {
            self.retainer.can_afford(wanted.1.iter().map(|extent| extent.end - extent.start).sum())
        };
        let (repair, request) = (decision.repair.filter(fits), decision.request.filter(fits));
        if self.retainer.is_in_the_way(&self.extent) {
            self.mode = Mode::Off;
            source.let_go(self.mapping);
        }
        if let Some((stream, extents)) = repair {
            self.pool.forget(|lane| lane == self.lane(stream));
            self.pool.request(self.lane(stream), &self.file, &self.account, extents);
        }
        if let Some((stream, extents)) = request {
            let parts = self.wanted.is_read(&extents);
            self.fetch(parts);
            self.retainer.advance(stream, &extents);
            self.streams.bound_windows(self.retainer.longest_window());
            self.pool.request(self.lane(stream), &self.file, &self.account, extents);
        }
        let told = (self.streams.distance(), self.streams.thresholds().collect());
        if told != self.told {
            source.expect(self.mapping, told.0, &mut told.1.iter().cloned());
            self.told = told;
        }
    }

    /// The program has said how it will read this part of the file.
    pub fn advise(&mut self, advice: Advice, part: Range<u64>, source: &dyn ProgressSource) {
        let part = part.start.min(self.file.size)..part.end.min(self.file.size);
        if self.mode != Mode::On || part.is_empty() {
            return;
        }
        match advice {
            Advice::Normal | Advice::Sequential | Advice::Random => {
                let decision = self.streams.advise(part, advice);
                self.carry_out(decision, source);
            }
            Advice::WillNeed => {
                let parts = self.wanted.say(part);
                self.fetch(parts);
            }
            Advice::DontNeed => self.retainer.drop_as_told(part),
        }
    }

    /// Fetches these, in order, as far as there is room. The reader's windows take turns with them.
    fn fetch(&self, parts: Vec<Range<u64>>) {
        for part in parts {
            if self.pool.queued(self.lane(WANTED)).extents < MOST_WANTED {
                self.retainer.promise(self.lane(WANTED), part);
            }
        }
    }

    fn lane(&self, stream: u32) -> Lane {
        self.mapping.lane(self.reader, stream)
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        let (reader, mapping, _) = self.lane(0);
        self.pool.forget(|lane| (lane.0, lane.1) == (reader, mapping));
    }
}
