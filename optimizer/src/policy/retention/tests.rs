//! With simulated readers, page tables and page cache.

use super::*;
use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;
const PART: u64 = 8 * MIB;
const NEAR: u64 = 4 * PART;

fn part(number: u64) -> Range<u64> {
    number * PART..(number + 1) * PART
}

fn forward(at: u64) -> Option<Place> {
    Some(Place { at, is_backward: false })
}

/// A file, the budget for it in parts, and its readers.
struct Machine {
    retention: Retention,
    now: Duration,
    budget: usize,
    cached: BTreeSet<u64>,
    mapped: BTreeSet<(Holder, u64)>,
    fetched: usize,
}

impl Machine {
    fn new(budget: usize) -> Self {
        let (cached, mapped) = (BTreeSet::new(), BTreeSet::new());
        Self { retention: Retention::default(), now: Duration::ZERO, budget, cached, mapped, fetched: 0 }
    }

    fn fetch(&mut self, number: u64) {
        self.fetched += usize::from(self.cached.insert(number));
    }

    /// A reader reads a part; at a trip then it does what it is asked for.
    fn read(&mut self, reader: Holder, number: u64) {
        self.now += Duration::from_millis(10);
        self.fetch(number);
        self.mapped.insert((reader, number));
        self.retention.note(reader, 0, forward((number + 1) * PART), self.now);
        if self.cached.len() > self.budget {
            self.retention.leave(reader, part(number));
        }
        self.trip(reader);
    }

    fn trip(&mut self, reader: Holder) {
        if let Some(wanted) = self.retention.wanted_from(reader, NEAR, self.now) {
            self.mapped.retain(|&(holder, number)| holder != reader || !wanted.contains(&(number * PART)));
            self.retention.released(reader, &wanted);
        }
        self.drop_pages();
    }

    fn drop_pages(&mut self) {
        for leaving in self.retention.droppable(NEAR, self.now) {
            let number = leaving.start / PART;
            if !self.mapped.iter().any(|&(_, mapped)| mapped == number) {
                self.cached.remove(&number);
                self.retention.left(&leaving);
            }
        }
    }
}

const READERS: [Holder; 3] = [(1, 0), (2, 0), (3, 0)];

#[test]
fn readers_side_by_side_keep_what_came_first() {
    let mut machine = Machine::new(10);
    for epoch in 0..4 {
        let before = machine.fetched;
        for number in 0..20 {
            READERS.into_iter().for_each(|reader| machine.read(reader, number));
            assert!(machine.cached.len() <= 12, "{:?} in epoch {epoch}", machine.cached);
        }
        assert!((0..9).all(|number| machine.cached.contains(&number)), "{:?}", machine.cached);
        assert!(epoch == 0 || machine.fetched - before <= 12, "{} in epoch {epoch}", machine.fetched - before);
    }
}

#[test]
fn what_another_comes_to_soon_stays_until_it_has_passed() {
    let mut machine = Machine::new(4);
    for number in 0..20 {
        machine.read(READERS[0], number);
        if let Some(behind) = number.checked_sub(3) {
            machine.read(READERS[1], behind);
        }
        assert!(machine.cached.len() <= 4 + 4, "{:?}", machine.cached);
    }
    // The second one found everything.
    assert_eq!(machine.fetched, 20);
}

#[test]
fn who_is_idle_for_long_keeps_nothing() {
    let mut machine = Machine::new(2);
    machine.retention.note(READERS[1], 0, forward(5 * PART), machine.now);
    (0..6).for_each(|number| machine.read(READERS[0], number));
    assert!(machine.cached.contains(&5), "{:?}", machine.cached);
    machine.now += IDLE;
    machine.read(READERS[0], 6);
    assert_eq!(machine.cached.iter().copied().collect::<Vec<_>>(), [0, 1]);
}

/// Pages that stay although all was done are tried again later, and when another one has let go.
#[test]
fn what_could_not_leave_is_tried_again() {
    let mut machine = Machine::new(0);
    machine.mapped.insert((READERS[2], 0));
    machine.read(READERS[0], 0);
    assert!(machine.cached.contains(&0));
    assert!(machine.retention.droppable(NEAR, machine.now).is_empty());
    assert_eq!(machine.retention.droppable(NEAR, machine.now + AGAIN), [part(0)]);
    machine.trip(READERS[2]);
    assert!(machine.cached.is_empty());
}

#[test]
fn the_end_of_a_reader_frees_what_it_had() {
    let mut machine = Machine::new(0);
    machine.retention.note(READERS[1], 0, forward(0), machine.now);
    machine.read(READERS[0], 0);
    machine.drop_pages();
    assert!(machine.cached.contains(&0));
    machine.retention.forget(READERS[1]);
    machine.drop_pages();
    assert!(machine.cached.is_empty());
}

#[test]
fn what_lies_together_is_let_go_of_together() {
    let mut retention = Retention::default();
    [3, 4, 5, 9].into_iter().for_each(|number| retention.leave(READERS[0], part(number)));
    assert_eq!(retention.wanted_from(READERS[1], NEAR, IDLE), Some(3 * PART..6 * PART));
    retention.released(READERS[1], &(3 * PART..6 * PART));
    assert_eq!(retention.wanted_from(READERS[1], NEAR, IDLE), Some(part(9)));
    (0..1000).for_each(|number| retention.leave(READERS[0], part(2 * number)));
    assert_eq!(retention.leaving.len(), LEAVING);
}

#[test]
fn backward_readers_come_to_what_lies_before() {
    let place = Place { at: 10 * PART, is_backward: true };
    assert!(place.is_near(&part(9), NEAR) && place.is_near(&part(6), NEAR));
    assert!(!place.is_near(&part(10), NEAR) && !place.is_near(&part(2), NEAR));
    let place = Place { at: 10 * PART, is_backward: false };
    assert!(place.is_near(&part(10), NEAR) && place.is_near(&part(13), NEAR));
    assert!(!place.is_near(&part(9), NEAR) && !place.is_near(&part(14), NEAR));
}

#[test]
fn readers_at_work_are_counted() {
    let mut at_work = AtWork::default();
    assert_eq!(at_work.note(READERS[0], Duration::ZERO), 1);
    assert_eq!(at_work.note(READERS[1], IDLE / 2), 2);
    assert_eq!(at_work.note(READERS[1], IDLE), 1);
    assert_eq!(at_work.note(READERS[2], IDLE), 2);
    at_work.forget(READERS[1]);
    assert_eq!(at_work.note(READERS[2], IDLE), 1);
}
