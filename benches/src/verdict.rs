//! Whether a bar is met.

use std::fmt;

use serde::Serialize;

use crate::statistics::Ratio;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    NotMet,
    /// The confidence interval has the bar in it: more runs, or a quieter machine, would tell.
    Undecided,
}

impl Verdict {
    pub fn at_most(ratio: Ratio, bar: f64) -> Self {
        if ratio.high <= bar {
            Self::Met
        } else if ratio.low > bar {
            Self::NotMet
        } else {
            Self::Undecided
        }
    }

    /// For what does not vary with the machine's mood.
    pub fn is(met: bool) -> Self {
        if met { Self::Met } else { Self::NotMet }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::Undecided => "undecided",
        })
    }
}
