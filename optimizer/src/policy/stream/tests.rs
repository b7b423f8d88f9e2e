use super::*;
use precache_contract::{PAGE, STEP};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const SIZING: Sizing = Sizing { size: 50 * MIB, is_auto: false, threshold: 75 };

fn of(plan: Plan, sizing: Sizing, distance: u64) -> Streams {
    Streams::new(plan, 0, sizing, distance, false, Storage::default())
}

fn see(streams: &mut Streams, offset: u64) -> Decision {
    streams.observe(offset, Duration::ZERO)
}

fn streams(length: u64) -> Streams {
    of(Plan::sequential(0..length), SIZING, 8 * MIB)
}

/// The trips that a sequential reader leaves: small steps, then the grid and the thresholds.
fn read(streams: &mut Streams, range: Range<u64>) -> Vec<Range<u64>> {
    read_on_grid(streams, range, 0, 8 * MIB)
}

/// The same of a mapping protected from `origin` on.
fn read_on_grid(streams: &mut Streams, range: Range<u64>, origin: u64, distance: u64) -> Vec<Range<u64>> {
    let mut requested = Vec::new();
    let mut at = range.start;
    while at < range.end {
        requested.extend(see(streams, at).request.into_iter().flat_map(|(_, extents)| extents));
        let spacing = if streams.thresholds().next().is_none() { STEP } else { distance };
        let grid = origin + ((at - origin) / spacing + 1) * spacing;
        let told = streams.thresholds().flat_map(|t| t.checkpoints).map(|t| t / PAGE * PAGE).filter(|&t| t > at);
        at = told.fold(grid, u64::min);
    }
    requested
}

fn lie_end_to_end(requested: &[Range<u64>]) -> bool {
    requested.windows(2).all(|pair| pair[0].end == pair[1].start)
}

proptest! {
    /// From the third fault to the end of the data, every byte is requested once.
    #[test]
    fn one_pass_requests_every_byte_once(start in 0u64..900, length in 1u64..1000) {
        let (start, end) = (start * MIB + 4096, (start + length) * MIB);
        let mut streams = streams(2000 * MIB);
        let requested = read(&mut streams, start..end);
        prop_assert!(lie_end_to_end(&requested));
        prop_assert!(requested[0].start <= start + 2 * STEP);
        prop_assert!(requested.last().unwrap().end >= end);
        prop_assert!(streams.faults_before_request() <= Some(8));
    }

    /// The same with every distance, size and threshold, and wherever the protected part begins.
    #[test]
    fn every_byte_is_requested_once_on_every_grid(
        origin in 0u64..1 << 20, start in 0u64..1 << 18, gap in 0u64..1 << 12,
        distance in 1u64..1 << 14, size in 1u64..200 * MIB, threshold in 1u8..100,
    ) {
        let (origin, distance) = (origin * PAGE, distance * PAGE);
        let sizing = Sizing { size: size.max(distance), is_auto: false, threshold };
        let first = origin..origin + 1500 * MIB;
        let second = first.end + gap * PAGE..first.end + gap * PAGE + 500 * MIB;
        let plan = Plan::new([first.clone(), second.clone()]);
        let mut streams = Streams::new(plan, origin, sizing, distance, false, Storage::default());
        let start = origin + start * PAGE;
        let mut requested = read_on_grid(&mut streams, start..first.end, origin, distance);
        prop_assert!(requested[0].start <= start + 2 * STEP.max(distance));
        let missing = u64::from(requested.last().unwrap().end < first.end);
        requested.extend(read_on_grid(&mut streams, second.clone(), origin, distance));
        let jumps = requested.windows(2).filter(|pair| pair[0].end != pair[1].start);
        let over_the_gap = |pair: &&[Range<u64>]| pair[0].end == first.end && pair[1].start == second.start;
        prop_assert!(jumps.clone().count() <= 1 && jumps.clone().all(|pair| over_the_gap(&pair)), "{requested:?}");
        prop_assert!(missing == 0 || requested.last().unwrap().end >= first.end);
        prop_assert_eq!(requested.last().unwrap().end, second.end);
    }

    /// Nothing beyond the plan is requested, wherever readers jump.
    #[test]
    fn requests_stay_in_the_plan(trips in prop::collection::vec(0u64..3000, 1..400)) {
        let mut streams = of(Plan::new([100 * MIB..200 * MIB, 10 * MIB..20 * MIB]), SIZING, 8 * MIB);
        for trip in trips {
            for extent in see(&mut streams, trip * STEP).request.into_iter().flat_map(|(_, extents)| extents) {
                prop_assert!(
                    (100 * MIB <= extent.start && extent.end <= 200 * MIB)
                        || (10 * MIB <= extent.start && extent.end <= 20 * MIB)
                );
            }
        }
    }
}

