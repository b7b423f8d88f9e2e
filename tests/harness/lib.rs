//! Finds the built programs, mounts slow storage and runs readers for the tests.

pub mod programs;
pub mod runs;
pub mod storage;
