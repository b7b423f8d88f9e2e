//! The exported functions that stand in front of libc's, by subject. Each does its part and leaves the rest to the
//! next library, with its result and errno.

pub mod buffers;
pub mod files;
pub mod memory;
pub mod programs;
pub mod signals;
