//! Fills the page cache: many requests in flight, bounded, and fair between streams.

mod file;
mod fill;
mod pool;
mod residency;

pub use file::{Account, DataFile, FileRecord, Identity};
pub use pool::{Lane, Pool};

/// Bytes asked for in one request where the file system does not say better.
pub const CHUNK: u64 = 128 << 10;
/// The most that one request asks for.
pub const LARGEST_CHUNK: u64 = 1 << 20;
