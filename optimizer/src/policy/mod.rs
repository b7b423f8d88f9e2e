//! What to fetch when: pure code, without I/O and without clocks, so that it can be tested as such.
//!
//! [`plan`] is the order in which a file is read, [`stride`] what a reader leaves out of it, [`window`] how far along it
//! has been requested, [`stream`] which readers there are and where each of them is, [`storage`] what the storage and
//! the readers' pace ask for, [`choice`] which engine brings it in, [`congestion`] and [`pieces`] how many requests are in flight,
//! [`wanted`] how far a program's word is taken, [`budget`] how much page cache there is for them, [`retention`] what leaves it behind them.

pub mod budget;
pub mod choice;
pub mod congestion;
mod least;
pub mod pieces;
pub mod plan;
pub mod retention;
pub mod storage;
pub mod stream;
pub mod stride;
pub mod wanted;
pub mod window;

#[cfg(test)]
mod simulation;
