use super::*;
use crate::engine::SentFile;
use crate::engine::held::{Held, LONGEST};
use crate::policy::congestion::Answered;
use std::os::unix::fs::FileExt;

/// What the first file of a mount has shown of the engines, the next one need not show again; and when nobody reads there,
/// no thread stays.
#[test]
fn the_next_file_profits_and_idle_threads_end() {
    /// Enough for all trials, where requests are as long as they get.
    const SIZE: u64 = 640 << 20;
    let file = || {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(SIZE).unwrap();
        Arc::new(DataFile::new(SentFile::new(file), None, None, &Arc::default()).unwrap())
    };
    let wait_until = |what: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let (pool, first, next, account) = (Pool::default(), file(), file(), Arc::<Account>::default());
    let _seat = pool.join(Wish { session: 1, jobs: Some(2), max_inflight: None });
    pool.request((1, 1, 1), &first, &account, [0..SIZE / 2, SIZE / 2..SIZE].into());
    let is_through = || pool.inner.lock().lanes.is_empty() && pool.inner.lock().lanes.in_flight() == 0;
    wait_until(&is_through);
    assert!(!pool.inner.lock().settled.is_empty(), "the trials are over");
    pool.request((1, 1, 2), &next, &account, [0..1 << 20, 1 << 20..2 << 20].into());
    assert!(!next.filling.is_on_trial());
    wait_until(&is_through);
    wait_until(&|| pool.inner.lock().threads == 0);
}

/// While more is held than there is room for, nothing is taken until something has left, or nothing does.
#[test]
fn what_is_to_leave_is_waited_for() {
    const MIB: u64 = 1 << 20;
    let held = Arc::<Held>::default();
    let file = tempfile::tempfile_in("/var/tmp").unwrap();
    file.set_len(64 * MIB).unwrap();
    file.read_exact_at(&mut vec![0; 2 * MIB as usize], 32 * MIB).unwrap();
    let file = Arc::new(DataFile::new(SentFile::new(file), None, Some(Way::Read), &held).unwrap());
    let pool = Pool::default();
    let _seat = pool.join(Wish { session: 1, jobs: Some(2), max_inflight: None });
    pool.inner.lock().lanes.append((1, 1, 1), &file, &Arc::default(), [0..MIB, MIB..2 * MIB].into());
    file.kept.add(32 * MIB..34 * MIB);
    held.set_bound(Some(MIB));
    let begun = Instant::now();
    let of_this_file = Some((&*file, Way::Read));
    assert!(pool.inner.take(of_this_file).is_none());
    assert!(pool.inner.take(None).is_some() && begun.elapsed() >= LONGEST, "nothing leaves");
    file.kept.remove(&(32 * MIB..32 * MIB + 1));
    assert!(pool.inner.take(of_this_file).is_none(), "something has left, and is not enough");
    file.kept.remove(&(32 * MIB..34 * MIB));
    assert!(pool.inner.take(of_this_file).is_some());
}

/// How many large pieces a path bears says nothing of how many other requests bring bandwidth, nor these of those.
#[test]
fn large_pieces_and_other_requests_are_counted_apart() {
    let file = |engine| {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(64 << 20).unwrap();
        Arc::new(DataFile::new(SentFile::new(file), None, Some(engine), &Arc::default()).unwrap())
    };
    let (large, small) = (file(Way::Populate), file(Way::Read));
    if large.chunk(Way::Populate) < crate::engine::LARGE_PIECE {
        return;
    }
    let pool = Pool::default();
    let _seat = pool.join(Wish { session: 1, jobs: None, max_inflight: Some(32) });
    let state = &mut *pool.inner.lock();
    let append = |state: &mut State, lane, file: &Arc<DataFile>| {
        state.lanes.append((1, 1, lane), file, &Arc::default(), [0..32 << 20, 32 << 20..64 << 20].into());
    };
    append(state, 1, &large);
    assert_eq!((state.depth(), state.beside()), (state.terms.cap, 0));
    let piece = state.lanes.next(None).unwrap();
    let before = state.congestion.depth();
    for number in 1..5000 {
        // Each waits behind three others.
        let answered = Duration::from_millis(30) + Duration::from_millis(10) * number;
        let answer = Answered { bytes: 2 << 20, sent: answered - Duration::from_millis(30), answered, in_flight: 4 };
        state.congestion_of(&piece).learn(answer);
    }
    assert!(state.of_pieces.estimate().is_some() && state.congestion.estimate().is_none());
    state.lanes.forget(|_| true);
    append(state, 2, &small);
    assert_eq!((state.depth(), state.beside()), (before, 1));
    let one = state.lanes.next(None).unwrap();
    assert!(!state.has_too_few_like(&one));
    state.lanes.forget(|_| true);
    append(state, 3, &large);
    assert!(state.has_too_few_like(&one), "beside pieces there is nothing else to send");
    state.lanes.land(&one);
    state.lanes.forget(|_| true);
    append(state, 4, &small);
    assert!((0..before).all(|_| state.has_work() && state.lanes.next(None).is_some()) && !state.has_work());
    state.lanes.forget(|_| true);
}

/// How long requests take that try an engine beside the one in use says nothing of how many of that one's bring bandwidth.
#[test]
fn what_is_tried_beside_tells_nothing_of_the_depth() {
    const SIZE: u64 = 256 << 20;
    let file = tempfile::tempfile_in("/var/tmp").unwrap();
    file.set_len(SIZE).unwrap();
    let file = Arc::new(DataFile::new(SentFile::new(file), None, None, &Arc::default()).unwrap());
    // What is left has chunks of one kind.
    (0..1000).for_each(|_| file.filling.miss(Way::Populate, true, Duration::ZERO));
    let pool = Pool::default();
    let _seat = pool.join(Wish { session: 1, jobs: None, max_inflight: Some(32) });
    pool.inner.lock().lanes.append((1, 1, 1), &file, &Arc::default(), [0..SIZE / 2, SIZE / 2..SIZE].into());
    let heard = |congestion: &Congestion| format!("{congestion:?}");
    // What a round has heard is forgotten.
    let begun = || {
        let mut begun = Congestion::new(32);
        begun.starve();
        begun
    };
    let mut interrupted = begun();
    interrupted.interrupt();
    let nothing = heard(&interrupted);
    assert_ne!(nothing, heard(&begun()));
    let (mut beside, mut others) = (0, 0);
    loop {
        let Some(mut job) = pool.inner.lock().lanes.next(None) else { break };
        job.lacking = vec![job.chunk.clone()];
        let mut flight =
            Flight { inner: &pool.inner, file: &file, way: job.way, flying: vec![], left: vec![], waits: 0 };
        flight.send(job);
        let flying = flight.flying.pop().expect("it was sent");
        let is_beside = flying.is_beside;
        pool.inner.lock().congestion = begun();
        let shows_rate = flying.job.shows_rate();
        flight.finish(flying, shows_rate, Ok(flight.way));
        let heard = heard(&pool.inner.lock().congestion);
        assert_eq!(heard == nothing, is_beside, "{heard} after {:?}", flight.way);
        *if is_beside { &mut beside } else { &mut others } += 1;
    }
    assert!(beside > 0 && others > 0, "{beside} beside {others} others");
}
