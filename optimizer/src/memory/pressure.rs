//! Pressure stall information (Documentation/accounting/psi.rst): tasks that wait for memory, before anything is killed.

use super::cgroup::Group;
use std::fs;
use std::path::Path;

/// Percent of the last ten seconds in which some task waited for memory, from which on only this share of the budget is left.
const STEPS: [(f64, f64); 2] = [(40.0, 0.5), (10.0, 0.75)];

/// The share of the budget that so much waiting leaves.
pub fn share(percent: f64) -> f64 {
    STEPS.into_iter().find(|(from, _)| percent >= *from).map_or(1.0, |(_, share)| share)
}

/// Percent of the last ten seconds in which some task of the group waited; told by version 2 alone.
pub fn of_group(own: Option<&Group>) -> Option<f64> {
    some_of_ten_seconds(&own?.file("memory.pressure"))
}

/// The same of all tasks, those that wait within the limit of some group included.
pub fn of_system(root: &Path) -> Option<f64> {
    some_of_ten_seconds(&root.join("proc/pressure/memory"))
}

fn some_of_ten_seconds(file: &Path) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}
