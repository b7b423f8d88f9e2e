//! Who hears what of a file is in the page cache when its turn comes, and what leaves it.

use precache_contract::presence::CELL;
use std::ops::Range;
use std::sync::{Arc, RwLock, Weak};

/// Hears of one file.
pub trait Audience: Send + Sync {
    /// The part is in the page cache, or is not.
    fn note(&self, part: Range<u64>, is_cached: bool);
}

/// All that hear of one file, as long as they exist.
#[derive(Default)]
pub struct Audiences(RwLock<Vec<Weak<dyn Audience>>>);

impl Audiences {
    pub fn add(&self, audience: &Arc<dyn Audience>) {
        let mut audiences = self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        audiences.retain(|audience| audience.strong_count() > 0);
        audiences.push(Arc::downgrade(audience));
    }

    /// The chunk, of a file of `size` bytes, is cached.
    pub fn tell_cached(&self, chunk: &Range<u64>, is_exact: bool, size: u64) {
        // Windows lie end to end: what comes before this in its cell was asked for by the same stream, or has been read.
        let start = if is_exact { chunk.start } else { chunk.start / CELL * CELL };
        let end = if chunk.end >= size { chunk.end.next_multiple_of(CELL) } else { chunk.end };
        self.tell(start..end, true);
    }

    /// The part has left.
    pub fn tell_gone(&self, part: &Range<u64>) {
        self.tell(part.clone(), false);
    }

    fn tell(&self, part: Range<u64>, is_cached: bool) {
        let audiences = self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        for audience in audiences.iter().filter_map(Weak::upgrade) {
            audience.note(part.clone(), is_cached);
        }
    }
}
