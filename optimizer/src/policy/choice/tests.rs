mod placing;

use super::*;
use proptest::prelude::*;

const CHUNK: u64 = 128 << 10;
const TRIAL: u32 = 12;
const HANDICAP: f64 = 1.25;

/// So many, each but the first with a handicap.
fn among(ways: usize) -> Choice {
    let handicap = |way| if way == 0 { 1.0 } else { HANDICAP };
    Choice::new((0..ways).map(|way| Contender { chunks: [TRIAL, 4 * TRIAL], handicap: handicap(way), is_read: false }))
}

fn send(choice: &mut Choice, now: Duration) -> usize {
    let way = choice.next();
    choice.send(way, now);
    way
}

/// Sends chunks, `depth` at a time; a chunk takes each way its time. Returns the ways taken.
fn fill(choice: &mut Choice, times: &[u64], depth: usize, chunks: usize) -> Vec<usize> {
    let (mut now, mut taken) = (0, Vec::new());
    for _ in 0..chunks.div_ceil(depth) {
        let sent: Vec<usize> = (0..depth).map(|_| send(choice, Duration::from_micros(now))).collect();
        for &way in &sent {
            now += times[way];
            choice.answer(way, CHUNK, Duration::from_micros(now));
        }
        taken.extend(sent);
        // The reader computes.
        now += 5000;
    }
    taken
}

proptest! {
    /// The fastest is found, or one that is hardly slower and comes before it; the trial is short.
    #[test]
    fn finds_the_fastest(times in prop::collection::vec(50u64..2000, 1..5), depth in 1usize..5) {
        let mut choice = among(times.len());
        let taken = fill(&mut choice, &times, depth, 600);
        let chosen = choice.chosen().unwrap();
        let least = *times.iter().min().unwrap();
        prop_assert!(times[chosen] as f64 <= least as f64 * HANDICAP + 1.0, "{chosen} of {times:?}");
        let trials = 7 * TRIAL as usize * times.len() + 2 * depth;
        prop_assert!(taken[trials..].iter().all(|&way| way == chosen));
    }
}

/// The slower one is not taken for the faster one because what it was tried on was there already.
#[test]
fn what_was_there_already_says_nothing() {
    let mut choice = among(2);
    for now in (0..50).map(|n| Duration::from_micros(n * 10)) {
        assert_eq!(send(&mut choice, now), 0);
        choice.take_back(0, now + Duration::from_micros(5));
    }
    fill(&mut choice, &[900, 100], 2, 60);
    assert_eq!(choice.chosen(), Some(1));
}

#[test]
fn a_way_that_does_not_work_is_left() {
    let mut choice = among(2);
    assert_eq!(send(&mut choice, Duration::ZERO), 0);
    choice.fail(0, Duration::ZERO);
    assert!((0..20).all(|_| send(&mut choice, Duration::ZERO) == 1));
}

#[test]
fn the_reserve_is_taken_when_nothing_else_works() {
    let mut choice =
        Choice::new([12, 0].map(|chunks| Contender { chunks: [chunks; 2], handicap: 1.0, is_read: false }));
    fill(&mut choice, &[900, 100], 2, 60);
    assert_eq!(choice.chosen(), Some(0));
    choice.fail(0, Duration::from_secs(1));
    assert_eq!(choice.next(), 1);
}

#[test]
fn the_chosen_one_may_stop_working() {
    let mut choice = among(2);
    fill(&mut choice, &[100, 900], 2, 60);
    assert_eq!(choice.chosen(), Some(0));
    choice.fail(0, Duration::from_secs(1));
    assert_eq!(send(&mut choice, Duration::from_secs(1)), 1);
}

/// Sends chunks, `depth` in flight all the time; they come one after the other, each way in its time.
fn go_on(choice: &mut Choice, now: &mut u64, time: impl Fn(usize) -> u64, depth: usize, chunks: usize) {
    let mut flying: std::collections::VecDeque<_> =
        (0..depth).map(|_| send(choice, Duration::from_micros(*now))).collect();
    for _ in 0..chunks {
        let way = flying.pop_front().unwrap();
        *now += time(way);
        flying.push_back(send(choice, Duration::from_micros(*now)));
        choice.answer(way, CHUNK, Duration::from_micros(*now));
    }
    for way in flying {
        choice.take_back(way, Duration::from_micros(*now));
    }
}

