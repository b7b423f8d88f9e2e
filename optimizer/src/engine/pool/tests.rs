use super::*;
use crate::engine::SentFile;

fn in_force(pool: &Pool) -> (usize, usize) {
    let state = pool.inner.lock();
    (state.asked, state.cap)
}

/// What a session asked for goes with it, whatever others do.
#[test]
fn wishes_count_as_long_as_their_sessions() {
    let pool = Pool::default();
    let other = pool.join(Wish { session: 1, jobs: None, max_inflight: None });
    assert_eq!(in_force(&pool), (0, DEFAULT_MAX_INFLIGHT));
    let modest = pool.join(Wish { session: 2, jobs: Some(2), max_inflight: Some(3) });
    assert_eq!(in_force(&pool), (2, 2), "one is left for the readers");
    drop(modest);
    assert_eq!(in_force(&pool), (0, DEFAULT_MAX_INFLIGHT));
    drop(other);
}

/// A bound that nobody gave is none for who asked for more.
#[test]
fn the_default_gives_way_to_what_is_asked_for() {
    let pool = Pool::default();
    let _plain = pool.join(Wish { session: 3, jobs: None, max_inflight: None });
    let many = pool.join(Wish { session: 4, jobs: Some(200), max_inflight: None });
    assert_eq!(in_force(&pool), (200, 200));
    let _bounded = pool.join(Wish { session: 5, jobs: None, max_inflight: Some(100) });
    assert_eq!(in_force(&pool), (200, 97));
    drop(many);
    assert_eq!(in_force(&pool), (0, 98));
}

/// However many files it maps, a session's readers are one reader more that may ask for something itself.
#[test]
fn a_session_counts_once() {
    let pool = Pool::default();
    let wish = Wish { session: 1, jobs: None, max_inflight: Some(16) };
    let _seats: Vec<_> = (0..8).map(|_| pool.join(wish)).collect();
    assert_eq!(in_force(&pool), (0, 15));
    let _other = pool.join(Wish { session: 2, ..wish });
    assert_eq!(in_force(&pool), (0, 14));
}

/// What the first file of a mount has shown of the engines, the next one need not show again; and when nobody reads there,
/// no thread stays.
#[test]
fn the_next_file_profits_and_idle_threads_end() {
    const SIZE: u64 = 256 << 20;
    let file = || {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(SIZE).unwrap();
        Arc::new(DataFile::new(SentFile::new(file), None, None, &Arc::default()).unwrap())
    };
    let wait_until = |what: &dyn Fn() -> bool| {
        while !what() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let (pool, first, next, account) = (Pool::default(), file(), file(), Arc::<Account>::default());
    let _seat = pool.join(Wish { session: 1, jobs: Some(2), max_inflight: None });
    let everything = || std::iter::once(0..SIZE).collect::<Vec<_>>();
    pool.request((1, 1, 1), &first, &account, everything());
    let is_through = || pool.inner.lock().lanes.is_empty() && pool.inner.lock().lanes.in_flight() == 0;
    wait_until(&is_through);
    assert!(!pool.inner.lock().settled.is_empty(), "the file is long enough for trials");
    pool.request((1, 1, 2), &next, &account, everything());
    assert!(!next.filling.is_on_trial());
    wait_until(&is_through);
    wait_until(&|| pool.inner.lock().threads == 0);
}
