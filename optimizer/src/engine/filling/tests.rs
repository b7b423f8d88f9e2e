use super::*;

const CHUNK: u64 = 128 << 10;

fn filling(asked: Option<Way>) -> Filling {
    Filling::new(asked, Residency::CacheStat, true)
}

/// Brings in so many chunks, one after the other; by read-ahead each takes a millisecond, else ten.
fn fill(filling: &Filling, chunks: u64) {
    let mut now = Duration::ZERO;
    for _ in 0..chunks {
        let way = filling.next();
        filling.send(way, now);
        now += Duration::from_millis(if way == Way::ReadAhead { 1 } else { 10 });
        filling.answer(way, CHUNK, now);
        filling.bring(way, CHUNK);
    }
}

/// Trials are for the first file of a mount: what they have shown holds for the next.
#[test]
fn the_next_file_begins_with_what_was_found() {
    let first = filling(None);
    assert!(first.settled().is_none(), "nothing is known yet");
    fill(&first, 1000);
    let settled = [first.settled().expect("the trials are over")];
    assert!(first.settled().is_none(), "it was told");
    let next = filling(None);
    next.begin_with(&settled);
    fill(&next, 100);
    assert_eq!(next.shares(), [("readahead", 100 * CHUNK)]);
    assert!(first.shares().len() > 1);
}

/// Nor does it change what has been begun, or what was asked for.
#[test]
fn what_was_found_is_for_files_that_have_not_begun() {
    let first = filling(None);
    fill(&first, 1000);
    let settled = [first.settled().expect("the trials are over")];
    let (begun, asked) = (filling(None), filling(Some(Way::Read)));
    fill(&begun, 1);
    begun.begin_with(&settled);
    assert!(begun.is_trying());
    asked.begin_with(&settled);
    assert_eq!(asked.next(), Way::Read);
}

#[test]
fn that_what_was_asked_for_has_no_effect_is_told() {
    let asked = filling(Some(Way::Ring));
    // What is too short for it, or not wanted in its pieces, comes in by another: that says nothing of it.
    asked.bring(Way::Read, 2 * CHUNK);
    assert!(!asked.is_unmet(Way::Ring));
    let any = filling(None);
    for filling in [&asked, &any] {
        for _ in 0..PROOF {
            filling.ask(Way::Ring);
            filling.miss(Way::Ring, false, Duration::ZERO);
        }
    }
    assert!(asked.is_unmet(Way::Ring));
    assert!(!asked.is_unmet(Way::Populate) && !any.is_unmet(Way::Ring));
}
