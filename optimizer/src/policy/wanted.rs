//! How far a program's word is taken that it will need a part of a file.
//!
//! Of what is said of one part, the kernel fetches a read-ahead window and no more (`force_page_cache_ra` in
//! mm/readahead.c), so libraries say it of far more than they read: of a whole batch of columns, before one of them is
//! read. So what is fetched on the word alone has bounds, which reading widens. Where reading has no order of its own, the
//! word is the only one.

use precache_contract::STEP;
use std::collections::VecDeque;
use std::ops::Range;
use std::slice;

/// Bytes that are fetched on the program's word before it has read any of what it said.
const CREDIT: u64 = 8 << 20;

/// Of every so many bytes that were read as was said, one adds to the credit.
const GROWTH: u64 = 4;

/// Trips in parts that were said, after which it is seen whether reading has an order. It has none if half of them began
/// something new, and so many of those lay before the last one; who only leaves things out goes forward.
const LOOK: u32 = 48;
const BACK: u32 = 8;

/// Parts that wait; of a program that says more, the rest is read as it comes to it.
const MOST: usize = 1024;

/// What was said of one mapping.
pub struct Wanted {
    /// Whoever needs all of the mapping has no choice of which to read.
    whole: Range<u64>,
    /// What the kernel fetches of each part, about.
    piece: u64,
    /// Said, and not fetched on the program's word yet.
    waiting: VecDeque<Range<u64>>,
    /// Fetched on its word, and not read yet as far as is known.
    unread: VecDeque<Range<u64>>,
    /// What those may hold.
    credit: u64,
    /// Since the last look.
    trips: Trips,
    last: u64,
    has_no_order: bool,
}

#[derive(Default)]
struct Trips {
    all: u32,
    new: u32,
    back: u32,
}

impl Wanted {
    /// For a mapping of these bytes of a file, whose storage is read ahead by `piece` bytes.
    pub fn new(whole: Range<u64>, piece: u64) -> Self {
        let (waiting, unread) = (VecDeque::new(), VecDeque::new());
        Self { whole, piece, waiting, unread, credit: CREDIT, trips: Trips::default(), last: 0, has_no_order: false }
    }

    /// The program will need this. The answer is what to fetch, in this order.
    pub fn say(&mut self, part: Range<u64>) -> Vec<Range<u64>> {
        let is_known = |known: &Range<u64>| known.start <= part.start && part.end <= known.end;
        if self.waiting.iter().chain(&self.unread).any(is_known) {
            return Vec::new();
        }
        if part.start <= self.whole.start && part.end >= self.whole.end || part.end - part.start <= self.piece {
            return Vec::from_iter([part]);
        }
        if self.waiting.len() < MOST {
            self.waiting.push_back(part);
        }
        self.go_on()
    }

    /// The reader comes to these bytes, or soon will, by what its reading shows. The answer is what to fetch now.
    pub fn is_read(&mut self, extents: &[Range<u64>]) -> Vec<Range<u64>> {
        let unread = self.held();
        for extent in extents {
            self.unread = without(&self.unread, extent);
            self.waiting = without(&self.waiting, extent);
        }
        self.credit += (unread - self.held()) / GROWTH;
        self.go_on()
    }

    /// The reader has tripped here, and that `is_new` or carries on what it read before.
    pub fn tripped(&mut self, offset: u64, is_new: bool) -> Vec<Range<u64>> {
        if self.waiting.iter().chain(&self.unread).any(|part| part.contains(&offset)) {
            self.look(offset, is_new);
        }
        let start = offset - offset % STEP;
        self.is_read(slice::from_ref(&(start..start + STEP)))
    }

    fn look(&mut self, offset: u64, is_new: bool) {
        let is_back = is_new && offset < self.last;
        self.last = offset;
        self.trips.all += 1;
        self.trips.new += u32::from(is_new);
        self.trips.back += u32::from(is_back);
        if self.trips.all == LOOK {
            self.has_no_order = self.trips.new >= LOOK / 2 && self.trips.back >= BACK;
            self.trips = Trips::default();
        }
    }

    fn go_on(&mut self) -> Vec<Range<u64>> {
        let mut room = if self.has_no_order { u64::MAX } else { self.credit.saturating_sub(self.held()) };
        let mut fetched = Vec::new();
        while room > 0
            && let Some(part) = self.waiting.front_mut()
        {
            let taken = part.start..part.end.min(part.start.saturating_add(room));
            room -= taken.end - taken.start;
            part.start = taken.end;
            if part.is_empty() {
                self.waiting.pop_front();
            }
            self.unread.push_back(taken.clone());
            fetched.push(taken);
        }
        fetched
    }

    fn held(&self) -> u64 {
        self.unread.iter().map(|part| part.end - part.start).sum()
    }
}

