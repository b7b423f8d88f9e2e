//! Pressure stall information (Documentation/accounting/psi.rst): tasks that wait for memory, before anything is killed.

use super::cgroup::Group;
use std::fs;
use std::path::Path;

/// Percent of the last ten seconds in which some task waited for memory, and the share of the budget that is left then.
const STEPS: [(f64, f64); 2] = [(40.0, 0.5), (10.0, 0.75)];

/// The share of the budget that pressure leaves: that of our own group where it is told (version 2), or else that of the
/// system.
pub fn share(root: &Path, own: Option<&Group>) -> f64 {
    let of_group = own.and_then(|group| fs::read_to_string(group.file("memory.pressure")).ok());
    let text = of_group.or_else(|| fs::read_to_string(root.join("proc/pressure/memory")).ok());
    let stalled = text.as_deref().and_then(some_of_ten_seconds).unwrap_or(0.0);
    STEPS.into_iter().find(|(percent, _)| stalled >= *percent).map_or(1.0, |(_, share)| share)
}

fn some_of_ten_seconds(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}
