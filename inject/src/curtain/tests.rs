//! A model of the kernel's side: which pages are protected. Readers are sequences of page touches.

use super::random::{LOOKS, REST, SENTINELS};
use super::*;
use proptest::prelude::*;
use std::cell::Cell;

struct Machine {
    curtain: Curtain,
    closed: Vec<bool>,
    guarded: Vec<bool>,
    trips: u64,
    nanoseconds: u64,
    /// Nanoseconds to read a page, and that a trip takes.
    pace: u64,
    trip: u64,
    /// How often the clock was asked.
    asked: Cell<u64>,
    guides: Vec<Guide>,
    /// What the optimizer has told of it; 0: nothing.
    distance: u64,
    by_grid: bool,
}

/// The optimizer knows the order of reading everywhere and wants to hear from these offsets.
fn guide(is_backward: bool, told: &[u64]) -> Guide {
    let mut checkpoints = [u64::MAX; precache_contract::segment::WATCHED];
    checkpoints.iter_mut().zip(told).for_each(|(checkpoint, &told)| *checkpoint = told);
    Guide { known: Span { start: 0, end: u64::MAX }, is_backward, is_exact: false, checkpoints, stops: Stops::NONE }
}

impl Machine {
    fn new(pages: usize, distance_pages: u64, method: Method) -> Self {
        Self {
            curtain: Curtain::new(pages as u64 * PAGE, distance_pages * PAGE, method),
            closed: vec![true; pages],
            guarded: vec![false; pages],
            trips: 0,
            nanoseconds: 0,
            // From memory.
            pace: 500,
            trip: 5000,
            asked: Cell::new(0),
            guides: Vec::new(),
            distance: 0,
            by_grid: false,
        }
    }

    fn blocked(&self, page: usize) -> bool {
        self.closed[page] || self.guarded[page]
    }

