use super::*;
use std::collections::BTreeSet;

const PIECE: u64 = 2 << 20;

/// A mount that passes pieces one after the other, each some time after it was sent; what is sent while `bears` others are in
/// flight takes four times as long.
struct Mount {
    latency: Duration,
    bytes_per_second: f64,
    bears: usize,
}

const LONG_PATH: Mount = Mount { latency: Duration::from_millis(20), bytes_per_second: 800e6, bears: 32 };

/// Has so many bytes come in, with no more in flight than `wanted`; how long that takes,
/// and the most that were in flight.
fn fill(pieces: &mut Pieces, mount: &Mount, wanted: usize, bytes: u64) -> (Duration, usize) {
    pieces.hear(mount.latency);
    let (mut now, mut passed, mut flying) = (Duration::ZERO, Duration::ZERO, BTreeSet::new());
    let mut most = 0;
    for number in 0..bytes / PIECE {
        while flying.len() < pieces.most().min(wanted) {
            let trips = if flying.len() < mount.bears { 1 } else { 4 };
            passed = passed.max(now + mount.latency) + Duration::from_secs_f64(PIECE as f64 / mount.bytes_per_second);
            flying.insert((passed.max(now + mount.latency * trips), number, flying.len()));
        }
        most = most.max(flying.len());
        (now, ..) = flying.pop_first().unwrap();
        pieces.learn(PIECE, flying.len() + 1, now);
    }
    (now, most)
}

#[test]
fn a_mount_that_bears_more_gets_more() {
    let mut pieces = Pieces::default();
    fill(&mut pieces, &LONG_PATH, 64, 512 << 20);
    assert_eq!(pieces.most(), 10, "with these the path is full");
    let mut pieces = Pieces::default();
    fill(&mut pieces, &Mount { latency: Duration::from_millis(100), ..LONG_PATH }, 64, 512 << 20);
    assert_eq!(pieces.most(), 20);
}

/// A rate measured over a moment is not that of busy processors, between whose turns what is in flight has to last.
#[test]
fn what_only_just_fills_the_path_is_not_enough() {
    let mut pieces = Pieces::default();
    fill(&mut pieces, &Mount { latency: Duration::from_millis(11), ..LONG_PATH }, 64, 512 << 20);
    assert_eq!(pieces.most(), 10);
}

/// Where nobody tells what is cached, the first chunk is one in which the reader has been.
#[test]
fn an_answer_out_of_memory_hides_no_room() {
    let mut pieces = Pieces::default();
    pieces.hear(Duration::from_micros(400));
    for _ in 0..2 {
        pieces.hear(LONG_PATH.latency);
    }
    fill(&mut pieces, &LONG_PATH, 64, 512 << 20);
    assert_eq!(pieces.most(), 10);
}

/// They would only stand in front of what the reader asks for itself.
#[test]
fn a_short_path_gets_no_more() {
    for (milliseconds, bytes_per_second) in [(0, 800e6), (2, 800e6), (2, 200e6), (10, 200e6)] {
        let mount = Mount { latency: Duration::from_millis(milliseconds), bytes_per_second, ..LONG_PATH };
        let mut pieces = Pieces::default();
        let (_, most) = fill(&mut pieces, &mount, 64, 512 << 20);
        assert_eq!(most, FEW, "{milliseconds} ms");
    }
}

#[test]
fn what_is_dropped_is_noticed_and_costs_little() {
    // What it costs, it costs once in this.
    const SPAN: u64 = PAUSE - (64 << 20);
    for (bears, tried, left) in [(FEW, 5, FEW), (6, 10, 5)] {
        let mut pieces = Pieces::default();
        let mount = Mount { bears, ..LONG_PATH };
        let (took, most) = fill(&mut pieces, &mount, 64, SPAN);
        assert_eq!((most, pieces.most()), (tried, left));
        let (least, _) = fill(&mut Pieces::default(), &mount, left, SPAN);
        assert!(took < least.mul_f64(1.05), "{took:?} instead of {least:?}");
    }
}

/// Its rate says nothing of the mount.
#[test]
fn a_reader_that_wants_little_changes_nothing() {
    let mut pieces = Pieces::default();
    for wanted in [1, 2] {
        fill(&mut pieces, &LONG_PATH, wanted, 512 << 20);
        assert_eq!(pieces.most(), FEW);
    }
    fill(&mut pieces, &LONG_PATH, 64, 512 << 20);
    assert_eq!(pieces.most(), 10);
}

/// Whose bound, or whose reader, lets fewer in flight than are tried: those that are there are judged, and what is not is given up.
#[test]
fn what_cannot_be_judged_does_not_stay() {
    let mount = Mount { bears: 6, ..LONG_PATH };
    for bound in [6, 7] {
        let mut pieces = Pieces::default();
        pieces.set_bound(bound);
        let (_, most) = fill(&mut pieces, &mount, 64, 512 << 20);
        assert!(most <= bound && pieces.settled, "{most} of {bound}");
    }
    let mut pieces = Pieces::default();
    pieces.set_bound(6);
    fill(&mut pieces, &LONG_PATH, 64, 512 << 20);
    assert_eq!((pieces.most(), pieces.settled), (6, true));
    pieces.set_bound(64);
    assert_eq!((pieces.most(), pieces.settled), (FEW, false), "nobody knows what more would bring");
    let mut pieces = Pieces::default();
    while pieces.most() < 10 {
        fill(&mut pieces, &LONG_PATH, 64, PIECE * 8);
    }
    fill(&mut pieces, &LONG_PATH, 6, UNJUDGED);
    assert_eq!((pieces.most(), pieces.settled), (5, true));
}

/// While others are tried, pieces come in at another rate.
#[test]
fn an_interrupted_spell_does_not_count() {
    let mut pieces = Pieces::default();
    pieces.hear(LONG_PATH.latency);
    for now in (0..100).map(Duration::from_millis) {
        pieces.learn(PIECE, FEW, now);
        pieces.interrupt();
    }
    assert_eq!(pieces.most(), FEW);
    fill(&mut pieces, &LONG_PATH, 64, 512 << 20);
    assert_eq!(pieces.most(), 10);
}

/// Both what bore more and what did not.
#[test]
fn the_mount_may_be_another_after_a_while() {
    let modest = Mount { bears: FEW, ..LONG_PATH };
    for (before, after) in [(&LONG_PATH, &modest), (&modest, &LONG_PATH)] {
        let mut pieces = Pieces::default();
        fill(&mut pieces, before, 64, 512 << 20);
        let most = pieces.most();
        fill(&mut pieces, after, 64, 2 * PAUSE);
        assert_ne!(pieces.most(), most);
    }
}
