//! Which parts of one file are to leave the page cache, and when: once all who read them have passed them and let go of
//! them.
//!
//! A page leaves only when nobody has it mapped, so every mapping is asked to let go of what is to leave, also where its
//! reader passed long ago, when there was still room. To let go of a page that is read again after all costs a minor
//! fault.

mod passage;

pub use self::passage::{PageCache, Passage};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// Names a mapping: its reader, and its number there.
pub type Holder = (u64, u32);

/// A reader that has not got on for so long is not waited for.
const IDLE: Duration = Duration::from_secs(30);

/// Whose windows share the budget: the mappings, of whatever file, whose readers get on. Pure: times come from the caller.
#[derive(Debug, Default)]
pub struct AtWork(HashMap<Holder, Duration>);

impl AtWork {
    /// A reader gets on. Returns how many do.
    pub fn note(&mut self, holder: Holder, now: Duration) -> u64 {
        self.0.insert(holder, now);
        self.0.retain(|_, last| now.saturating_sub(*last) < IDLE);
        self.0.len() as u64
    }

    /// The mapping is gone.
    pub fn forget(&mut self, holder: Holder) {
        self.0.remove(&holder);
    }
}

/// What could not leave, as someone without a stream has it mapped, is tried again after so long.
const AGAIN: Duration = Duration::from_secs(10);

/// Parts that are to leave, at most: of more, the first ones stay.
const LEAVING: usize = 256;

/// What lies nearer than this is let go of together ...
const GAP: u64 = 1 << 20;
/// ... up to so much, as a trip lasts as long as that takes.
const TOGETHER: u64 = 64 << 20;

/// How far a stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// What it has not read yet begins here, in its direction.
    pub at: u64,
    pub is_backward: bool,
}

impl Place {
    /// Whether the stream is in the part, or comes to it within so many bytes.
    fn is_near(self, part: &Range<u64>, within: u64) -> bool {
        match self.is_backward {
            false => self.at < part.end && part.start.saturating_sub(self.at) < within,
            true => self.at > part.start && self.at.saturating_sub(part.end) < within,
        }
    }
}

/// A part that is to leave.
#[derive(Debug)]
struct Leaving {
    part: Range<u64>,
    /// Who has read it, and does not come to it.
    passed: Vec<Holder>,
    /// Who has let go of it.
    released: Vec<Holder>,
    /// When it was tried last, after the last of these, and whether that is under way.
    tried: Option<Duration>,
    is_going: bool,
}

impl Leaving {
    /// Whether one of these streams, of a mapping that has not passed the part, comes to it within so many bytes.
    fn is_awaited(&self, streams: &[(Holder, Place)], within: u64) -> bool {
        let awaits =
            |(holder, place): &(Holder, Place)| !self.passed.contains(holder) && place.is_near(&self.part, within);
        streams.iter().any(awaits)
    }
}

/// The readers of one file, and what is to leave behind them. Pure: times come from the caller, on one clock.
#[derive(Debug, Default)]
pub struct Retention {
    /// Where each stream of each mapping is, and since when.
    places: HashMap<(Holder, u32), (Place, Duration)>,
    leaving: VecDeque<Leaving>,
}

impl Retention {
    /// A stream of a mapping has got on, or is over.
    pub fn note(&mut self, holder: Holder, stream: u32, place: Option<Place>, now: Duration) {
        match place {
            Some(place) => drop(self.places.insert((holder, stream), (place, now))),
            None => drop(self.places.remove(&(holder, stream))),
        }
    }

    /// The mapping is gone.
    pub fn forget(&mut self, holder: Holder) {
        self.places.retain(|(other, _), _| *other != holder);
        for leaving in &mut self.leaving {
            leaving.released.retain(|other| *other != holder);
            leaving.tried = None;
        }
    }

    /// Whether streams of several readers go through the file.
    pub fn has_several_readers(&self) -> bool {
        let mut readers = self.places.keys().map(|((reader, _), _)| reader);
        readers.next().is_some_and(|first| readers.any(|other| other != first))
    }

    /// The mapping's reader has passed the part, for which there is no room.
    pub fn leave(&mut self, holder: Holder, part: Range<u64>) {
        let covers = |leaving: &&mut Leaving| leaving.part.start <= part.start && part.end <= leaving.part.end;
        if let Some(known) = self.leaving.iter_mut().find(covers) {
            // It may have mapped it anew.
            known.released.retain(|other| *other != holder);
            if !known.passed.contains(&holder) {
                known.passed.push(holder);
            }
            return;
        }
        if self.leaving.len() >= LEAVING {
            self.leaving.pop_front();
        }
        self.leaving.push_back(Leaving {
            part,
            passed: vec![holder],
            released: Vec::new(),
            tried: None,
            is_going: false,
        });
    }

