use super::*;

fn in_force(pool: &Pool) -> (usize, usize) {
    let state = pool.inner.lock();
    (state.asked, state.cap)
}

/// What a session asked for goes with it, whatever others do.
#[test]
fn wishes_count_as_long_as_their_sessions() {
    let pool = Pool::default();
    let other = pool.join(Wish { jobs: None, max_inflight: None });
    assert_eq!(in_force(&pool), (0, DEFAULT_MAX_INFLIGHT));
    let modest = pool.join(Wish { jobs: Some(2), max_inflight: Some(3) });
    assert_eq!(in_force(&pool), (2, 2), "one is left for the readers");
    drop(modest);
    assert_eq!(in_force(&pool), (0, DEFAULT_MAX_INFLIGHT));
    drop(other);
}

/// A bound that nobody gave is none for who asked for more.
#[test]
fn the_default_gives_way_to_what_is_asked_for() {
    let pool = Pool::default();
    let _plain = pool.join(Wish { jobs: None, max_inflight: None });
    let many = pool.join(Wish { jobs: Some(200), max_inflight: None });
    assert_eq!(in_force(&pool), (200, 200));
    let _bounded = pool.join(Wish { jobs: None, max_inflight: Some(100) });
    assert_eq!(in_force(&pool), (200, 97));
    drop(many);
    assert_eq!(in_force(&pool), (0, 98));
}
