//! Finds the built programs, mounts slow storage, runs readers and finds their optimizers for the tests.

pub mod detector;
pub mod methods;
pub mod optimizer;
pub mod preload;
pub mod programs;
pub mod runs;
pub mod storage;
pub mod traps;
pub mod ways;
