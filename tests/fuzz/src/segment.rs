//! The memory that a reader shares with the optimizer, any word of which it may change at any time; and all that the
//! optimizer does with what stands there.

use crate::input::Input;
use crate::trips::Mapping;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use precache::engine::Audience;
use precache::policy::plan::Plan;
use precache::policy::window::Sizing;
use precache::progress::checkpoints::{Checkpoints, Listener, Shared};
use precache::progress::{MappingId, Progress, ProgressSource};
use precache_contract::VERSION;
use precache_contract::ring::{Advice, News, What};
use precache_contract::segment::Segment;
use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Of the file that is mapped, as the file system tells.
const SIZE: u64 = 1 << 40;

const WORDS: usize = size_of::<Segment>() / size_of::<u64>();

/// More orders tell nothing new, and take long.
const ORDERS: usize = 1024;

pub fn segment(bytes: &[u8]) {
    let mut input = Input(bytes);
    let shared = shared();
    let words = words(shared);
    words.iter().for_each(|word| word.store(0, Relaxed));
    shared.segment().version.store(VERSION, Relaxed);
    let mut optimizer = Optimizer::new(shared);
    for _ in 0..ORDERS {
        if input.is_empty() {
            break;
        }
        let order = input.byte();
        match order % 8 {
            // The reader's side, which may write anything anywhere.
            0 => words[usize::from(input.short()) % WORDS].store(input.word(), Relaxed),
            1 => {
                let place = usize::from(input.short()) | usize::from(input.byte()) << 16;
                words[place % WORDS].store(input.magnitude(), Relaxed);
            }
            2 | 3 => {
                let (slot, generation) = (input.byte().into(), input.byte().into());
                let what = match order {
                    0..128 => What::Trip,
                    128..192 => What::Advice(Advice::Random, input.magnitude()),
                    _ => What::Advice(Advice::Sequential, input.magnitude()),
                };
                shared.segment().news.push(News { slot, generation, offset: input.magnitude(), what });
            }
            4 => register(shared, &mut input),
            5 => drop(shared.segment().sleeper.take_wake()),
            // The optimizer's side.
            6 => optimizer.take_up(MappingId { slot: input.short(), generation: input.byte().into() }),
            _ => optimizer.turn(),
        }
    }
    optimizer.turn();
}

/// A segment as a reader would hand it over, the same for all inputs: mapping one takes longer than using it.
fn shared() -> &'static Arc<Shared> {
    static SHARED: OnceLock<Arc<Shared>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create("fuzz", flags).unwrap());
        file.set_len(Segment::LENGTH as u64).unwrap();
        fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).unwrap();
        nix::sys::uio::pwrite(&file, &VERSION.to_ne_bytes(), 0).unwrap();
        Shared::map(&file).unwrap()
    })
}

fn words(shared: &Shared) -> &[AtomicU64] {
    let first = std::ptr::from_ref(shared.segment()).cast::<AtomicU64>();
    // SAFETY: a Segment is mapped at a page and made of atomics (segment.rs), and so are these within it.
    unsafe { std::slice::from_raw_parts(first, WORDS) }
}

/// An honest registration, of any mapping.
fn register(shared: &Shared, input: &mut Input) {
    let mapping = &shared.segment().mappings[usize::from(input.byte()) % 4];
    mapping.offset.store(input.magnitude(), Relaxed);
    mapping.length.store(input.magnitude(), Relaxed);
    mapping.method.store(input.byte().into(), Relaxed);
    let generation = input.byte().into();
    mapping.counted.store(generation, Relaxed);
    mapping.generation.store(generation, Release);
}

/// What the optimizer has of one reader.
struct Optimizer {
    shared: &'static Arc<Shared>,
    source: Checkpoints,
    mappings: HashMap<MappingId, Mapping>,
    news: Vec<Progress>,
}

impl Optimizer {
    fn new(shared: &'static Arc<Shared>) -> Self {
        let source = Checkpoints::new(Arc::clone(shared));
        Self { shared, source, mappings: HashMap::new(), news: Vec::new() }
    }

    fn take_up(&mut self, id: MappingId) {
        let Some(registration) = self.shared.registration(id) else { return };
        let origin = registration.extent.start.min(SIZE);
        let plan = Plan::of_mapping(registration.extent, SIZE, std::iter::empty());
        let sizing = Sizing { size: 50 << 20, is_auto: true, threshold: 75 };
        self.mappings.entry(id).or_insert_with(|| Mapping::new(plan, origin, SIZE, sizing, (8 << 20, true)));
    }

    /// One turn of a reader's thread.
    fn turn(&mut self) {
        self.shared.nudge();
        self.source.wait(&mut self.news, None);
        for Progress { mapping: id, offset, what } in self.news.drain(..) {
            let Some(mapping) = self.mappings.get_mut(&id) else { continue };
            mapping.now += Duration::from_millis(3);
            match what {
                What::Trip => mapping.observe(offset),
                What::Advice(advice, length) => mapping.advise(advice as u8, offset..offset.saturating_add(length)),
            }
            self.source.expect(id, mapping.streams.distance(), &mut mapping.streams.thresholds());
            let part = offset..offset.saturating_add(1 << 20);
            if self.source.is_released(id) {
                self.source.release(id, &part);
            }
            let listener = Listener { shared: Arc::clone(self.shared), mapping: id };
            listener.note(offset.min(SIZE)..part.end.min(SIZE), !self.source.maps_in_vain(id));
            let _ = self.shared.tally_of(id);
        }
        self.mappings.retain(|id, _| self.source.is_mapped(*id));
    }
}
