//! Where a reader is: the sources that tell it, behind one trait.

pub mod checkpoints;

use crate::engine::Lane;
use crate::policy::retention::Holder;
use crate::policy::stream::{StreamId, Thresholds};
use precache_contract::ring::What;
use std::time::Duration;

/// Names one mapping of one reader for as long as it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappingId {
    pub slot: u16,
    pub generation: u32,
}

impl MappingId {
    /// Where there are several readers.
    pub fn holder(self, reader: u64) -> Holder {
        (reader, u32::from(self.slot) << 16 | self.generation & 0xffff)
    }

    /// The lane of one of its streams, where there are several readers.
    pub fn lane(self, reader: u64, stream: StreamId) -> Lane {
        let (reader, mapping) = self.holder(reader);
        (reader, mapping, stream)
    }
}

/// A reader touched the byte at this offset of the file behind the mapping; or the program said how it will read from
/// there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub mapping: MappingId,
    pub offset: u64,
    pub what: What,
}

/// Tells where one reader is.
pub trait ProgressSource: Send {
    /// Waits for news, for so long at `most`, and appends them; `false` when there will be none any more.
    fn wait(&mut self, news: &mut Vec<Progress>, most: Option<Duration>) -> bool;

    /// Whether there are news that were not appended yet. If not, whoever trips next has seen what was told before.
    fn has_more_news(&self) -> bool;

    /// Whether the mapping still exists.
    fn is_mapped(&self, mapping: MappingId) -> bool;

    /// Says how far apart news of a mapping is wanted, in bytes, 0 as from the beginning; and where each stream goes on
    /// and its news is urgent.
    fn expect(&self, mapping: MappingId, distance: u64, thresholds: &mut dyn Iterator<Item = Thresholds>);

    /// Whether it was found not to pay to map pages ahead of the reader.
    fn maps_in_vain(&self, mapping: MappingId) -> bool;

    /// Asks the reader's side to unmap the pages of this part of the file, so that they can be dropped; once at a time.
    fn release(&self, mapping: MappingId, part: &std::ops::Range<u64>);

    /// Whether that has been done, or there is no such mapping any more.
    fn is_released(&self, mapping: MappingId) -> bool;

    /// Asks the reader's side to let go of the mapping.
    fn let_go(&self, mapping: MappingId);

    /// Whether that was asked.
    fn is_let_go(&self, mapping: MappingId) -> bool;
}
