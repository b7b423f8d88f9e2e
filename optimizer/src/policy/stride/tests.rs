use super::*;
use proptest::prelude::*;

fn pages(stride: &Stride, part: Range<u64>) -> Vec<Range<u64>> {
    stride.extents(part).into_iter().map(|e| e.start / PAGE..e.end / PAGE).collect()
}

/// Of four records of 49 pages one is read.
fn one_of_four(backward: bool) -> Stride {
    let period = 196 * PAGE as i64;
    Stride::new(1000 * PAGE, if backward { -period } else { period }, 49 * PAGE..49 * PAGE)
}

#[test]
fn records_are_fetched_and_gaps_are_not() {
    assert_eq!(pages(&one_of_four(false), 1000 * PAGE..1400 * PAGE), [1000..1050, 1196..1246, 1392..1400]);
    assert_eq!(pages(&one_of_four(true), 700 * PAGE..1010 * PAGE), [1000..1010, 804..854]);
}

proptest! {
    /// Parts that lie end to end give the same bytes as the whole, forward and backward.
    #[test]
    fn parts_make_the_whole(
        period in 60u64..400, length in 1u64..50, cuts in prop::collection::vec(0u64..5000, 1..10), backward in any::<bool>(),
        wander in 0.0f64..2.0,
    ) {
        let jump = (period * PAGE) as i64;
        let mut stride = Stride::new(2000 * PAGE, if backward { -jump } else { jump }, PAGE..length * PAGE);
        stride.wander = wander;
        let mut cuts = cuts;
        cuts.extend([0, 5000]);
        cuts.sort_unstable();
        let mut parts: Vec<_> = cuts.windows(2).flat_map(|cut| pages(&stride, cut[0] * PAGE..cut[1] * PAGE)).flatten().collect();
        let mut whole: Vec<_> = pages(&stride, 0..5000 * PAGE).into_iter().flatten().collect();
        parts.sort_unstable();
        whole.sort_unstable();
        prop_assert_eq!(&parts, &whole);
        whole.dedup();
        prop_assert_eq!(parts.len(), whole.len());
    }

    /// Where it is asked whether anything of a gap is read, no record is taken to begin.
    #[test]
    fn what_is_asked_in_a_gap_lies_in_one(
        period in prop_oneof![3u64..64, 64u64..3000], length in 1u64..3000, from in 1000u64..4000,
    ) {
        let stride = Stride::new(1000 * PAGE, (period * PAGE) as i64, length.min(period - 1) * PAGE..length.min(period - 1) * PAGE);
        let is_gap = |page: u64| stride.place(page * PAGE) == Place::Gap;
        match stride.probe_gap(from * PAGE) {
            Some(probe) => {
                prop_assert!(probe.at > from * PAGE);
                prop_assert_eq!(stride.place(probe.at), Place::Gap, "{:?}", probe);
            }
            // It tells by itself, or there is none.
            None => prop_assert!(is_gap(from) || !(from..from + 2 * period).any(is_gap), "none is found"),
        }
    }

    /// Whatever the records do within bounds, what is read of the next few is fetched.
    #[test]
    fn wandering_records_are_followed(shifts in prop::collection::vec(prop_oneof![8 => Just(0i64), 1 => 1i64..3, 1 => -1i64..0], 200)) {
        let mut stride = one_of_four(false);
        let (mut at, mut missed) = (1000i64, 0);
        for (number, shift) in shifts.iter().enumerate() {
            at += 196 + shift;
            let fetched: Vec<_> = pages(&stride, at as u64 * PAGE..(at + 49) as u64 * PAGE).into_iter().flatten().collect();
            missed += usize::from(number > 20 && fetched.len() < 49);
            // It trips at every fourth.
            if number % 4 == 0 {
                let place = stride.place(at as u64 * PAGE);
                let Place::Start { records, deviation } = place else { panic!("{place:?} at record {number}") };
                stride.meet(at as u64 * PAGE, records, deviation);
            }
        }
        prop_assert!(missed <= 36, "{missed} of 180");
    }
}

#[test]
fn pages_are_told_apart() {
    let stride = one_of_four(false);
    assert_eq!(stride.place(1392 * PAGE), Place::Start { records: 2, deviation: 0 });
    assert_eq!(stride.place(1393 * PAGE), Place::Start { records: 2, deviation: PAGE as i64 });
    assert_eq!(stride.place(1420 * PAGE), Place::Inside);
    assert_eq!(stride.place(1500 * PAGE), Place::Gap);
}

