//! Whether a bar is met.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::results::table::{Table, seconds};
use crate::statistics::{Ratio, Spread};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    NotMet,
    /// The confidence interval has the bar in it: more runs, or a quieter machine, would tell.
    Undecided,
    /// Something that it takes is missing here.
    NotMeasured,
    /// Nothing was asked for: what others are to be compared with.
    NoBar,
}

impl Verdict {
    /// Of what is known to lie between these.
    pub fn at_most((low, high): (f64, f64), bar: f64) -> Self {
        if high <= bar {
            Self::Met
        } else if low > bar {
            Self::NotMet
        } else {
            Self::Undecided
        }
    }

    /// The same the other way round.
    pub fn at_least((low, high): (f64, f64), bar: f64) -> Self {
        Self::at_most((-high, -low), -bar)
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
            Self::NotMeasured => "not measured",
            Self::NoBar => "no bar",
        })
    }
}

/// One requirement and how it was met.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bar {
    pub requirement: String,
    pub measured: String,
    pub verdict: Verdict,
}

impl Bar {
    pub fn new(requirement: impl Into<String>, measured: impl Into<String>, verdict: Verdict) -> Self {
        let bar = Self { requirement: requirement.into(), measured: measured.into(), verdict };
        eprintln!("{}: {}: {}", bar.verdict, bar.requirement, bar.measured);
        bar
    }

    /// Times, each divided by what it is `to` be compared with, are at most the bar. None without times.
    pub fn of_times(
        requirement: impl Into<String>,
        times: &[f64],
        (what, to): (&str, &[f64]),
        bar: f64,
    ) -> Option<Self> {
        let ratio = Ratio::of(times, to)?;
        let (time, other) = (Spread::of(times.iter().copied())?, Spread::of(to.iter().copied())?);
        let measured = format!("{}, {what} {}: {ratio}", seconds(time.median), seconds(other.median));
        Some(Self::new(requirement, measured, Verdict::at_most(ratio.interval(), bar)))
    }

    /// Why nothing can be said.
    pub fn not_measured(requirement: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(requirement, why, Verdict::NotMeasured)
    }
}

/// The bars one below the other.
pub fn table<'a>(bars: impl IntoIterator<Item = &'a Bar>) -> Table {
    let mut table = Table::new(["bar", "measured ", "verdict "]);
    for bar in bars {
        table.row([bar.requirement.clone(), bar.measured.clone(), bar.verdict.to_string()]);
    }
    table
}