#[test]
fn luck_in_the_trial_is_found_out() {
    let (mut choice, mut now) = (among(3), 0);
    go_on(&mut choice, &mut now, |way| [500, 300, 20][way], 4, 60);
    assert_eq!(choice.chosen(), Some(2));
    go_on(&mut choice, &mut now, |way| [500, 300, 2000][way], 4, 600);
    assert_eq!(choice.chosen(), Some(1));
    // The storage becomes slower for all, and hardly faster.
    go_on(&mut choice, &mut now, |_| 1000, 4, 1000);
    let chosen = choice.chosen();
    go_on(&mut choice, &mut now, |way| 900 + 100 * u64::from(Some(way) == chosen), 4, 1000);
    assert_eq!(choice.chosen(), chosen);
}

/// The machine was busy with something else when the best was tried again.
#[test]
fn bad_luck_in_a_later_trial_is_found_out() {
    for depth in [4, 16, 64] {
        let mut choice = among(2);
        let (mut is_tried, mut left) = (false, 0);
        // Slow for some time, and again whenever it is tried then, until it has been left.
        let (mut now, mut taken) = (0, [0; 2]);
        let mut flying = std::collections::VecDeque::new();
        for served in 0..20_000 {
            while flying.len() < depth {
                flying.push_back(send(&mut choice, Duration::from_micros(now)));
            }
            is_tried |= served > 2000 && choice.chosen() == Some(1);
            let is_unlucky = served > 2000 && !is_tried;
            let way = flying.pop_front().unwrap();
            now += if way == 0 { if is_unlucky { 900 } else { 100 } } else { 150 };
            taken[way] += 1;
            left += usize::from(way == 1 && is_tried);
            choice.answer(way, CHUNK, Duration::from_micros(now));
        }
        assert!(
            is_tried && choice.chosen() == Some(0) && left < 1000 + 4 * depth,
            "{depth} in flight: {taken:?}, {left}"
        );
    }
}

/// What was sent before the change says nothing of what was chosen.
#[test]
fn a_long_queue_does_not_make_the_choice_alternate() {
    let (mut choice, mut now) = (among(2), 0);
    go_on(&mut choice, &mut now, |way| [1000, 200][way], 4, 30);
    assert_eq!(choice.chosen(), Some(1));
    for _ in 0..30 {
        go_on(&mut choice, &mut now, |way| [1000, 200][way], 64, 100);
        assert_eq!(choice.chosen(), Some(1));
    }
    let mut taken = Vec::new();
    for _ in 0..60 {
        go_on(&mut choice, &mut now, |way| [1000, 5000][way], 64, 100);
        taken.extend(choice.chosen());
    }
    taken.dedup();
    assert!(taken.ends_with(&[0]) && taken.len() <= 2, "{taken:?}");
}

/// What little a reader wants comes at the reader's rate.
#[test]
fn a_reader_that_wants_little_changes_nothing() {
    let mut choice = among(2);
    fill(&mut choice, &[100, 200], 8, 60);
    assert_eq!(choice.chosen(), Some(0));
    fill(&mut choice, &[900, 200], 1, 400);
    assert_eq!(choice.chosen(), Some(0));
    fill(&mut choice, &[900, 200], 8, 400);
    assert_eq!(choice.chosen(), Some(1));
}

/// Also when requests are in flight all the time.
#[test]
fn a_busy_mount_decides_too() {
    let mut choice = among(2);
    let mut flying = std::collections::VecDeque::new();
    for now in (0..100).map(|n| Duration::from_micros(n * 10)) {
        flying.push_back(send(&mut choice, now));
        if flying.len() > 16 {
            choice.answer(flying.pop_front().unwrap(), CHUNK, now);
        }
    }
    assert!(choice.chosen().is_some());
}

#[test]
fn equals_are_decided_by_their_order() {
    let mut choice = among(3);
    fill(&mut choice, &[100, 98, 95], 4, 80);
    assert_eq!(choice.chosen(), Some(0));
}

/// A storage that serves chunks in the order in which they are sent, so many in flight all the time; each way takes its time,
/// of the way and the chunks served so far. Returns the chunks that went each way.
fn serve(
    choice: &mut Choice,
    mut time: impl FnMut(usize, usize) -> u64,
    depth: impl Fn(usize) -> usize,
    chunks: usize,
) -> Vec<usize> {
    let (mut now, mut taken) = (0, vec![0; choice.trials.len()]);
    let mut flying = std::collections::VecDeque::new();
    for served in 0..chunks {
        while flying.len() < depth(choice.next()).max(1) {
            flying.push_back(send(choice, Duration::from_micros(now)));
        }
        let way = flying.pop_front().unwrap();
        now += time(way, served);
        taken[way] += 1;
        choice.answer(way, CHUNK, Duration::from_micros(now));
    }
    taken
}