/// The length of records is found by trips within them.
#[test]
fn probes_find_the_length() {
    let mut stride = Stride::new(0, 200 * PAGE as i64, 33 * PAGE..48 * PAGE);
    let mut from = 0;
    while let Some(probe) = stride.probe(from) {
        let record = probe.at / PAGE / 200;
        let reaches = probe.at / PAGE % 200 < 41;
        stride.learn(&probe, if reaches { probe.at } else { (record + 1) * 200 * PAGE });
        from = probe.at;
        assert!(from < 200 * 200 * PAGE);
    }
    assert!(stride.low <= 41 * PAGE && 41 * PAGE <= stride.high, "{stride:?}");
}

/// A page between the records now and then does not make them wander: a hundred records ahead they are fetched as a whole, with
/// a page or two around them.
#[test]
fn pages_between_records_need_little_room() {
    let mut stride = one_of_four(false);
    let start = |record: u64| (1000 + record * 196 + record / 39) * PAGE;
    for record in (10..400).step_by(10) {
        let Place::Start { records, deviation } = stride.place(start(record)) else { panic!("lost at {record}") };
        stride.meet(start(record), records, deviation);
    }
    for record in 400..500 {
        let own = start(record)..start(record) + 49 * PAGE;
        assert_eq!(stride.extents(own.clone()), std::slice::from_ref(&own), "record {record}");
        let fetched = pages(&stride, own.start - 20 * PAGE..own.end + 20 * PAGE).into_iter().flatten().count();
        assert!(fetched <= 52, "{fetched} pages for record {record}");
    }
}

/// Two pages more, met at the next record but two, say as much as met twenty records later.
#[test]
fn a_shift_needs_little_room_however_soon_it_is_met() {
    let mut stride = one_of_four(false);
    (1..=20).for_each(|of_ten| stride.meet((1000 + of_ten * 10 * 196) * PAGE, 10, 0));
    let at = 1000 + 203 * 196 + 2;
    let Place::Start { records, deviation } = stride.place(at * PAGE) else { panic!("lost") };
    stride.meet(at * PAGE, records, deviation);
    let fetched =
        pages(&stride, (at + 99 * 196 + 100) * PAGE..(at + 100 * 196 + 100) * PAGE).into_iter().flatten().count();
    assert!(fetched <= 49 + 2 * 4, "{fetched} pages");
}

/// Two pages more at the first record that is met say less than as much at each.
#[test]
fn the_first_shift_is_not_all_that_is_known() {
    let mut stride = one_of_four(false);
    stride.meet((1196 + 2) * PAGE, 1, 2 * PAGE as i64);
    let (earlier, later) = stride.spread(60);
    assert!(earlier.max(later) <= 9 * PAGE, "{} pages", earlier.max(later) / PAGE);
}

/// A page between the records now and then becomes part of the period.
#[test]
fn the_mean_period_is_learned() {
    let mut stride = one_of_four(false);
    for record in 1..400u64 {
        let at = 1000 + record * 196 + record / 39;
        let Place::Start { records, deviation } = stride.place(at * PAGE) else { panic!("lost at {record}") };
        stride.meet(at * PAGE, records, deviation);
    }
    assert!((stride.period / PAGE as f64 - 196.0 - 1.0 / 39.0).abs() < 0.01, "{}", stride.period);
}

/// Where records lie is told anew at each one that is met; what was asked for stays what it was.
#[test]
fn what_was_asked_for_is_remembered() {
    let mut stride = one_of_four(false);
    let mut asked = Asked::default();
    asked.extents(&stride, 1000 * PAGE..3000 * PAGE);
    assert!(!asked.lacks(1196 * PAGE) && !asked.lacks(1197 * PAGE));
    for record in 1..=4 {
        let at = (1002 + record * 196) * PAGE;
        let Place::Start { records, deviation } = stride.place(at) else { panic!("lost at {record}") };
        stride.meet(at, records, deviation);
        assert!(asked.lacks(at), "record {record}");
    }
    asked.extents(&stride, 1786 * PAGE..3000 * PAGE);
    assert!(!asked.lacks((1002 + 5 * 196) * PAGE) && asked.lacks((1002 + 4 * 196) * PAGE - 196 * PAGE));
}
