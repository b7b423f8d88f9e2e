//! The ways in which a program of others' is run: what it leaves behind must be what it leaves behind alone.

use crate::detector::watched;
use crate::methods::METHODS;
use crate::runs::{Left, Program, Report};

/// Short, so that there are many checkpoints.
const SPACED: [&str; 2] = ["--distance=1M", "--size=8M"];

/// With an optimizer that dies, and as below.
pub fn all(program: &Program, alone: &Left) -> Vec<Report> {
    program.must_outlive_its_optimizer(alone, &SPACED);
    all_but_deaths(program, alone)
}

/// With both methods, and with the detector behind our library.
pub fn all_but_deaths(program: &Program, alone: &Left) -> Vec<Report> {
    let watched = Program(watched(&program.0).expect("cc compiles the detector"));
    let runs = METHODS.into_iter().map(|method| (program, method)).chain([(&watched, METHODS[0])]);
    runs.map(|(program, method)| program.must_be_as(alone, &[&[method], &SPACED[..]].concat())).collect()
}