/// What is left of the parts beside the extent, in the same order.
fn without(parts: &VecDeque<Range<u64>>, extent: &Range<u64>) -> VecDeque<Range<u64>> {
    let sides = |part: &Range<u64>| [part.start..part.end.min(extent.start), part.start.max(extent.end)..part.end];
    parts.iter().flat_map(sides).filter(|side| !side.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const SIZE: u64 = 1 << 30;

    fn wanted() -> Wanted {
        Wanted::new(4096..SIZE, 128 * KIB)
    }

    fn one(part: Range<u64>) -> Vec<Range<u64>> {
        Vec::from_iter([part])
    }

    fn bytes(parts: &[Range<u64>]) -> u64 {
        parts.iter().map(|part| part.end - part.start).sum()
    }

    #[test]
    fn what_is_needed_as_a_whole_and_what_the_kernel_fetches_is_not_weighed() {
        let mut wanted = wanted();
        for _ in 0..2 {
            assert_eq!(wanted.say(4096..SIZE), one(4096..SIZE));
        }
        let pieces = (0..1000).flat_map(|i| wanted.say(i * MIB..i * MIB + 128 * KIB));
        assert_eq!(bytes(&pieces.collect::<Vec<_>>()), 1000 * 128 * KIB);
        assert_eq!(wanted.say(0..SIZE - 1), one(0..CREDIT));
    }

    /// As Arrow says it of each batch of 80 columns, of which each is 1.6 MiB and the reader takes six.
    #[test]
    fn who_reads_a_few_columns_gets_little_more() {
        let column = 1600 * KIB;
        let batches = || (0..8).map(|i| MIB + i * 80 * column);
        let mut wanted = wanted();
        let mut fetched = batches().flat_map(|start| wanted.say(start..start + 80 * column)).collect::<Vec<_>>();
        assert_eq!(fetched, one(MIB..MIB + CREDIT));
        let read: Vec<_> = batches().flat_map(|start| [0, 1, 2, 5, 6, 40].map(|i| start + i * column)).collect();
        for start in &read {
            fetched.extend(wanted.is_read(&one(*start..start + column)));
        }
        let all = fetched.iter().cloned().collect();
        let wasted = read.iter().fold(all, |left, start| without(&left, &(*start..start + column)));
        let wasted = bytes(wasted.as_slices().0) + bytes(wasted.as_slices().1);
        assert!(wasted <= CREDIT + 48 * column / GROWTH, "{} MiB", wasted / MIB);
    }

    /// Chunk after chunk in an order that only the program knows; it says which is the next before it reads one.
    #[test]
    fn who_reads_what_it_said_soon_gets_all_of_it() {
        let chunk = 32 * MIB;
        let place = |i: u64| (i * 7 % 31) * chunk;
        let mut wanted = wanted();
        let mut ahead = Vec::new();
        for i in 0..30 {
            ahead.push(bytes(&wanted.say(place(i + 1)..place(i + 1) + chunk)));
            for step in 0..chunk / MIB {
                let at = place(i) + step * MIB;
                *ahead.last_mut().unwrap() += bytes(&wanted.is_read(&one(at..at + MIB)));
            }
        }
        assert_eq!(ahead[0], CREDIT);
        assert!(ahead[3..].iter().all(|&bytes| bytes >= chunk), "{ahead:?}");
    }

    /// Record by record in no order: nothing but the word says where the next one lies. Of each two trips one is a step further.
    #[test]
    fn who_reads_in_no_order_is_believed() {
        let mut wanted = wanted();
        assert_eq!(bytes(&wanted.say(MIB..513 * MIB)), CREDIT);
        let place = |i: u64| MIB + i / 2 * 7919 % 4096 * 128 * KIB + i % 2 * STEP;
        let trip = |wanted: &mut Wanted, i| bytes(&wanted.tripped(place(i), i % 2 == 0));
        let fetched: Vec<u64> = (0..u64::from(LOOK)).map(|i| trip(&mut wanted, i)).collect();
        assert!(fetched.last() > Some(&(490 * MIB)), "{fetched:?}");
        assert_eq!(wanted.say(600 * MIB..700 * MIB), one(600 * MIB..700 * MIB));
        // It finds one.
        (0..LOOK).for_each(|i| drop(wanted.tripped(600 * MIB + u64::from(i) * MIB, false)));
        assert_eq!(wanted.say(700 * MIB..800 * MIB), []);
    }

    /// One column, of each batch.
    #[test]
    fn who_leaves_things_out_is_not_believed() {
        let batch = 5 * MIB;
        let mut wanted = wanted();
        let said: u64 = (0..200).map(|i| bytes(&wanted.say(MIB + i * batch..MIB + (i + 1) * batch))).sum();
        let read: u64 = (0..200).map(|i| bytes(&wanted.tripped(2 * MIB + i * batch, true))).sum();
        assert!(said + read < CREDIT + MIB, "{read}");
    }

    #[test]
    fn what_is_said_again_is_fetched_once_and_what_was_read_is_not_waited_for() {
        let mut wanted = wanted();
        assert_eq!(wanted.say(MIB..65 * MIB), one(MIB..MIB + CREDIT));
        for part in [MIB..65 * MIB, 2 * MIB..3 * MIB, 20 * MIB..30 * MIB] {
            assert_eq!(wanted.say(part), []);
        }
        // Its windows take it through the next.
        assert_eq!(wanted.is_read(&one(MIB + CREDIT..30 * MIB)), []);
        assert_eq!(wanted.is_read(&one(2 * MIB..6 * MIB)), one(30 * MIB..35 * MIB));
    }

    #[test]
    fn of_a_program_that_says_ever_more_the_first_is_kept() {
        let mut wanted = wanted();
        (0..2 * MOST as u64).for_each(|i| drop(wanted.say(i * MIB / 4..i * MIB / 4 + 256 * KIB)));
        assert_eq!(wanted.waiting.len(), MOST);
    }
}
