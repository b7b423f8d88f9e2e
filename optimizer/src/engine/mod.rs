//! Fills the page cache: many requests in flight, bounded, and fair between streams.

mod audience;
mod cached;
mod counting;
mod failures;
mod file;
mod filling;
mod held;
mod kept;
mod lanes;
mod mount;
mod pool;
mod ranges;
mod residency;
pub mod sent;
mod trust;
mod walk;
mod ways;
mod witness;

pub use audience::Audience;
pub use file::{Account, DataFile, FileRecord, Identity};
pub use held::Held;
pub use lanes::Lane;
pub use mount::mount_number;
pub use pool::{Pool, Seat, Wish};
pub use sent::SentFile;
pub use ways::{Way, is_populating_known};

use std::io;
use std::ops::Range;

/// Bytes asked for in one request where the file system does not say better.
pub const CHUNK: u64 = 128 << 10;
/// The most that one request asks for.
pub const LARGEST_CHUNK: u64 = 1 << 20;
/// What a fault reads in at once in a mapping with `MADV_HUGEPAGE`, aligned: a huge page of x86-64.
pub const LARGE_PIECE: u64 = 2 << 20;
/// Why a chunk did not come in.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The call did nothing, or is not allowed.
    #[error("the call had no effect")]
    Ineffective,
    #[error(transparent)]
    Storage(#[from] io::Error),
}

/// A way to bring parts of a file into the page cache. Each thread that fills has engines of its own.
pub trait Engine {
    /// Brings in the chunk, and any that `traffic` has for this engine meanwhile; tells `traffic` how each one went.
    fn fill(&mut self, file: &DataFile, chunk: &Range<u64>, traffic: &mut dyn Traffic);
}

/// The requests in flight, as an engine sees them.
pub trait Traffic {
    /// Another chunk of the same file for this engine, if more may be in flight.
    fn more(&mut self) -> Option<Range<u64>>;

    /// The parts of a chunk that were not known to be cached when its turn came.
    fn lacked(&self, chunk: &Range<u64>) -> &[Range<u64>];

    /// How a chunk went.
    fn done(&mut self, chunk: &Range<u64>, result: Result<(), Failure>);
}
