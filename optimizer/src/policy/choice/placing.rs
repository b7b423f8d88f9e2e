//! What the trials of one round say of each other, and of those that take no part in it.

use super::Choice;
use super::trial::{NEAR, Trial};

/// Who showed less than one of so many parts of the best in short trials was far behind, which was no luck; in longer ones
/// [`NEAR`] will do.
const FAR: f64 = 8.0;

impl Choice {
    /// The best that these trials have shown so far.
    pub(super) fn best(&self) -> f64 {
        self.trials.iter().filter(|trial| trial.has_told()).filter_map(Trial::merit).fold(0.0, f64::max)
    }

    /// Of buffered reads not all need a longer trial, where one has shown that they are behind; what is in use has its own.
    pub(super) fn spare_others(&mut self) {
        if self.is_early {
            return;
        }
        let (best, told, chosen) = (self.best(), self.told(), self.chosen);
        let others = self.trials.iter_mut().enumerate().filter(|(way, _)| chosen != Some(*way));
        for (_, other) in others.filter(|(_, other)| other.is_on() && !other.has_begun()) {
            if let Some(shown) = told.iter().find(|shown| other.is_outdone_by(shown, best)) {
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
        let (best, behind) = (self.best(), if self.is_early { FAR } else { NEAR });
        let is_far = |trial: &Trial| trial.merit().is_some_and(|merit| merit * behind < best);
        let far: Vec<_> = self.told().into_iter().filter(is_far).collect();
        for trial in &mut self.trials {
            if trial.has_told() {
                trial.set_far(is_far(trial));
            } else if far.iter().any(|shown| trial.is_outdone_by(shown, best)) {
                trial.set_far(true);
            }
        }
    }
}