    /// What is to leave at the next trips: it need not be made room for again. What a stream comes to within so many bytes
    /// takes its room until then.
    pub fn outstanding(&self, within: u64, now: Duration) -> Vec<Range<u64>> {
        let at_work: Vec<_> = self.at_work(now).collect();
        let leaves_soon =
            |leaving: &&Leaving| leaving.is_going || leaving.tried.is_none() && !leaving.is_awaited(&at_work, within);
        self.leaving.iter().filter(leaves_soon).map(|leaving| leaving.part.clone()).collect()
    }

    /// Whether nothing is to leave.
    pub fn is_settled(&self) -> bool {
        self.leaving.is_empty()
    }

    /// What the mapping is to let go of next: nothing that its own streams come to within so many bytes.
    pub fn wanted_from(&self, holder: Holder, within: u64, now: Duration) -> Option<Range<u64>> {
        let own: Vec<_> = self.at_work(now).filter(|(other, _)| *other == holder).collect();
        let is_wanted = |leaving: &&Leaving| !leaving.released.contains(&holder) && !leaving.is_awaited(&own, within);
        let mut wanted = self.leaving.iter().filter(is_wanted).map(|leaving| leaving.part.clone());
        let first = wanted.next()?;
        Some(wanted.fold(first, |all, part| {
            let (start, end) = (all.start.min(part.start), all.end.max(part.end));
            let touches = part.start <= all.end + GAP && all.start <= part.end + GAP;
            if touches && end - start <= TOGETHER { start..end } else { all }
        }))
    }

    /// The mapping has let go of this.
    pub fn released(&mut self, holder: Holder, part: &Range<u64>) {
        let covered = |leaving: &&mut Leaving| part.start <= leaving.part.start && leaving.part.end <= part.end;
        for leaving in self.leaving.iter_mut().filter(covered).filter(|leaving| !leaving.released.contains(&holder)) {
            leaving.released.push(holder);
            leaving.tried = None;
        }
    }

    /// What can be dropped now: all whose readers get on have let go of it, and none of them comes to it within so many
    /// bytes. Each part is told once, and again after [`Self::dropped`] when something has changed or much later.
    pub fn droppable(&mut self, within: u64, now: Duration) -> Vec<Range<u64>> {
        let at_work: Vec<_> = self.at_work(now).collect();
        let is_due = |leaving: &&mut Leaving| {
            !leaving.is_going && leaving.tried.is_none_or(|tried| now.saturating_sub(tried) >= AGAIN)
        };
        let is_free = |leaving: &&mut Leaving| {
            !leaving.is_awaited(&at_work, within) && at_work.iter().all(|(holder, _)| leaving.released.contains(holder))
        };
        let due = self.leaving.iter_mut().filter(is_due).filter(is_free);
        due.map(|leaving| {
            (leaving.tried, leaving.is_going) = (Some(now), true);
            leaving.part.clone()
        })
        .collect()
    }

    /// Bytes of what is under way.
    pub fn going(&self) -> u64 {
        self.leaving
            .iter()
            .filter(|leaving| leaving.is_going)
            .map(|leaving| leaving.part.end - leaving.part.start)
            .sum()
    }

    /// Whether a part that could be dropped still can be: no stream comes to it within so many bytes by now.
    pub fn may_go(&self, part: &Range<u64>, within: u64, now: Duration) -> bool {
        let at_work: Vec<_> = self.at_work(now).collect();
        self.leaving.iter().any(|leaving| leaving.part == *part && !leaving.is_awaited(&at_work, within))
    }

    /// What is under way may be dropped anew: it is not waited for.
    pub fn try_again(&mut self) {
        for leaving in self.leaving.iter_mut().filter(|leaving| leaving.is_going) {
            (leaving.tried, leaving.is_going) = (None, false);
        }
    }

    /// What could be dropped of a part has been: all of it, or something `is_left`.
    pub fn dropped(&mut self, part: &Range<u64>, is_left: bool) {
        self.leaving.retain(|leaving| is_left || leaving.part != *part);
        for leaving in self.leaving.iter_mut().filter(|leaving| leaving.part == *part) {
            leaving.is_going = false;
        }
    }

    /// The streams that get on: whose, and where.
    fn at_work(&self, now: Duration) -> impl Iterator<Item = (Holder, Place)> {
        let gets_on = move |since: Duration| now.saturating_sub(since) < IDLE;
        self.places
            .iter()
            .filter(move |(_, (_, since))| gets_on(*since))
            .map(|((holder, _), (place, _))| (*holder, *place))
    }
}

#[cfg(test)]
mod tests;
