//! What to fetch when: pure code, without I/O and without clocks, so that it can be tested as such.
//!
//! [`plan`] is the order in which a file is read, [`window`] how far along it has been requested, [`stream`] which
//! readers there are and where each of them is.

pub mod choice;
pub mod congestion;
pub mod plan;
pub mod stream;
pub mod window;
