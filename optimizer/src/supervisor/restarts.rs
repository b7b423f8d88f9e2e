//! When a service that has died is started anew: at once, then less and less soon, and not forever if it keeps dying.

use std::time::{Duration, Instant};

/// A service that keeps dying is not started forever.
pub const MOST: u32 = 5;
/// One that has run for so long does not keep dying, whatever it dies of in the end.
pub const LASTING: Duration = Duration::from_secs(60);
/// Between the starts, for each of these so far: the first one is at once, for readers wait for storage meanwhile.
const SPACING: Duration = Duration::from_millis(500);

/// Pure: times come from the caller.
pub struct Restarts {
    /// All of them, and those since one lasted.
    total: u32,
    in_a_row: u32,
    last_start: Instant,
}

impl Restarts {
    /// The service was started for the first time.
    pub fn new(now: Instant) -> Self {
        Self { total: 0, in_a_row: 0, last_start: now }
    }

    pub fn total(&self) -> u32 {
        self.total
    }

    /// The service has died.
    pub fn note_loss(&mut self, now: Instant) {
        if now.duration_since(self.last_start) >= LASTING {
            self.in_a_row = 0;
        }
    }

    /// How long nothing is to be done.
    pub fn wait(&self, now: Instant) -> Duration {
        (SPACING * self.in_a_row).saturating_sub(now.duration_since(self.last_start))
    }

    /// Whether it may be started anew, which the caller then does.
    pub fn start(&mut self, now: Instant) -> bool {
        if self.in_a_row == MOST {
            return false;
        }
        (self.total, self.in_a_row, self.last_start) = (self.total + 1, self.in_a_row + 1, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dies so long after each start.
    fn starts(lives: impl IntoIterator<Item = Duration>) -> Restarts {
        let mut now = Instant::now();
        let mut restarts = Restarts::new(now);
        for life in lives {
            now += life;
            restarts.note_loss(now);
            now += restarts.wait(now);
            if !restarts.start(now) {
                break;
            }
        }
        restarts
    }

    #[test]
    fn what_keeps_dying_is_started_a_few_times() {
        assert_eq!(starts([Duration::from_millis(1); 20]).total(), MOST);
        let lives = (0..20).map(|number| Duration::from_millis(number % 3));
        assert_eq!(starts(lives).total(), MOST);
    }

    #[test]
    fn what_lasts_is_started_each_time() {
        assert_eq!(starts([LASTING; 20]).total(), 20);
        // Three die young after each that lasts.
        let lives = (0..20).map(|number| if number % 4 == 0 { LASTING } else { Duration::ZERO });
        assert_eq!(starts(lives).total(), 20);
    }

    #[test]
    fn the_first_start_is_at_once_and_each_further_one_later() {
        let now = Instant::now();
        let mut restarts = Restarts::new(now);
        for number in 0..MOST {
            restarts.note_loss(now);
            assert_eq!(restarts.wait(now), SPACING * number);
            assert!(restarts.start(now));
        }
        assert_eq!(restarts.wait(now + SPACING * MOST), Duration::ZERO);
    }
}
