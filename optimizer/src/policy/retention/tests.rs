//! With simulated readers, page tables and page cache.

use super::*;
use crate::policy::simulation::memory::{CELL, Memory};

const MIB: u64 = 1 << 20;
const PART: u64 = 8 * MIB;
const NEAR: u64 = 4 * PART;

fn part(number: u64) -> Range<u64> {
    number * PART..(number + 1) * PART
}

fn forward(at: u64) -> Option<Place> {
    Some(Place { at, is_backward: false })
}

/// A file of so many parts, the page cache with a budget in parts, and its readers.
struct Machine {
    memory: Memory,
    passages: HashMap<Holder, (Passage, Option<Range<u64>>)>,
}

impl Machine {
    fn new(parts: u64, budget: u64) -> Self {
        Self { memory: Memory::allowing(parts * PART, budget * PART), passages: HashMap::new() }
    }

    /// A reader reads a part that is fetched for it; at a trip before that it does what it is asked for.
    fn read(&mut self, reader: Holder, number: u64) {
        let readers = self.memory.note_at_work(reader);
        let (passage, _) = self.passages.entry(reader).or_insert_with(|| (Passage::new(reader), None));
        passage.advance(0, &[part(number)], readers, &self.memory);
        for cell in number * PART / CELL..(number + 1) * PART / CELL {
            self.memory.fetch(cell as usize);
            self.memory.read(reader, cell as usize, Duration::from_micros(100));
        }
        self.trip(reader);
    }

    fn trip(&mut self, reader: Holder) {
        let Some((passage, asked)) = self.passages.get_mut(&reader) else { return };
        if let Some(part) = asked.take() {
            self.memory.unmap(reader, &part);
            passage.released(&self.memory);
        }
        *asked = passage.go_on(&self.memory);
    }

    /// The mapping of a reader goes.
    fn end(&mut self, reader: Holder) {
        if let Some((mut passage, _)) = self.passages.remove(&reader) {
            self.memory.close(reader);
            passage.finish(&self.memory);
        }
    }

    fn parts(&self) -> Vec<u64> {
        (0..self.memory.size() / PART).filter(|&number| self.memory.is_cached(&part(number))).collect()
    }
}

const READERS: [Holder; 3] = [(1, 0), (2, 0), (3, 0)];

/// Two parts are held for the readers, one passes, and room for another window is kept.
#[test]
fn readers_side_by_side_keep_what_came_first() {
    let mut machine = Machine::new(20, 10);
    for epoch in 0..8 {
        let before = machine.memory.fetched();
        for number in 0..20 {
            READERS.into_iter().for_each(|reader| machine.read(reader, number));
            let parts = machine.parts();
            assert!(parts.len() <= 12, "{parts:?} in epoch {epoch}");
        }
        let fetched = machine.memory.fetched() - before;
        assert!(epoch > 0 || (0..6).all(|number| machine.parts().contains(&number)), "{:?}", machine.parts());
        assert!(epoch == 0 || fetched <= 13 * PART, "{} parts in epoch {epoch}", fetched / PART);
    }
}

#[test]
fn what_another_comes_to_soon_stays_until_it_has_passed() {
    let mut machine = Machine::new(60, 16);
    for number in 0..60 {
        machine.read(READERS[0], number);
        if let Some(behind) = number.checked_sub(3) {
            machine.read(READERS[1], behind);
        }
        assert!(machine.parts().len() <= 16 + 4, "{:?}", machine.parts());
    }
    // The second one found everything.
    assert_eq!(machine.memory.fetched(), 60 * PART);
}

#[test]
fn who_is_idle_for_long_keeps_nothing() {
    let mut machine = Machine::new(30, 8);
    machine.memory.retention().note(READERS[1], 0, forward(12 * PART), Duration::ZERO);
    (0..16).for_each(|number| machine.read(READERS[0], number));
    assert!(machine.parts().contains(&12), "{:?}", machine.parts());
    machine.memory.wait(IDLE);
    (16..20).for_each(|number| machine.read(READERS[0], number));
    let parts = machine.parts();
    assert!(parts.len() <= 8 && !parts.contains(&12), "{parts:?}");
}

/// What only someone without a stream has mapped is tried again later, and when that one has let go.
#[test]
fn what_could_not_leave_is_tried_again() {
    let mut retention = Retention::default();
    retention.leave(READERS[0], part(0));
    retention.released(READERS[0], &part(0));
    assert_eq!(retention.droppable(NEAR, Duration::ZERO), [part(0)]);
    assert!(retention.droppable(NEAR, AGAIN).is_empty(), "it is under way");
    retention.dropped(&part(0), true);
    assert!(retention.droppable(NEAR, Duration::ZERO).is_empty());
    assert_eq!(retention.droppable(NEAR, AGAIN), [part(0)]);
    retention.dropped(&part(0), true);
    retention.released(READERS[2], &part(0));
    assert_eq!(retention.droppable(NEAR, AGAIN), [part(0)]);
    retention.dropped(&part(0), false);
    assert!(retention.is_settled());
}

/// Pages that someone has mapped stay whatever is tried.
#[test]
fn a_part_leaves_once_all_who_get_on_have_let_go_of_it() {
    let mut retention = Retention::default();
    READERS[..2].iter().for_each(|&reader| retention.note(reader, 0, forward(9 * PART), Duration::ZERO));
    retention.leave(READERS[0], part(0));
    retention.released(READERS[0], &part(0));
    assert!(retention.droppable(NEAR, Duration::ZERO).is_empty());
    assert_eq!(retention.wanted_from(READERS[1], NEAR, Duration::ZERO), Some(part(0)));
    retention.released(READERS[1], &part(0));
    assert_eq!(retention.droppable(NEAR, Duration::ZERO), [part(0)]);
}

/// What the other one had not let go of leaves with it; what exceeds the budget still, with the last one.
#[test]
fn the_end_of_a_reader_frees_what_it_had() {
    let mut machine = Machine::new(30, 8);
    (0..8).for_each(|number| machine.read(READERS[1], number));
    (0..20).for_each(|number| machine.read(READERS[0], number));
    let before = machine.parts().len();
    assert!(before > 9, "{:?}", machine.parts());
    machine.end(READERS[1]);
    machine.trip(READERS[0]);
    assert!(machine.parts().len() < before, "{:?}", machine.parts());
    machine.end(READERS[0]);
    assert!(machine.parts().len() <= 8, "{:?}", machine.parts());
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
