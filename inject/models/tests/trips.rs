//! News on their way to the optimizer: none is lost, none comes twice or in part, and nobody sleeps while one waits.

use loom::thread;
use precache_models::AtomicU32;
use precache_models::check;
use precache_models::ring::{Advice, News, Ring, What};
use precache_models::sleeper::Sleeper;
use std::sync::Arc;

/// Trips of one slot, advice about the other.
fn news(slot: u16, offset: u64) -> News {
    let what = if slot == 0 { What::Trip } else { What::Advice(Advice::WillNeed, offset) };
    News { slot, generation: 1, offset, what }
}

/// Two of the reader's threads leave news while the optimizer takes them, more than fit at a time.
fn two_readers_and_the_optimizer<const CELLS: usize>() {
    check(|| {
        let ring: Arc<Ring<CELLS>> = Arc::default();
        let producers: Vec<_> = (0..2)
            .map(|slot| {
                let ring = ring.clone();
                thread::spawn(move || {
                    let left = (1..=2).filter(|&offset| ring.push(news(slot, offset)));
                    left.map(|offset| news(slot, offset)).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut taken: Vec<News> = (0..2).filter_map(|_| ring.pop()).collect();
        let left: Vec<Vec<News>> = producers.into_iter().map(|producer| producer.join().unwrap()).collect();
        taken.extend(std::iter::from_fn(|| ring.pop()));
        for (slot, left) in left.into_iter().enumerate() {
            let of_slot: Vec<News> = taken.iter().copied().filter(|news| usize::from(news.slot) == slot).collect();
            assert_eq!(of_slot, left, "news that was left, and news that was taken");
        }
    });
}

#[test]
fn news_arrives_once_and_in_order() {
    two_readers_and_the_optimizer::<2>();
}

/// With a single cell, "filled" and "free for the next lap" are the same number.
#[test]
#[should_panic(expected = "news that was left")]
fn one_cell_is_not_enough() {
    two_readers_and_the_optimizer::<1>();
}

/// The optimizer goes to sleep while a trip is left: `looks_after` it has said that it sleeps, or before.
fn a_trip_and_a_sleeper(looks_after: bool) {
    check(move || {
        let shared = Arc::new((Ring::<2>::default(), Sleeper(AtomicU32::new(0))));
        let reader = shared.clone();
        let reader = thread::spawn(move || {
            let (ring, sleeper) = &*reader;
            assert!(ring.push(news(0, 1)));
            sleeper.take_wake()
        });
        let (ring, sleeper) = &*shared;
        let found = if looks_after {
            sleeper.prepare();
            ring.pop()
        } else {
            let found = ring.pop();
            sleeper.prepare();
            found
        };
        let is_woken = reader.join().unwrap();
        assert!(found.is_some() || is_woken, "it sleeps, and a trip waits");
    });
}

#[test]
fn nobody_sleeps_while_a_trip_waits() {
    a_trip_and_a_sleeper(true);
}

#[test]
#[should_panic(expected = "it sleeps, and a trip waits")]
fn who_looks_before_it_says_that_it_sleeps_misses_the_trip() {
    a_trip_and_a_sleeper(false);
}
