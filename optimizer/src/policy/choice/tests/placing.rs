//! Who rests, who is spared a trial, and what counts of those.

use super::*;

/// What was far behind is not tried at the first repetition, but at the next, when it may have become the best: also what showed
/// it before the best did, and nothing that luck can put there.
#[test]
fn what_is_far_behind_is_tried_again_later() {
    let pause = (PAUSE / CHUNK) as usize;
    for (depth, slow) in [4, 16, 84].into_iter().flat_map(|depth| [0, 1].map(|slow| (depth, slow))) {
        // In a short trial, and in a longer one.
        for (short, long, is_far) in
            [(20_000, 20_000, true), (5500, 5500, false), (2000, 12_000, true), (2000, 5500, false)]
        {
            let mut choice = among(2);
            let of_slow = |time| std::array::from_fn::<_, 2, _>(|way| if way == slow { time } else { 1000 });
            let mut time = first_and_later(of_slow(short), of_slow(long));
            serve(&mut choice, &mut time, |_| depth, pause);
            let again = serve(&mut choice, time, |_| depth, pause)[slow];
            assert_eq!(again == 0, is_far, "{depth} in flight, {slow}: {short}, {long}");
            serve(&mut choice, |way, _| if way == slow { 200 } else { 1000 }, |_| depth, pause * LONGER as usize);
            assert_eq!(choice.chosen(), Some(slow), "{depth} in flight, {short}, {long}");
        }
    }
}

/// What the others were far behind is not there any more.
#[test]
fn what_was_far_behind_does_not_rest_when_the_best_fails() {
    let (mut choice, pause) = (among(3), (PAUSE / CHUNK) as usize);
    serve(&mut choice, |way, _| [100, 110, 1000][way], |_| 16, 1000);
    choice.fail(0, Duration::from_secs(10));
    serve(&mut choice, |way, _| [100, 900, 300][way], |_| 16, 2 * pause);
    assert_eq!(choice.chosen(), Some(2));
}

/// Three ways, the last two of them buffered reads, of different costs.
fn among_reads() -> Choice {
    let contender =
        |way: usize| Contender { chunks: [TRIAL, 4 * TRIAL], handicap: [1.0, 1.1, 2.0][way], is_read: way > 0 };
    Choice::new((0..3).map(contender))
}

/// What each way takes in its short trial, and later.
fn first_and_later<const WAYS: usize>(first: [u64; WAYS], later: [u64; WAYS]) -> impl FnMut(usize, usize) -> u64 {
    let mut served = [0; WAYS];
    move |way, _| {
        served[way] += 1;
        if served[way] <= TRIAL as usize { first[way] } else { later[way] }
    }
}

/// A slow way's longer trial keeps the reader waiting: of two buffered reads one is enough, also at the first repetition.
#[test]
fn of_buffered_reads_one_is_tried_long() {
    let pause = (PAUSE / CHUNK) as usize;
    for (cost, is_enough) in [(10_000, true), (950, false)] {
        let mut choice = among_reads();
        let taken = serve(&mut choice, first_and_later([1000; 3], [1000, cost, cost]), |_| 16, 2 * pause);
        assert_eq!(choice.chosen(), Some(0));
        assert!(taken[1] > 2 * TRIAL as usize, "{taken:?}");
        assert_eq!(taken[2] == TRIAL as usize, is_enough, "{taken:?}");
    }
}

/// Also where that one seemed the best and had its trial first.
#[test]
fn a_read_that_comes_first_is_enough_too() {
    let mut choice = among_reads();
    let time = first_and_later([1000, 300, 1000], [1000, 10_000, 10_000]);
    let taken = serve(&mut choice, time, |_| 16, 2000);
    assert!(choice.chosen() == Some(0) && taken[1] > 2 * TRIAL as usize && taken[2] == TRIAL as usize, "{taken:?}");
}

/// The dearer one may fall behind where processors are short.
#[test]
fn a_dear_read_says_nothing_of_a_cheap_one() {
    let mut choice = among_reads();
    let time = first_and_later([1000, 1000, 300], [1000, 500, 10_000]);
    serve(&mut choice, time, |_| 16, 2000);
    assert_eq!(choice.chosen(), Some(1));
}

/// What it did in a short trial may have been luck: it is neither chosen nor a reason to doubt what is.
#[test]
fn what_was_spared_a_trial_counts_as_little_as_what_spared_it() {
    for best in [2500, 4000] {
        let mut choice = among_reads();
        let taken = serve(
            &mut choice,
            first_and_later([1000; 3], [best, 10_000, 10_000]),
            |_| 16,
            2 * (DOUBT / CHUNK) as usize,
        );
        assert!(choice.chosen() == Some(0) && taken[2] == TRIAL as usize, "{taken:?}");
    }
    let mut choice = Choice::new((0..4).map(|way| Contender {
        chunks: [TRIAL, 4 * TRIAL],
        handicap: [1.0, 1.1, 2.0, 1.0][way],
        is_read: [false, true, true, false][way],
    }));
    serve(&mut choice, first_and_later([1000; 4], [3000, 20_000, 20_000, 4500]), |_| 16, 600);
    assert_eq!(choice.chosen(), Some(0));
    choice.fail(0, Duration::from_secs(100));
    assert_eq!(choice.chosen(), Some(3));
}