#[test]
fn a_queue_in_front_of_a_trial_is_not_held_against_it() {
    for depth in [1, 4, 8, 16, 24, 64, 128] {
        // The first trial is over before the second way becomes the faster one by far.
        let mut choice = among(2);
        let early = 2 * TRIAL as usize + depth;
        serve(
            &mut choice,
            |way, served| if served < early { 1000 } else { [1000, 400][way] },
            |_| depth,
            early + 600 + 8 * depth,
        );
        assert_eq!(choice.chosen(), Some(1), "{depth} in flight");
    }
}

/// A trial of milliseconds may be luck, one of a hundred is not: who is behind in it does not keep the reader waiting again.
#[test]
fn what_a_long_trial_has_shown_is_believed() {
    let tried = |microseconds: [u64; 2]| serve(&mut among(2), |way, _| microseconds[way], |_| 4, 400)[1];
    assert!(tried([400, 1000]) > TRIAL as usize + 4);
    assert_eq!(tried([4000, 10_000]), TRIAL as usize);
    // After the pause everybody has another chance: the storage may be another.
    let mut choice = among(2);
    let pause = (PAUSE / CHUNK) as usize;
    let taken = serve(
        &mut choice,
        |way, served| if served < 400 || way == 1 { [4000, 10_000][way] } else { 20_000 },
        |_| 4,
        2 * pause,
    );
    assert!(choice.chosen() == Some(1) && taken[1] > pause / 2, "{taken:?}");
}

/// Also where what is used always seems slower than another was, and where the storage varies.
#[test]
fn trials_cost_little() {
    const COSTS: [u64; 4] = [100, 105, 150, 300];
    for depth in [4, 8, 16, 64] {
        for phases in [[10, 10, 10], [6, 10, 16]] {
            let time = |way: usize, served: usize| COSTS[way] * phases[served / 100 % 3];
            let taken = serve(&mut among(4), time, |_| depth, 100_000);
            let cost: u64 = taken.iter().zip(COSTS).map(|(&chunks, cost)| chunks as u64 * cost).sum();
            assert!(cost < 100_000 * 103 && taken[2] + taken[3] < 3_000, "{depth} in flight: {taken:?}");
        }
    }
}

/// The last chunk that a trial awaits may overtake what others have in flight.
#[test]
fn a_trial_whose_last_chunk_overtakes_others_ends() {
    let (mut choice, now) = (among(2), Duration::from_millis);
    for (way, count) in [(0, TRIAL), (1, TRIAL - 1)] {
        for _ in 0..count {
            assert_eq!(send(&mut choice, now(1)), way);
            choice.answer(way, CHUNK, now(2));
        }
    }
    choice.send(0, now(3));
    assert_eq!(send(&mut choice, now(3)), 1);
    choice.answer(1, CHUNK, now(4));
    assert!(choice.chosen().is_some());
}

/// A storage that answers each chunk after the time of its way, however many there are. Returns the chunks that went each way.
fn answer_after(choice: &mut Choice, latency: impl Fn(usize) -> u64, depth: usize, chunks: usize) -> Vec<usize> {
    let (mut now, mut taken, mut flying) = (0, vec![0; choice.trials.len()], std::collections::BTreeMap::new());
    for number in 0..chunks {
        while flying.len() < depth {
            let way = send(choice, Duration::from_micros(now));
            // No two at the same moment.
            flying.insert((now + latency(way), number, flying.len()), way);
        }
        let ((landed, ..), way) = flying.pop_first().unwrap();
        now = landed.max(now + 10);
        taken[way] += 1;
        choice.answer(way, CHUNK, Duration::from_micros(now));
    }
    taken
}

/// A path of 10 ms and 800 MB/s, where each way has no more than so many chunks in flight, whatever is sent. Returns the chunks that
/// went each way.
fn serve_bounded(choice: &mut Choice, bounds: &[usize], depth: usize, chunks: usize) -> Vec<usize> {
    let (mut now, mut link_free, mut taken) = (0, 0, vec![0; bounds.len()]);
    let (mut waiting, mut at_storage) = (vec![0; bounds.len()], std::collections::BTreeSet::new());
    for _ in 0..chunks {
        while at_storage.len() + waiting.iter().sum::<usize>() < depth {
            waiting[send(choice, Duration::from_micros(now))] += 1;
            for (way, waiting) in waiting.iter_mut().enumerate() {
                let has_room = at_storage.iter().filter(|(_, other)| *other == way).count() < bounds[way];
                if *waiting > 0 && has_room {
                    *waiting -= 1;
                    link_free = link_free.max(now + 10_000) + 164;
                    at_storage.insert((link_free, way));
                }
            }
        }
        let (landed, way) = at_storage.pop_first().unwrap();
        now = landed;
        taken[way] += 1;
        choice.answer(way, CHUNK, Duration::from_micros(now));
    }
    taken
}