#[test]
fn lmdb_begins_at_its_meta_page() {
    let mut streams = streams(2048 * MIB);
    for page in [0, 50189, 16] {
        assert_eq!(see(&mut streams, page * 4096), Decision::default());
    }
    let (_, extents) = see(&mut streams, 32 * 4096).request.unwrap();
    assert_eq!(extents.len(), 1);
    assert_eq!(extents[0], 32 * 4096..32 * 4096 + MIB);
}

#[test]
fn the_next_epoch_is_requested_at_its_first_fault() {
    let mut streams = streams(500 * MIB);
    read(&mut streams, 64 * 1024..500 * MIB);
    let again = see(&mut streams, 64 * 1024).request.unwrap().1;
    assert_eq!(again[0].start, 64 * 1024);
    assert!(lie_end_to_end(&read(&mut streams, 128 * 1024..500 * MIB)));
}

/// Readers that share a file end their passes before its end.
#[test]
fn the_next_epoch_of_a_part_is_requested_at_its_first_fault() {
    let mut streams = streams(2000 * MIB);
    read(&mut streams, 500 * MIB..1000 * MIB);
    let again = see(&mut streams, 500 * MIB).request.unwrap().1;
    assert_eq!(again[0].start, 500 * MIB);
    assert!(lie_end_to_end(&read(&mut streams, 500 * MIB + STEP..1000 * MIB)));
}

/// Nobody has left it out.
#[test]
fn a_short_part_that_is_read_again_is_requested_again() {
    let mut streams = of(Plan::sequential(0..2000 * MIB), SIZING, MIB);
    for _ in 0..3 {
        let requested = read_on_grid(&mut streams, 500 * MIB..510 * MIB, 0, MIB);
        assert!(requested.last().unwrap().end >= 510 * MIB, "{requested:?}");
    }
}

/// Nobody else would tell of it: the next epoch's first trip wakes.
#[test]
fn the_first_trip_of_the_next_epoch_is_urgent() {
    for (length, part) in [(500 * MIB, 64 * 1024..500 * MIB), (2000 * MIB, 500 * MIB..1000 * MIB)] {
        let mut streams = streams(length);
        read(&mut streams, part.clone());
        assert!(streams.thresholds().all(|told| !told.quiet.contains(&part.start)));
    }
}

/// Records may turn out to lie elsewhere than they are fetched: every checkpoint of a reader that skips wakes.
#[test]
fn every_trip_of_a_reader_that_skips_is_urgent() {
    let mut streams = streams(500 * MIB);
    let record = |number: u64| 16 * MIB + number * 196 * PAGE;
    for number in 0..100 {
        let steps = if number < 3 { 0..4 } else { 0..1 };
        steps.for_each(|step| drop(see(&mut streams, record(number) + step * STEP)));
    }
    assert!(streams.thresholds().count() > 0 && streams.thresholds().all(|told| told.quiet.is_empty()));
}

/// Where a reader trips that goes forward from `at`.
fn next_checkpoint(streams: &Streams, at: u64) -> u64 {
    let told = streams.thresholds().flat_map(|t| t.checkpoints).map(|t| t / PAGE * PAGE).filter(|&t| t > at);
    told.fold((at / (8 * MIB) + 1) * 8 * MIB, u64::min)
}

