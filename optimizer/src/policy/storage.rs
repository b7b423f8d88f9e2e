//! What is known of the storage, and what follows from it: how long windows are, and whether gaps are worth fetching.

use std::time::Duration;

/// An estimate of the storage's limits.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// Bytes per second that it delivers at best.
    pub bandwidth: f64,
    /// From a request to its first byte.
    pub latency: Duration,
    /// Requests that are served at the same time.
    pub depth: u32,
    /// Bytes in a request at most.
    pub chunk: u64,
    /// Bytes that are kept in flight: more than are under way where requests are large.
    pub in_flight: u64,
    /// No window is longer.
    pub longest_window: u64,
}

impl Default for Storage {
    /// Somewhat remote, until it is measured.
    fn default() -> Self {
        Self {
            bandwidth: 1e9,
            latency: Duration::from_millis(2),
            depth: 12,
            chunk: 128 << 10,
            in_flight: 0,
            longest_window: LARGEST_WINDOW,
        }
    }
}

/// Bounds of windows whose size is left to us.
const SMALLEST_WINDOW: u64 = 8 << 20;
const LARGEST_WINDOW: u64 = 128 << 20;

/// Of a budget that files exceed, what one window of each reader may take together: several are held for a reader, and
/// what they take is not kept from one epoch to the next.
const OF_BUDGET: u64 = 32;
/// Shorter windows than this no number of readers makes.
const SHORTEST_WINDOW: u64 = 2 << 20;

/// A window lasts so long at the reader's pace ...
const WINDOW: Duration = Duration::from_millis(100);
/// ... and a checkpoint comes so often.
const CHECKPOINT: Duration = Duration::from_millis(20);

/// Bounds of distances that are left to us; both powers of two, as all between them, so that each grid is in the finer
/// ones.
pub const SMALLEST_DISTANCE: u64 = 1 << 20;
const LARGEST_DISTANCE: u64 = 32 << 20;

/// Windows hold so many times what is under way at the full bandwidth, or in flight: a quarter of a window, what is left
/// at the pre-cache threshold, covers the latency twice. If all of it were in flight by then, there would be nothing to
/// send until the reader has come there, and so the bandwidth would seem to be less than it is.
const COVER: f64 = 8.0;

/// So many times as long as without it is too long for what was begun with gaps: to learn where the records lie anew costs some, too,
/// and estimates waver.
const DEAR: f64 = 1.5;

/// The longest window of files that are to be held within a budget, which so many readers share.
pub fn longest_window(files: u64, budget: u64, readers: u64) -> u64 {
    let readers = readers.max(1);
    let least = (SMALLEST_WINDOW / readers).max(SHORTEST_WINDOW);
    if files <= budget { LARGEST_WINDOW } else { (budget / OF_BUDGET / readers).clamp(least, LARGEST_WINDOW) }
}

impl Storage {
    /// Bytes under way while a byte comes, or in flight.
    pub fn in_transit(&self) -> u64 {
        ((self.bandwidth * self.latency.as_secs_f64()) as u64).max(self.in_flight)
    }

    /// The size of windows for a reader that takes `pace` bytes a second.
    pub fn window(&self, pace: f64) -> u64 {
        let lasting = pace * WINDOW.as_secs_f64();
        let under_way = pace.max(self.bandwidth) * self.latency.as_secs_f64();
        let covering = COVER * under_way.max(self.in_flight as f64);
        (lasting.max(covering) as u64).max(SMALLEST_WINDOW).min(self.longest_window).next_multiple_of(1 << 20)
    }

    /// The distance of checkpoints for this pace.
    pub fn distance(&self, pace: f64) -> u64 {
        let bytes = (pace * CHECKPOINT.as_secs_f64()) as u64;
        (bytes.clamp(SMALLEST_DISTANCE, LARGEST_DISTANCE) + 1).next_power_of_two() / 2
    }

    /// Whether a reader of `run` bytes after each of which it leaves out `gap` is served no slower if these are fetched
    /// too: requests cost latency, a part of it each as they overlap, and bytes cost bandwidth.
    pub fn fetches_gaps(&self, run: u64, gap: u64) -> bool {
        self.time(run.saturating_add(gap)) <= self.time(run)
    }

    /// Whether fetching what is left out has turned out to be dear: the storage has been measured, and is not what it was taken for.
    pub fn gaps_are_dear(&self, run: u64, gap: u64) -> bool {
        self.in_flight > 0 && self.time(run.saturating_add(gap)) > DEAR * self.time(run)
    }

    /// Seconds that a piece costs when the storage is kept busy with such pieces.
    fn time(&self, bytes: u64) -> f64 {
        let requests = bytes.div_ceil(self.chunk.max(1)) as f64;
        (bytes as f64 / self.bandwidth).max(requests * self.latency.as_secs_f64() / f64::from(self.depth.max(1)))
    }
}

/// How fast a stream is read, from the times of its trips.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    last: Option<(u64, Duration)>,
    /// Bytes per second.
    pace: Option<f64>,
}

impl Pace {
    /// Too short to tell a pace from.
    const SHORTEST: Duration = Duration::from_millis(2);