/// The kernel bounds some requests in the background: more of them only wait. A trial does not fill that queue, and the reader
/// does not wait for it.
#[test]
fn what_is_bounded_elsewhere_is_not_sent_a_whole_depth() {
    for depth in [48, 64, 96] {
        let after_short_trials = || {
            let mut choice = among(2);
            fill(&mut choice, &[1000, 1000], 1, 2 * TRIAL as usize);
            choice
        };
        let taken = serve_bounded(&mut after_short_trials(), &[usize::MAX, 12], depth, 4000);
        assert!((1..=2 * TRIAL as usize).contains(&taken[1]), "{depth} in flight: {taken:?}");
        let mut choice = after_short_trials();
        let taken = serve_bounded(&mut choice, &[12, usize::MAX], depth, 4000);
        assert!(choice.chosen() == Some(1) && taken[1] > 3000, "{depth} in flight: {taken:?}");
    }
}

/// A long path makes a short trial take long: two round trips are no more to be believed for that.
#[test]
fn equals_on_a_long_path_are_all_tried_again() {
    for milliseconds in [10, 60, 200] {
        let taken = answer_after(&mut among(2), |_| milliseconds * 1000, 8, 300);
        assert!(taken.iter().all(|&chunks| chunks > 2 * TRIAL as usize), "{milliseconds} ms: {taken:?}");
    }
}

/// Where nothing that is wanted can go one way, that way's trial does not keep the others waiting.
#[test]
fn a_trial_that_is_passed_over_is_given_up() {
    for sent_before in [0, 5, TRIAL as usize + 5] {
        let (mut choice, mut sent) = (among(3), 0);
        let mut used = Vec::new();
        for now in (0..3000).map(|n| Duration::from_micros(n * 100)) {
            let way = match choice.next() {
                2 if sent >= sent_before => 1,
                way => way,
            };
            sent += usize::from(way == 2);
            choice.send(way, now);
            choice.answer(way, CHUNK, now + Duration::from_micros([20, 80, 10][way]));
            used.push(way);
        }
        assert!(choice.chosen().is_some());
        assert!(
            used[2000..].iter().all(|&way| way == 0) || sent_before > 5,
            "after {sent_before}: {:?}",
            choice.chosen()
        );
    }
}

#[test]
fn what_was_left_out_does_not_follow_the_chosen_one() {
    let mut choice = among(3);
    serve(&mut choice, |way, _| [5000, 100, 120][way], |_| 4, 400);
    assert_eq!(choice.chosen(), Some(1));
    choice.fail(1, Duration::from_secs(10));
    assert_eq!(choice.next(), 2);
}

proptest! {
    /// Whatever comes in whatever order, the counts are right, and a way that failed is taken only if all have.
    #[test]
    fn any_order_is_survived(steps in prop::collection::vec((0usize..12, 0usize..4, 1u64..5000), 1..2000)) {
        let (mut choice, mut now, mut flying) = (among(4), 0, [0u32; 4]);
        let mut failed = [false; 4];
        for (step, way, time) in steps {
            now += time;
            let at = Duration::from_micros(now);
            match step {
                0..6 => {
                    // Sometimes another way than the one that is told.
                    let way = if step == 0 { way } else { choice.next() };
                    prop_assert!(step == 0 || !failed[way] || failed == [true; 4]);
                    choice.send(way, at);
                    flying[way] += 1;
                }
                6..10 if flying[way] > 0 => {
                    choice.answer(way, CHUNK, at);
                    flying[way] -= 1;
                }
                10 if flying[way] > 0 => {
                    choice.take_back(way, at);
                    flying[way] -= 1;
                }
                11 if time < 50 => {
                    choice.fail(way, at);
                    flying[way] = flying[way].saturating_sub(1);
                    failed[way] = true;
                }
                _ => {}
            }
            let all: u32 = flying.iter().sum();
            for (trial, flying) in choice.trials.iter().zip(flying) {
                prop_assert!(!trial.is_probe || trial.is_on());
                prop_assert!(trial.in_flight() == flying && trial.apart <= flying);
                prop_assert!(trial.queue <= all - flying, "it would never be through");
            }
        }
    }
}
