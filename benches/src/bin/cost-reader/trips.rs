//! What a checkpoint costs: the time of the access that hits it, beside the least that it could be.
//!
//! The least is a fault whose handler opens the same bytes by the same call, and does nothing else, or wakes another process,
//! too. All are measured in turn, checkpoint by checkpoint, in one process, on the same file; which kind of trip an access was,
//! the counters that the library shares with the optimizer say, and the kernel says which pages were closed again.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use precache_contract::segment::Segment;
use serde_json::json;

use crate::bare::{Bare, Fault, action};
use crate::mapping::Mapping;
use crate::sleeper::Sleeper;

/// One access in each step: what a fault maps around itself.
pub const STEP: usize = 64 << 10;
const ROUNDS: usize = 24;
/// One round in so many is slow: it takes fifty times as long.
const SLOW: usize = 4;
/// Places where the mapping can lie, and that of bare faults in the other.
const PLACES: usize = 2;
/// Until the reader's order is known and told, trips are of another kind.
const LEARNING: usize = 8 << 20;
/// A page is not closed again before so many others have tripped.
const RECENT: usize = 4;

/// Bytes from one checkpoint to the next (`--distance`).
pub const DISTANCE: usize = 1 << 20;

/// Time that a reader takes for what lies between two checkpoints.
const PACE: Duration = Duration::from_millis(1);

/// Prints a line for the slow rounds, and one for the others: medians in nanoseconds, and how many trips there were of each kind.
/// What a trip takes more than a bare fault is that of pairs, both in the same half of a page table: opening 1 MiB takes some
/// microseconds more where the kernel has the table already, and of two kinds of faults a median would be that of one or of the
/// other. For the same reason the two mappings change places: where the end of what is open lies between two nodes of the
/// kernel's tree of mappings, opening more takes it a microsecond longer (`mas_wr_spanning_store`, lib/maple_tree.c).
///
/// Each trip counts once, and not each round: where the optimizer finds the file in memory early, a round has ten trips and not
/// two hundred, all of them while it does so.
pub fn run(path: &Path) -> anyhow::Result<()> {
    let sleeper = Sleeper::begin()?;
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize / DISTANCE * DISTANCE;
    let half = length / DISTANCE / 2 * DISTANCE;
    ensure!(half.is_multiple_of(2 * DISTANCE), "half of the file is no whole number of page tables");
    // The library's handler is in place from its first mapping on.
    drop(Mapping::of_program(&file, length)?);
    let [mut slow, mut quick] = <[[Times; PLACES]; 2]>::default();
    for round in 0..ROUNDS {
        // A reader that takes its time lets who is woken fall asleep again.
        let (pace, of_pace) = if round % SLOW == 0 { (PACE, &mut slow) } else { (Duration::ZERO, &mut quick) };
        // The kernel puts what is mapped first above the other. In slow rounds and in others, both come as often.
        let place = (round / SLOW + round) % PLACES;
        let times = &mut of_pace[place];
        let map = |is_bare| match is_bare {
            true => Mapping::closed(&file, length),
            false => Mapping::of_program(&file, length),
        };
        let (first, second) = (map(place == 0)?, map(place != 0)?);
        let (closed, mapping) = if place == 0 { (first, second) } else { (second, first) };
        let mut bare = Bare::begin(closed, &sleeper)?;
        ensure!(
            (bare.mapping.address ^ mapping.address) % (2 * DISTANCE) == 0,
            "the two lie differently in page tables"
        );
        let segment = segment().context("there is no segment: run this under precache-run")?;
        let mut tripped = Vec::new();
        let counted = || (segment.counters.trips.load(Relaxed), segment.counters.wakes.load(Relaxed));
        let mut before = counted();
        for checkpoint in (0..length).step_by(DISTANCE) {
            // Both a moment apart, each first as often as the other, and each right after its action is set: whatever else happens
            // meets both. Half the file apart, so that neither finds the processor's caches filled by the other.
            let is_bare_first = (checkpoint / DISTANCE + round).is_multiple_of(2);
            let bare_fault = |bare: &mut Bare| {
                rest(pace);
                bare.fault((checkpoint + half) % length, !pace.is_zero())
            };
            let mut least = if is_bare_first { Some(bare_fault(&mut bare)?) } else { None };
            rest(pace);
            action(Some(&bare.others))?;
            let mut trip = None;
            for at in (checkpoint..checkpoint + DISTANCE).step_by(STEP) {
                let time = mapping.touch(at);
                // Not looked at right before: the handler finds them where they are.
                let after = counted();
                let (trips, wakes) = (after.0 - before.0, after.1 - before.1);
                before = after;
                if trips == 0 {
                    continue;
                }
                ensure!(trips == 1, "one access was {trips} trips");
                tripped.push(at);
                // The only page that may be closed again is the one that has just ceased to be recent.
                let fallen = tripped.len().checked_sub(RECENT + 1).map(|index| tripped[index]);
                let is_rearmed = fallen.is_some_and(|fallen| mapping.is_closed(fallen));
                times.trips += 1;
                times.rearms += usize::from(is_rearmed);
                if at >= LEARNING && at == checkpoint {
                    trip = Some((time, is_rearmed, wakes > 0));
                }
            }
            if !is_bare_first {
                least = Some(bare_fault(&mut bare)?);
            }
            times.note(least, trip);
        }
        action(Some(&bare.others))?;
    }
    print(&slow, true);
    print(&quick, false);
    Ok(())
}