/// A checkpoint left out is heard of at once, and the third one ends what is queued; one met at a place of no order restores
/// confidence.
#[test]
fn a_reader_that_leaves_out_checkpoints_is_learned_anew() {
    let (mut streams, mut at) = (streams(2000 * MIB), 100 * MIB);
    read(&mut streams, 0..at);
    let stream = streams.latest.unwrap();
    let leave_out = |streams: &mut Streams, at: &mut u64| {
        *at = next_checkpoint(streams, *at) + 40 * PAGE;
        see(streams, *at).over
    };
    for _ in 0..2 {
        assert!(streams.thresholds().all(|told| !told.quiet.is_empty()));
        for _ in 0..2 {
            assert!(leave_out(&mut streams, &mut at).is_empty());
            assert!(streams.thresholds().all(|told| told.quiet.is_empty()));
        }
        at = streams.thresholds().next().unwrap().checkpoints[2];
        assert_ne!(at % (8 * MIB), 0);
        see(&mut streams, at);
    }
    assert_eq!([(); 3].map(|()| leave_out(&mut streams, &mut at)), [vec![], vec![], vec![stream]]);
    assert_eq!((streams.thresholds().count(), streams.distance()), (0, STEP));
}

#[test]
fn two_readers_have_windows_of_their_own() {
    let mut streams = streams(2000 * MIB);
    let mut first = read(&mut streams, 0..30 * MIB);
    let mut second = read(&mut streams, 1000 * MIB..1030 * MIB);
    first.extend(read(&mut streams, 32 * MIB..100 * MIB));
    second.extend(read(&mut streams, 1032 * MIB..1100 * MIB));
    assert!(lie_end_to_end(&first) && lie_end_to_end(&second));
    assert_eq!(streams.requesting(), 2);
}

/// Records of 200 KB at random places: once their length is known, nothing is fetched for them.
#[test]
fn random_records_stop_being_fetched() {
    let mut streams = streams(2000 * MIB);
    let mut place = 7u64;
    let mut requested = 0u64;
    for _ in 0..500 {
        place = (place * 1_664_525 + 1_013_904_223) % 30_000;
        for step in 0..4 {
            if let Some((_, extents)) = see(&mut streams, place * STEP + step * STEP).request {
                requested += extents.iter().map(|e| e.end - e.start).sum::<u64>();
            }
        }
    }
    assert!(requested <= 20 * MIB, "{} MiB requested", requested / MIB);
}

/// A new optimizer meets readers in the middle of their files: they trip at the grid alone.
#[test]
fn a_reader_already_under_way_is_known_by_the_grid() {
    let mut streams = streams(2000 * MIB);
    assert_eq!(see(&mut streams, 800 * MIB), Decision::default());
    assert_eq!(see(&mut streams, 808 * MIB), Decision::default());
    let (_, extents) = see(&mut streams, 816 * MIB).request.unwrap();
    assert_eq!(extents[0].start, 816 * MIB);
}

/// LMDB's root page lies in the middle of the data, and is touched once before them.
#[test]
fn a_page_touched_once_takes_no_trip_from_a_stream() {
    let length = 268_402_688;
    let mut streams = of(Plan::sequential(0..length), SIZING, 20 * MIB);
    let trips = [
        0.0, 191.4375, 0.0625, 0.125, 20.0, 40.0, 58.625, 60.0, 80.0, 100.0, 108.625, 120.0, 140.0, 158.625, 160.0,
        180.0, 200.0, 208.625, 220.0, 240.0,
    ];
    let observe = |trip: f64| see(&mut streams, (trip * MIB as f64) as u64).request;
    let requested: Vec<_> = trips.into_iter().filter_map(observe).flat_map(|(_, extents)| extents).collect();
    assert!(lie_end_to_end(&requested), "{requested:?}");
    assert_eq!(requested.last().unwrap().end, length);
}

/// A size that is no multiple of a page has thresholds within pages: the trip is the page's.
#[test]
fn a_threshold_within_a_page_triggers_at_the_page() {
    let sizing = Sizing { size: 50_000_001, is_auto: false, threshold: 75 };
    let mut streams = of(Plan::sequential(0..2000 * MIB), sizing, 8 * MIB);
    let (mut at, mut late) = (0, 0);
    for trip in 0.. {
        let before = streams.thresholds().next();
        let requested = see(&mut streams, at).request.is_some();
        late += u32::from(before.is_some_and(|t| at == t.checkpoints[0] / PAGE * PAGE) && !requested);
        let grid = if trip < 16 { at + STEP } else { (at / (8 * MIB) + 1) * 8 * MIB };
        let told = streams.thresholds().map(|t| t.checkpoints[0] / PAGE * PAGE).filter(|&t| t > at);
        at = told.fold(grid, u64::min);
        if at >= 1000 * MIB {
            break;
        }
    }
    assert_eq!(late, 0);
}

