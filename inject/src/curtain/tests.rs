//! A model of the kernel's side: which pages are protected. Readers are sequences of page touches.

use super::*;
use proptest::prelude::*;

struct Machine {
    curtain: Curtain,
    closed: Vec<bool>,
    guarded: Vec<bool>,
    trips: u64,
    nanoseconds: u64,
    thresholds: Vec<u64>,
}

impl Machine {
    fn new(pages: usize, distance_pages: u64, method: Method) -> Self {
        Self {
            curtain: Curtain::new(pages as u64 * PAGE, distance_pages * PAGE, method),
            closed: vec![true; pages],
            guarded: vec![false; pages],
            trips: 0,
            nanoseconds: 0,
            // The optimizer has spoken: no checkpoints of its own.
            thresholds: vec![u64::MAX],
        }
    }

    fn blocked(&self, page: usize) -> bool {
        self.closed[page] || self.guarded[page]
    }

    /// Touches a page; `true` if that tripped.
    fn touch(&mut self, page: usize) -> bool {
        // Half a microsecond to read a page from memory, and five for a trip.
        self.nanoseconds += 500;
        if !self.blocked(page) {
            return false;
        }
        let (closed, guarded) = (&mut self.closed, &mut self.guarded);
        let range = |span: Span| (span.start / PAGE) as usize..(span.end / PAGE) as usize;
        self.nanoseconds += 5000;
        let now = 1 + self.nanoseconds / 1_000_000;
        self.curtain.trip(page as u64 * PAGE, &self.thresholds, now, &mut |action| match action {
            Action::Open(span) => {
                closed[range(span)].fill(false);
                guarded[range(span)].fill(false);
            }
            Action::Close(span) => closed[range(span)].fill(true),
            Action::Guard(at) => guarded[(at / PAGE) as usize] = true,
            Action::Lift(at) => guarded[(at / PAGE) as usize] = false,
        });
        self.trips += 1;
        true
    }

    /// Number of areas that the kernel keeps: runs of equal protection (guards are none of them).
    fn areas(&self) -> usize {
        1 + self.closed.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![Just(Method::Mprotect), Just(Method::Guard)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// What just tripped is accessible, and so are the pages of the trips shortly before.
    #[test]
    fn recent_pages_stay_open(
        method in method(), distance in 1u64..300, touches in prop::collection::vec(0usize..5000, 1..600),
        thresholds in prop::collection::vec(0u64..5000 * PAGE, 0..3),
    ) {
        let mut machine = Machine::new(5000, distance, method);
        machine.thresholds = thresholds;
        let mut recent: Vec<usize> = Vec::new();
        for touch in touches {
            if machine.touch(touch) {
                recent.retain(|&page| page != touch);
                recent.insert(0, touch);
                recent.truncate(RECENT);
            }
            for &page in &recent {
                prop_assert!(!machine.blocked(page), "page {page} is protected again");
            }
            prop_assert!(machine.areas() <= 256, "{} areas", machine.areas());
        }
    }

    /// An instruction that needs several checkpoints at once retires, however many and wherever they are, also when
    /// it is executed over and over.
    #[test]
    fn every_instruction_gets_on(
        method in method(), distance in 1u64..300,
        needs in prop::collection::vec(0usize..5000, 1..200), before in prop::collection::vec(0usize..5000, 0..200),
        stride in 0usize..40,
    ) {
        let mut machine = Machine::new(20_000, distance, method);
        for page in before {
            machine.touch(page);
        }
        for repeat in 0..20 {
            let pages: Vec<_> = needs.iter().map(|page| (page + repeat * stride * 16) % 20_000).collect();
            let start = machine.trips;
            // The processor starts over after each fault.
            while pages.iter().any(|&page| machine.touch(page)) {
                prop_assert!(machine.trips - start < 64 * 200 + 1000, "does not get on");
            }
        }
    }

    /// A sequential reader trips at most once per distance, and in later epochs again.
    #[test]
    fn one_trip_per_distance(method in method(), distance in 100u64..400, start in 0usize..1000, cells in 48usize..90) {
        let pages = (cells * distance as usize).max(start + 1);
        let mut machine = Machine::new(pages, distance, method);
        let most = ((pages - start) as u64).div_ceil(distance) + u64::from(LEARN) + 1;
        for epoch in 0..4 {
            let before = machine.trips;
            for page in start..pages {
                machine.touch(page);
            }
            let trips = machine.trips - before;
            prop_assert!(trips <= most, "epoch {epoch}: {trips} trips, at most {most}");
            let least = (pages - start) as u64 / distance / 2;
            prop_assert!(trips >= least, "epoch {epoch}: {trips} trips, at least {least}");
        }
    }

    /// A threshold between two checkpoints gets one of its own.
    #[test]
    fn a_threshold_is_a_checkpoint(method in method(), distance in 20u64..200, at in 100usize..5000) {
        let mut machine = Machine::new(8000, distance, method);
        machine.thresholds = vec![at as u64 * PAGE];
        let mut tripped = false;
        for page in 0..8000 {
            let now = machine.touch(page);
            tripped |= now && page == at;
        }
        prop_assert!(tripped);
    }
}

/// The first faults show the start address exactly and each step after it.
#[test]
fn the_start_is_seen_exactly() {
    let mut machine = Machine::new(10_000, 2048, Method::Mprotect);
    let tripped: Vec<_> = (5003..9000).filter(|&page| machine.touch(page)).collect();
    assert_eq!(tripped, [5003, 5008, 5024, 5040, 6144, 8192]);
}

/// Until the optimizer has spoken, a reader is not let out of sight for a whole distance.
#[test]
fn a_late_answer_finds_the_reader_in_sight() {
    let mut machine = Machine::new(10_000, 8192, Method::Mprotect);
    machine.thresholds = Vec::new();
    let tripped: Vec<_> = (0..10_000).filter(|&page| machine.touch(page)).collect();
    assert_eq!(tripped, [0, 16, 32, 48, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 8192]);
}

#[test]
fn random_access_ends_in_peace() {
    let mut machine = Machine::new(1 << 20, 2048, Method::Mprotect);
    let mut page = 1usize;
    for _ in 0..200_000 {
        page = (page * 1_664_525 + 1_013_904_223) % (1 << 20);
        machine.touch(page);
    }
    assert!(machine.trips < 600, "{} trips", machine.trips);
    let closed = machine.closed.iter().filter(|&&closed| closed).count();
    assert!(closed <= SENTINELS as usize, "{closed} pages are still protected");
}

/// A stream that begins after random access has been given up is noticed at a sentinel.
#[test]
fn order_after_disorder_is_noticed() {
    let mut machine = Machine::new(1 << 20, 2048, Method::Mprotect);
    let mut page = 1usize;
    while !matches!(machine.curtain.state, State::Resting { .. }) {
        page = (page * 1_664_525 + 1_013_904_223) % (1 << 20);
        machine.touch(page);
    }
    let before = machine.trips;
    for page in 0..1 << 20 {
        machine.touch(page);
    }
    assert!(machine.trips - before > 400, "{} trips", machine.trips - before);
}