    /// The stream has read so many bytes in all by the clock's reading `now`. If this `is_behind`, it had some time before: the first
    /// pace would be too low.
    pub fn reach(&mut self, bytes: u64, now: Duration, is_behind: bool) {
        let Some((before, then)) = self.last else {
            self.last = Some((bytes, now));
            return;
        };
        let time = now.saturating_sub(then);
        if time < Self::SHORTEST || bytes <= before {
            return;
        }
        let latest = (bytes - before) as f64 / time.as_secs_f64();
        if is_behind && self.pace.is_none() {
            return;
        }
        self.pace = Some(self.pace.map_or(latest, |pace| (pace + latest) / 2.0));
        self.last = Some((bytes, now));
    }

    pub fn bytes_per_second(&self) -> Option<f64> {
        self.pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_dear_where_the_storage_is_slow_and_answers_soon() {
        let (run, gap) = (32 << 10, 96 << 10);
        let slow = Storage { bandwidth: 1e8, latency: Duration::from_micros(200), ..Storage::default() };
        assert!(Storage::default().fetches_gaps(run, gap) && !slow.fetches_gaps(run, gap));
        assert!(!slow.gaps_are_dear(run, gap), "nobody has measured it");
        let measured = Storage { in_flight: 1 << 20, ..slow };
        assert!(measured.gaps_are_dear(run, gap) && !measured.gaps_are_dear(run, 4096));
        assert!(!Storage { in_flight: 1 << 20, ..Storage::default() }.gaps_are_dear(run, gap));
    }

    fn storage(milliseconds: u64, bandwidth: f64) -> Storage {
        Storage { bandwidth, latency: Duration::from_millis(milliseconds), ..Storage::default() }
    }

    #[test]
    fn gaps_are_fetched_where_that_costs_no_time() {
        assert!(!storage(2, 400e6).fetches_gaps(200_704, 602_112));
        assert!(storage(2, 400e6).fetches_gaps(4096, 28_672));
        assert!(!storage(0, 400e6).fetches_gaps(4096, 28_672));
        assert!(storage(10, 1e9).fetches_gaps(4096, 124 << 10));
    }

    #[test]
    fn windows_cover_the_latency_and_last() {
        assert_eq!(storage(2, 400e6).window(400e6), 39 << 20);
        assert_eq!(storage(10, 800e6).window(800e6), 77 << 20);
        assert_eq!(storage(2, 400e6).window(50e6), 8 << 20);
        assert_eq!(storage(10, 800e6).window(100e6), 62 << 20);
        assert_eq!(Storage { in_flight: 8 << 20, ..storage(2, 400e6) }.window(400e6), 64 << 20);
        assert_eq!(storage(2, 400e6).distance(400e6), 4 << 20);
        assert_eq!(storage(2, 400e6).distance(3e9), 32 << 20);
        assert_eq!(storage(2, 400e6).distance(1e6), 1 << 20);
    }

    /// Budgets below the least that windows take have windows all the same.
    #[test]
    fn windows_leave_most_of_the_budget() {
        assert_eq!(longest_window(1 << 30, 1 << 30, 1), LARGEST_WINDOW);
        assert_eq!(longest_window(1 << 30, 800 << 20, 1), 25 << 20);
        assert_eq!(longest_window(1 << 30, 0, 1), SMALLEST_WINDOW);
        let bounded = Storage { longest_window: 50 << 20, ..storage(10, 800e6) };
        assert_eq!(bounded.window(3e9), 50 << 20);
    }

    /// Three windows of each reader are held at a time.
    #[test]
    fn windows_of_many_readers_leave_most_of_the_budget() {
        for readers in [1, 2, 8, 64] {
            let longest = longest_window(16 << 30, 8 << 30, readers);
            assert!(3 * longest * readers <= 1 << 30, "{longest} for {readers}");
            let bounded = Storage { longest_window: longest, ..storage(10, 800e6) };
            assert!(bounded.window(3e9) <= longest.next_multiple_of(1 << 20));
        }
        assert_eq!(longest_window(16 << 30, 8 << 30, 8), 32 << 20);
        assert_eq!(longest_window(16 << 30, 8 << 30, 1000), SHORTEST_WINDOW);
    }

    #[test]
    fn a_pace_is_that_of_the_last_trips() {
        let mut pace = Pace::default();
        for second in 0..10 {
            pace.reach(second * 1000, Duration::from_secs(second), false);
        }
        assert_eq!(pace.bytes_per_second(), Some(1000.0));
        for second in 10..30 {
            pace.reach(10_000 + (second - 10) * 4000, Duration::from_secs(second), false);
        }
        assert!((pace.bytes_per_second().unwrap() - 4000.0).abs() < 10.0);
    }

    /// Of several trips that are heard of at once, the first seems to have taken as long as nobody listened.
    #[test]
    fn what_is_heard_of_late_tells_no_first_pace() {
        let mut pace = Pace::default();
        pace.reach(0, Duration::ZERO, false);
        pace.reach(100, Duration::from_millis(5), true);
        assert_eq!(pace.bytes_per_second(), None);
        pace.reach(50_000, Duration::from_millis(10), false);
        assert_eq!(pace.bytes_per_second(), Some(5e6));
        pace.reach(60_000, Duration::from_millis(20), true);
        assert_eq!(pace.bytes_per_second(), Some(3e6));
    }
}