    /// Touches a page; `true` if that tripped.
    fn touch(&mut self, page: usize) -> bool {
        self.nanoseconds += self.pace;
        if !self.blocked(page) {
            return false;
        }
        let (closed, guarded) = (&mut self.closed, &mut self.guarded);
        let range = |span: Span| (span.start / PAGE) as usize..(span.end / PAGE) as usize;
        self.nanoseconds += self.trip;
        let now = 1 + self.nanoseconds / 1_000_000;
        let asked = &self.asked;
        let ask = || {
            asked.set(asked.get() + 1);
            now
        };
        let told = Told { guides: &self.guides, distance: self.distance, by_grid: self.by_grid, maps_ahead: true };
        self.curtain.trip(page as u64 * PAGE, &told, &Clock::new(&ask), &mut |action| match action {
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

/// Nanoseconds for the fault, the trip and its system calls: measured, with what a slow machine adds to that.
fn trip() -> impl Strategy<Value = u64> {
    prop_oneof![Just(5_000), Just(20_000), Just(60_000)]
}

/// All over the mapping, or so close together that the same pages are met again.
fn touches() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(5000usize), Just(300)].prop_flat_map(|pages| prop::collection::vec(0..pages, 1..600))
}

/// Pages in any order, or from place to place in either direction.
fn needs() -> impl Strategy<Value = Vec<usize>> {
    let row = (0usize..5000, 1usize..200, 1usize..80, any::<bool>()).prop_map(|(from, apart, count, is_backward)| {
        let row = (0..count).map(|place| from + place * apart);
        if is_backward { row.rev().collect() } else { row.collect() }
    });
    prop_oneof![prop::collection::vec(0usize..5000, 1..80), row]
}

fn stops() -> impl Strategy<Value = Stops> {
    let page = || (0u64..5000).prop_map(|page| page * PAGE);
    let few = || (0u64..200).prop_map(|pages| pages * PAGE);
    let around = || 0u32..200;
    (page(), prop_oneof![Just(0), few(), page()], around(), around(), page())
        .prop_map(|(at, apart, before, after, first)| Stops { at, apart, before, after, first })
}

proptest! {
    /// The next stop lies ahead inside the mapping, whole spacings from the one told, and no farther than one and a half of them.
    #[test]
    fn the_next_stop_is_near(
        at in 0u64..5000, told in 0u64..5000, apart in 1u64..400, length in 1u64..5000, is_backward in any::<bool>(),
    ) {
        let at = at.min(length - 1) * PAGE;
        let stops = Stops { at: told * PAGE, apart: apart * PAGE, ..Stops::NONE };
        match stops.next(at, length * PAGE, is_backward) {
            // None is left.
            u64::MAX if is_backward => prop_assert!(at <= stops.at % stops.apart),
            u64::MAX => prop_assert!(length * PAGE <= at + stops.apart),
            stop => {
                prop_assert!(stop < length * PAGE && stop.abs_diff(at) <= stops.apart * 3 / 2);
                prop_assert_eq!(stop < at, is_backward);
                prop_assert_eq!(stop.abs_diff(stops.at) % stops.apart, 0);
            }
        }
    }

    /// What just tripped is accessible, and so are the pages of the trips shortly before.
    #[test]
    fn recent_pages_stay_open(
        method in method(), distance in 1u64..300, touches in touches(),
        told in prop::collection::vec(0u64..5000, 0..3), known in any::<bool>(), is_backward in any::<bool>(),
        is_exact in any::<bool>(), stops in stops(), by_grid in any::<bool>(), pace in prop_oneof![Just(500), Just(400_000)],
    ) {
        let mut machine = Machine::new(5000, distance, method);
        (machine.by_grid, machine.pace) = (by_grid, pace);
        let told: Vec<_> = told.iter().map(|page| page * PAGE).collect();
        machine.guides.extend(known.then(|| Guide { is_exact, stops, ..guide(is_backward, &told) }));
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
            let checkpoints = machine.curtain.checkpoints.items();
            for at in checkpoints.iter().map(|c| c.start()) {
                prop_assert!(machine.blocked((at / PAGE) as usize), "the checkpoint at {at} is open");
                prop_assert!(machine.curtain.open.covers(page(at)), "the checkpoint at {at} is behind the curtain");
            }
            let kept = machine.curtain.kept;
            prop_assert!(kept.is_empty() || checkpoints.iter().any(|c| kept.contains(c.start()) && *c == Checkpoint::sentinel(c.start())));
        }
        // What is closed and not known to be would be opened page by page.
        let curtain = &machine.curtain;
        for number in (0..5000).filter(|_| curtain.state == State::Drawn).filter(|&number| machine.blocked(number)) {
            let span = page(number as u64 * PAGE);
            let is_checkpoint = curtain.checkpoints.items().iter().any(|c| curtain.checkpoint(c.start()).overlaps(span));
            prop_assert!(!curtain.open.covers(span) || is_checkpoint || curtain.net.overlaps(span), "page {number}");
        }
    }

    /// An instruction that needs several checkpoints at once retires, however many (a gather of x86-64 needs up to 34 pages) and
    /// wherever they are, also when it is executed over and over.
    #[test]
    fn every_instruction_gets_on(
        method in method(), distance in 1u64..300, trip in trip(),
        needs in needs(), before in prop::collection::vec(0usize..5000, 0..200),
        stride in 0usize..40, known in any::<bool>(), is_backward in any::<bool>(), is_exact in any::<bool>(),
        by_grid in any::<bool>(), stops in stops(), told in prop::collection::vec(0u64..5000, 0..3),
        turns_at in prop::option::of(0u64..20_000),
    ) {
        let mut machine = Machine::new(20_000, distance, method);
        // It reads a few bytes of each.
        (machine.by_grid, machine.pace, machine.trip) = (by_grid, 100, trip);
        let told: Vec<_> = told.iter().map(|page| page * PAGE).collect();
        machine.guides.extend(known.then(|| Guide { is_exact, stops, ..guide(is_backward, &told) }));
        if let (Some(page), Some(first)) = (turns_at, machine.guides.first_mut()) {
            // Two readers, on either side of it.
            let (there, here) = (Guide { is_backward: !is_backward, ..*first }, first);
            here.known.end = page * PAGE;
            machine.guides.push(there);
        }
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

    /// A sequential reader trips at most once per distance, forward and backward, and in later epochs again.
    #[test]
    fn one_trip_per_distance(
        method in method(), distance in 100u64..400, start in 0usize..1000, cells in 48usize..90,
        is_backward in any::<bool>(),
    ) {
        let pages = (cells * distance as usize).max(start + 1);
        let mut machine = Machine::new(pages, distance, method);
        machine.guides = vec![guide(is_backward, &[])];
        // It computes: pages are closed again once a millisecond at most.
        machine.pace = 20_000;
        let most = ((pages - start) as u64).div_ceil(distance) + 2;
        for epoch in 0..8 {
            let before = machine.trips;
            for page in start..pages {
                machine.touch(if is_backward { pages - 1 - (page - start) } else { page });
            }
            let trips = machine.trips - before;
            prop_assert!(trips <= most, "epoch {epoch}: {trips} trips, at most {most}");
            // A sentinel just before a grid point stands for it.
            let least = ((pages - start) as u64 / distance / 2).saturating_sub(2);
            prop_assert!(trips >= least, "epoch {epoch}: {trips} trips, at least {least}");
        }
    }

    /// A threshold between two checkpoints gets one of its own.
    #[test]
    fn a_threshold_is_a_checkpoint(
        method in method(), distance in 40u64..200, at in 100usize..5000, is_backward in any::<bool>(),
    ) {
        let mut machine = Machine::new(8000, distance, method);
        machine.guides = vec![guide(is_backward, &[at as u64 * PAGE])];
        let mut tripped = false;
        for page in 0..8000 {
            let page = if is_backward { 7999 - page } else { page };
            let now = machine.touch(page);
            tripped |= now && page == at;
        }
        prop_assert!(tripped);
    }
}

/// Each of its trips closes the net of the next one: however long a way that makes, it is not begun anew with each sentinel.
#[test]
fn an_instruction_gets_through_many_nets() {
    for (method, is_backward) in
        [(Method::Mprotect, true), (Method::Mprotect, false), (Method::Guard, true), (Method::Guard, false)]
    {
        let mut machine = Machine::new(20_000, 197, method);
        (machine.pace, machine.trip) = (100, 60_000);
        let first = if is_backward { 4000 } else { 100 };
        let stops = Stops { at: first * PAGE, apart: 100 * PAGE, before: 50, after: 50, first: first * PAGE };
        machine.guides.push(Guide { is_exact: true, stops, ..guide(is_backward, &[]) });
        let pages: Vec<_> = (1..=40).map(|stop| if is_backward { 4100 - 100 * stop } else { 100 * stop }).collect();
        for execution in 0..20 {
            let start = machine.trips;
            while pages.iter().any(|&page| machine.touch(page)) {
                assert!(
                    machine.trips - start < 1000,
                    "{method:?}, {is_backward}: execution {execution} does not get on"
                );
            }
            machine.nanoseconds += 1_000_000;
        }
    }
}

/// The first faults show the start address exactly and each step after it.
#[test]
fn the_start_is_seen_exactly() {
    let mut machine = Machine::new(10_000, 2048, Method::Mprotect);
    let tripped: Vec<_> = (5003..9000).filter(|&page| machine.touch(page)).collect();
    assert_eq!(tripped[..4], [5003, 5008, 5024, 5040]);
    assert_eq!(tripped[precache_contract::STEPS as usize..], [5248, 5376, 5632, 5888, 6144, 6400, 6656, 6912, 8192]);
}

/// Where the order is known, a reader goes from checkpoint to checkpoint at once.
#[test]
fn known_readers_make_no_small_steps() {
    let mut machine = Machine::new(10_000, 2048, Method::Mprotect);
    machine.guides = vec![guide(false, &[6000 * PAGE])];
    let tripped: Vec<_> = (5003..9000).filter(|&page| machine.touch(page)).collect();
    assert_eq!(tripped, [5003, 6000, 6144, 8192]);
    let mut machine = Machine::new(10_000, 2048, Method::Guard);
    machine.guides = vec![guide(true, &[6000 * PAGE])];
    let tripped: Vec<_> = (1003..9000).rev().filter(|&page| machine.touch(page)).collect();
    assert_eq!(tripped, [8999, 8191, 6143, 6000, 4095, 2047]);
}

/// Where nobody fetches, a part between two points of the grid costs one trip, forward, backward, in parts, however often
/// the pages of a tree are read; later epochs do not go by unseen.
#[test]
fn by_the_grid_a_distance_costs_one_trip() {
    type Order = fn(usize) -> Vec<usize>;
    // With the parts that are read, and how many of them are seen again at least.
    let orders: [(Order, usize, usize); 6] = [
        (|page| vec![page], 20, 1),
        (|page| vec![10_239 - page], 20, 1),
        // Two readers, and three in turn.
        (|page| vec![page / 2, 5120 + page / 2], 20, 1),
        (|page| vec![page / 3 + page % 3 * 3584].into_iter().filter(|&page| page < 10_240).collect(), 20, 1),
        // Root, leaf, record.
        (|page| if page.is_multiple_of(49) { vec![7003, page / 2500 * 2500 + 3, page] } else { vec![page] }, 20, 1),
        // One of three distances.
        (|page| vec![page / 512 * 1536 % 10_240 + page % 49].into_iter().filter(|_| page < 3584).collect(), 7, 0),
    ];
    for (number, (order, distances, again)) in orders.into_iter().enumerate() {
        for method in [Method::Mprotect, Method::Guard] {
            let mut machine = Machine::new(10_240, 512, method);
            (machine.guides, machine.by_grid) = (vec![guide(false, &[])], true);
            // From slow storage: time enough for sentinels.
            machine.pace = 50_000;
            for epoch in 0..40 {
                let tripped: Vec<_> = (0..10_240).flat_map(order).filter(|&page| machine.touch(page)).collect();
                let least = if epoch == 0 { distances } else { again };
                let allowed = least..=distances;
                assert!(allowed.contains(&tripped.len()), "order {number}, {method:?}, epoch {epoch}: {tripped:?}");
            }
        }
    }
}

/// The next epoch is seen at its first byte, and all after it, also where few sentinels stand for many distances.
#[test]
fn each_epoch_is_seen_at_its_start() {
    for method in [Method::Mprotect, Method::Guard] {
        let mut machine = Machine::new(500 * 64, 64, method);
        (machine.guides, machine.pace) = (vec![guide(false, &[])], 50_000);
        for epoch in 0..5 {
            let tripped: Vec<_> = (0..500 * 64).filter(|&page| machine.touch(page)).collect();
            assert_eq!(tripped[..3], [0, 64, 128], "{method:?}, epoch {epoch}");
            assert!(tripped.len() <= 502, "{method:?}, epoch {epoch}: {} trips", tripped.len());
        }
    }
}

/// Where many trips share a tick of the clock few ask for it, and yet sentinels are left.
#[test]
fn few_trips_of_a_tick_ask_for_the_time() {
    let mut machine = Machine::new(500 * 64, 64, Method::Guard);
    machine.guides = vec![guide(false, &[])];
    let trips = (0..500 * 64).filter(|&page| machine.touch(page)).count() as u64;
    assert!(machine.asked.get() * 3 < trips, "{} of {trips} trips ask", machine.asked.get());
    let (sentinels, ticks) =
        (machine.guarded.iter().filter(|&&page| page).count() as u64, machine.nanoseconds / 1_000_000);
    assert!(sentinels * 9 >= ticks, "{sentinels} sentinels in {ticks} ticks");
}

/// Told to go in small steps, a reader does so at once, however long it has gone on.
#[test]
fn readers_go_in_small_steps_when_told() {
    let mut machine = Machine::new(20_000, 2048, Method::Mprotect);
    machine.guides = vec![guide(false, &[])];
    assert!((0..9000).filter(|&page| machine.touch(page)).count() < 10);
    machine.guides.clear();
    machine.distance = STEP;
    let tripped: Vec<_> = (9000..10_330).filter(|&page| machine.touch(page)).collect();
    assert_eq!(tripped, [10_240, 10_256, 10_272, 10_288, 10_304, 10_320]);
    // From a place within a step, too: to its end.
    let tripped: Vec<_> = (15_003..15_040).filter(|&page| machine.touch(page)).collect();
    assert_eq!(tripped, [15_003, 15_008, 15_024]);
}

/// A reader that jumps trips where each record begins, until the optimizer knows its order; it is not taken for
/// random.
#[test]
fn the_start_of_each_record_is_seen() {
    for (count, stride, backward) in
        [(49, 196, false), (49, 98, false), (47, 188, true), (1, 16, true), (200, 1600, true)]
    {
        let mut machine = Machine::new(80_000, 2048, Method::Mprotect);
        let (mut record, mut number) = (if backward { 79_000 } else { 3 }, 0);
        while number < 12 {
            let tripped: Vec<_> = (record..record + count).filter(|&page| machine.touch(page)).collect();
            assert_eq!(tripped.first(), Some(&record), "record {number} of {count} every {stride}");
            assert!(machine.curtain.state == State::Drawn);
            record = if backward { record - stride } else { record + stride };
            // Storage takes its time.
            machine.nanoseconds += 1_000_000;
            number += 1;
        }
    }
}

/// In a tick in which nothing may be closed again, what is opened for want of places is the least: not all that lies between a
/// reader and a tree's page far away.
#[test]
fn a_page_far_away_opens_little() {
    let mut machine = Machine::new(100_000, 256, Method::Guard);
    for record in 0..40 {
        machine.touch(record * 200);
    }
    machine.touch(90_000);
    assert!(machine.nanoseconds < 1_000_000, "it is the first tick");
    assert!(machine.closed[40 * 200..89_000].iter().all(|&closed| closed));
    assert!(!machine.blocked(90_000));
    // Nor all that lies between two such pages, where a reader leaves little out.
    let mut machine = Machine::new(100_000, 256, Method::Guard);
    (0..32).for_each(|page| _ = machine.touch(page * 3000));
    machine.touch(31 * 3000 + 60);
    assert!(machine.nanoseconds < 1_000_000, "it is the first tick");
    assert!(machine.closed.iter().filter(|&&closed| !closed).count() < 32 * 16 + 100);
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
    // A call on mapped data need not open anything but there.
    let may_be_closed = |page: &usize| !machine.curtain.is_open(super::page(*page as u64 * PAGE));
    assert!((0..1 << 20).all(|page| !machine.closed[page] || may_be_closed(&page)));
    assert!((0..1 << 20).filter(may_be_closed).count() <= SENTINELS as usize + 2);
}

/// Who reads in order what is cached trips faster than storage delivers, and is no circle: neither forward nor backward.
#[test]
fn order_is_not_random_for_being_fast() {
    for backward in [false, true] {
        let mut machine = Machine::new(1 << 14, 2048, Method::Mprotect);
        // As little as a checkpoint may be from the next, and 64 trips are one tick.
        (machine.distance, machine.pace, machine.trip) = (STEP, 0, 0);
        for page in 0..1 << 14 {
            machine.touch(if backward { (1 << 14) - 1 - page } else { page });
        }
        assert!(machine.trips > 64, "{} trips", machine.trips);
        assert_eq!(machine.curtain.looks, 0, "backward: {backward}");
    }
}

/// A stream that begins after random access has been given up is noticed at two neighbouring sentinels, however often
/// access was found random before.
#[test]
fn order_after_disorder_is_noticed() {
    let mut page = 1usize;
    for looks in 1..8 {
        let mut machine = Machine::new(1 << 18, 2048, Method::Mprotect);
        while machine.curtain.looks < looks || machine.curtain.state == State::Drawn {
            // A fault takes storage's time.
            machine.nanoseconds += 100_000;
            page = (page * 1_664_525 + 1_013_904_223) % (1 << 32);
            machine.touch(page >> 14);
        }
        machine.nanoseconds += 1_000_000 * (REST << LOOKS);
        for page in 0..1 << 18 {
            machine.touch(page);
        }
        let before = machine.trips;
        for page in 0..1 << 18 {
            machine.touch(page);
        }
        assert!(machine.trips - before > 40, "after {looks} looks {} trips", machine.trips - before);
    }
}

/// Reads one of four records of so many pages, at 2 GB/s; returns the trips.
fn skip(machine: &mut Machine, pages: usize, record: usize) -> u64 {
    machine.pace = 2000;
    let read = (0..pages).step_by(4 * record).flat_map(|start| start..start + record);
    read.map(|page| u64::from(machine.touch(page))).sum()
}

/// In the second pass, too, the reader trips at each stop, and fronts that it leaps over do not pile up.
#[test]
fn a_reader_that_skips_trips_at_its_stops_wherever_it_has_been() {
    for method in [Method::Mprotect, Method::Guard] {
        let pages = 64 * 1024;
        // Nearly all points of its grid are in gaps.
        let mut machine = Machine::new(pages, 500, method);
        let stops = Stops { at: 8 * PAGE, apart: 512 * PAGE, before: 56, after: 0, first: 8 * PAGE };
        machine.guides.push(Guide { stops, ..guide(false, &[]) });
        skip(&mut machine, pages, 16);
        for _ in 0..20 {
            let trips = skip(&mut machine, pages, 16);
            assert!((pages as u64 / 512 - 2..pages as u64 / 512 + 100).contains(&trips), "{method:?}: {trips} trips");
            assert!(machine.areas() <= 256, "{method:?}: {} areas", machine.areas());
        }
    }
}

/// Where data are cached it outruns what the optimizer tells: it goes on by its stops, in no small steps, and is not taken for one
/// that follows no order.
#[test]
fn a_reader_that_skips_may_outrun_what_is_told() {
    // The second: stops were placed near where it was slow, and all that follows is cached.
    let kinds = [(128, 1024), (16, 128)].map(|kind| [Method::Mprotect, Method::Guard].map(|method| (kind, method)));
    for ((record, apart), method) in kinds.into_iter().flatten() {
        let pages = 64 * 1024;
        let mut machine = Machine::new(pages, 500, method);
        let (at, before) = (record as u64 / 2 * PAGE, record as u32 * 7 / 2);
        let stops = Stops { at, apart: apart * PAGE, before, after: 0, first: at };
        machine.guides.push(Guide { stops, ..guide(false, &[]) });
        skip(&mut machine, pages, record);
        machine.guides[0].known.end = pages as u64 / 4 * PAGE;
        let expected = pages as u64 / apart;
        for _ in 0..4 {
            let trips = skip(&mut machine, pages, record);
            let is_drawn = machine.curtain.state == State::Drawn;
            assert!((expected - 2..expected + 32).contains(&trips) && is_drawn, "{apart}, {method:?}: {trips} trips");
        }
    }
}