/// A recorded reader of 300 KB records, backward: steps of 64 KiB, and milliseconds. While it was on its way to a checkpoint
/// placed by a distance of 8 MiB, that became 1 MiB; its next trip was farther off than that, and no point of the grid.
#[test]
fn a_checkpoint_placed_by_an_earlier_distance_is_expected() {
    let sizing = Sizing { size: 50 * MIB, is_auto: true, threshold: 75 };
    let mut streams = Streams::new(Plan::sequential(0..256 * MIB), 0, sizing, 8 * MIB, true, Storage::default());
    let trips = [
        (4092, 0.1),
        (4093, 11.2),
        (4094, 14.3),
        (4095, 14.5),
        (4087, 17.1),
        (4088, 20.7),
        (4089, 24.4),
        (4090, 24.5),
        (4091, 24.5),
        (4092, 24.6),
        (4082, 24.6),
        (4083, 27.2),
        (4073, 51.2),
    ];
    let mut trip = |step: u64, milliseconds: f64| {
        streams.observe(step * STEP, Duration::from_secs_f64(milliseconds / 1e3));
        (streams.latest, streams.distance)
    };
    let (stream, distance) = trips.map(|(step, at)| trip(step, at)).into_iter().last().unwrap();
    assert_eq!(distance, MIB);
    assert_eq!(trip(4031, 81.0).0, stream);
    assert_eq!(trip(4015, 86.9).0, stream);
}

/// On a busy machine many trips are heard of at once, and the spacing of checkpoints changes meanwhile: the others were made at
/// the earlier one.
#[test]
fn trips_that_are_heard_of_late_are_no_change_of_order() {
    let sizing = Sizing { is_auto: true, ..SIZING };
    let mut streams = Streams::new(Plan::sequential(0..1 << 30), 0, sizing, MIB, true, Storage::default());
    let (mut now, mut late) = (Duration::ZERO, 0);
    for at in (0..MIB).step_by(STEP as usize).chain((MIB..200 * MIB).step_by(MIB as usize)) {
        // Slowly, then fast.
        now += Duration::from_micros(if at < 24 * MIB { 17_000 } else { 100 });
        assert!(streams.observe(at, now).over.is_empty(), "at {} MiB, {late} trips late", at / MIB);
        late += u32::from(streams.distance() > MIB);
        if late == 12 {
            return;
        }
    }
    panic!("the spacing has not changed");
}

/// The next pass of a reader that skips begins with data that are cached. Its second trip is heard of when it has made others, and
/// looks as if it had come to it slowly. Unless it is known that it has made others, checkpoints are placed nearer, while those were
/// made at checkpoints from before.
#[test]
fn a_reader_that_skips_is_not_lost_when_it_is_heard_of_late() {
    const PERIOD: u64 = 196 * PAGE;
    let (length, sizing) = (1 << 30, Sizing { is_auto: true, ..SIZING });
    for is_behind in [false, true] {
        let mut streams = Streams::new(Plan::sequential(0..length), 0, sizing, 8 * MIB, true, Storage::default());
        let mut now = Duration::ZERO;
        let mut see = |at: u64, later: Duration, is_behind: bool| {
            now += later;
            streams.fall_behind(is_behind);
            let over = streams.observe(at, now).over;
            (over.len(), streams.latest, streams.distance())
        };
        let step = Duration::from_micros(20);
        for record in 0..2 {
            (0..4).for_each(|part| _ = see(record * PERIOD + part * STEP, step, false));
        }
        let (mut record, mut distance) = (2, 8 * MIB);
        while record * PERIOD < length {
            distance = see(record * PERIOD, 20 * step, false).2;
            record += distance.div_ceil(PERIOD);
        }
        let (_, stream, _) = see(0, step, false);
        see(6 * PAGE, Duration::from_millis(4), is_behind);
        for stop in 1..8 {
            let at = (stop * distance.div_ceil(PERIOD)) * PERIOD + 24 * PAGE;
            let (over, latest, nearer) = see(at, Duration::ZERO, is_behind);
            assert_eq!((over, latest), (0, stream), "stop {stop}");
            assert_eq!(4 * nearer < distance, !is_behind, "{nearer} of {distance} bytes");
        }
    }
}

