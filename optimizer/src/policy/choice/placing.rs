//! What the trials of one round say of each other, and of those that take no part in it.

use super::Choice;
use super::trial::Trial;

/// Who showed less than one of so many parts of the best was far behind: luck has made differences of five.
const FAR: f64 = 8.0;

impl Choice {
    /// The best that these trials have shown so far.
    pub(super) fn best(&self) -> f64 {
        self.trials.iter().filter(|trial| trial.has_told()).filter_map(Trial::merit).fold(0.0, f64::max)
    }

    /// Of buffered reads not all need a longer trial, where a cheaper one has shown that they are behind.
    pub(super) fn spare_others(&mut self) {
        if self.is_early {
            return;
        }
        let (best, told, chosen) = (self.best(), self.told(), self.chosen);
        // What is in use brings in what is wanted in any case.
        let others = self.trials.iter_mut().enumerate().filter(|(way, _)| chosen != Some(*way));
        for (_, other) in others.filter(|(_, other)| other.is_on() && !other.has_begun()) {
            if let Some(shown) = told.iter().find(|shown| shown.puts_below(other, best)) {
                other.spare(shown);
            }
        }
    }

    /// Those that have shown something in these trials.
    fn told(&self) -> Vec<Trial> {
        self.trials.iter().filter(|trial| trial.has_told()).cloned().collect()
    }

    /// Notes who was far behind in these trials, by what they showed there: in use, with more in flight, an equal shows more.
    pub(super) fn note_far(&mut self) {
        let (told, merit) = (self.told(), self.best() / FAR);
        for trial in &mut self.trials {
            if trial.has_told() {
                trial.set_far(trial.merit().is_some_and(|shown| shown < merit));
            } else if told.iter().any(|shown| shown.puts_below(trial, merit)) {
                trial.set_far(true);
            }
        }
    }
}