/// What was measured, in nanoseconds.
#[derive(Default)]
struct Times {
    /// Faults whose handler does nothing but open, and those whose handler wakes another process, too.
    bare: Vec<f64>,
    waking: Vec<f64>,
    /// Of others of these, the call that wakes.
    wake: Vec<f64>,
    /// What trips took more than the bare faults beside them: those that do nothing but open, those that wake the optimizer, and
    /// those that close a page again.
    quiet: Vec<f64>,
    woken: Vec<f64>,
    rearmed: Vec<f64>,
    /// Those that wake, from the access to its end.
    woken_time: Vec<f64>,
    /// All trips, and those after which one more page was closed again.
    trips: usize,
    rearms: usize,
}

impl Times {
    /// A fault, and the trip beside it: its time, whether it closed a page again, and whether it woke the optimizer.
    fn note(&mut self, fault: Option<Fault>, trip: Option<(f64, bool, bool)>) {
        let mut least = None;
        match fault {
            Some(Fault::Bare(time)) => {
                self.bare.push(time);
                least = Some(time);
            }
            Some(Fault::Waking(time)) => self.waking.push(time),
            Some(Fault::TimedWake(wake)) => self.wake.push(wake),
            Some(Fault::InVain) | None => {}
        }
        let Some((time, is_rearmed, wakes)) = trip else { return };
        let kind = match (is_rearmed, wakes) {
            (false, false) => &mut self.quiet,
            (false, true) => &mut self.woken,
            (true, false) => &mut self.rearmed,
            (true, true) => return,
        };
        kind.extend(least.map(|least| time - least));
        if wakes {
            self.woken_time.push(time);
        }
    }
}

fn print(times: &[Times; PLACES], is_slow: bool) {
    let of_places = |of: fn(&Times) -> &[f64]| of_places(times.each_ref().map(of));
    let count = |of: fn(&Times) -> &[f64]| times.iter().map(|times| of(times).len()).sum::<usize>();
    let counts = json!({ "quiet": count(|times| &times.quiet), "woken": count(|times| &times.woken),
        "rearmed": count(|times| &times.rearmed), "trips": times.iter().map(|times| times.trips).sum::<usize>(),
        "rearms": times.iter().map(|times| times.rearms).sum::<usize>() });
    println!(
        "{}",
        json!({ "is_slow": is_slow, "bare": of_places(|times| &times.bare), "waking": of_places(|times| &times.waking),
            "wake": of_places(|times| &times.wake), "quiet": of_places(|times| &times.quiet), "woken": of_places(|times| &times.woken),
            "rearmed": of_places(|times| &times.rearmed), "woken_time": of_places(|times| &times.woken_time),
            "counts": counts })
    );
}

/// What was seen in each place counts as much; none if there was nothing in one.
fn of_places(times: [&[f64]; PLACES]) -> Option<f64> {
    let medians: Option<Vec<f64>> = times.into_iter().map(median).collect();
    Some(medians?.into_iter().sum::<f64>() / PLACES as f64)
}

/// The middle; none of none.
fn median(times: &[f64]) -> Option<f64> {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Lets so much time go by.
fn rest(pace: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < pace {
        std::hint::spin_loop();
    }
}

/// The memory that the library shares with the optimizer.
fn segment() -> Option<&'static Segment> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("/memfd:precache "))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    // SAFETY: never unmapped while the process lives, as long as a segment, and made of atomics.
    (end - start == Segment::LENGTH).then(|| unsafe { &*(start as *const Segment) })
}