/// Bytes from one record of 49 pages to the next that is read, one of four.
const PERIOD: u64 = 196 * PAGE;

/// Trips of a reader in small steps.
fn in_steps(record: Range<u64>) -> impl Iterator<Item = u64> {
    let steps = ((record.start + 1).next_multiple_of(STEP)..record.end).step_by(STEP as usize);
    std::iter::once(record.start).chain(steps)
}

/// A stream of records of so many pages, one each `period` pages, that has been known for a few of them.
fn skipping(period: u64, length: u64) -> (Streams, impl Fn(u64) -> Range<u64>) {
    let record = move |number: u64| number * period * PAGE..(number * period + length) * PAGE;
    let mut streams = streams(1 << 30);
    for at in (0..4).map(record).flat_map(in_steps) {
        see(&mut streams, at);
    }
    assert!(streams.streams.iter().any(|s| matches!(s.course, Course::Strided { .. })), "{length} of {period} pages");
    (streams, record)
}

/// A slow reader that skips makes more trips at checkpoints 16 MiB apart before it is told of nearer ones.
#[test]
fn a_reader_that_skips_is_not_lost_between_two_grids() {
    let (length, sizing) = (1 << 30, Sizing { is_auto: true, ..SIZING });
    let mut streams = Streams::new(Plan::sequential(0..length), 0, sizing, 16 * MIB, true, Storage::default());
    let (mut now, mut record) = (Duration::ZERO, 3);
    let mut see = |streams: &mut Streams, at: u64| {
        now += Duration::from_millis(400);
        (streams.observe(at, now).over.len(), streams.latest)
    };
    for at in (0..3).flat_map(|record| in_steps(record * PERIOD..record * PERIOD + 49 * PAGE)) {
        see(&mut streams, at);
    }
    while streams.distance() > MIB {
        record += streams.distance().div_ceil(PERIOD);
        assert!(record * PERIOD < length / 2, "checkpoints are not placed nearer");
        see(&mut streams, record * PERIOD);
    }
    let stream = streams.latest;
    for trip in 0..5 {
        record += (16 * MIB).div_ceil(PERIOD);
        assert_eq!(see(&mut streams, record * PERIOD), (0, stream), "trip {trip}");
    }
    // One at the grid itself, in the midst of a record or not.
    let grid = (record * PERIOD + 17 * MIB) / (16 * MIB) * 16 * MIB;
    assert_eq!(see(&mut streams, grid), (0, stream));
}

/// Where the handler knows no order, a reader that skips trips at each step of its records: no other record begins there, and
/// nothing is asked for anew.
#[test]
fn steps_within_a_record_say_nothing() {
    for (period, length) in [(196, 49), (100, 50), (1000, 250)] {
        let (mut streams, record) = skipping(period, length);
        // At each place in a step.
        for number in (4..200).step_by(3) {
            for at in in_steps(record(number)) {
                let Decision { repair, over, .. } = see(&mut streams, at);
                assert_eq!((repair, over), (None, vec![]), "{} pages into {number}", at / PAGE - number * period);
            }
        }
    }
}

/// The same in a record whose start it has not met, but a checkpoint in it.
#[test]
fn steps_behind_a_checkpoint_say_nothing() {
    let (mut streams, record) = skipping(521, 128);
    let number = (20..).find(|&number| (1..8).contains(&(2048 - record(number).start / PAGE % 2048))).unwrap();
    (5..number).step_by(4).for_each(|number| _ = see(&mut streams, record(number).start));
    for at in in_steps(record(number).start.next_multiple_of(8 * MIB)..record(number).end) {
        let Decision { repair, over, .. } = see(&mut streams, at);
        assert_eq!((repair, over), (None, vec![]), "{} pages into the record", (at - record(number).start) / PAGE);
    }
}

/// One that begins to leave nothing out, and steps on, is learned anew within a record or two.
#[test]
fn steps_through_gaps_end_a_stride() {
    for (period, length) in [(196, 49), (100, 50), (64, 32), (96, 48)] {
        let (mut streams, record) = skipping(period, length);
        let steps = in_steps(record(20).start..record(30).end);
        let until = steps.take_while(|&at| see(&mut streams, at).over.is_empty()).last().unwrap();
        assert!(until < record(20).start + MIB.max(2 * period * PAGE), "{} pages", until / PAGE - 20 * period);
    }
}
