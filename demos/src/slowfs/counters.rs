//! Counts of the read requests that reached the storage, per file and in all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;

/// What was asked of one file, or of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// READ requests finished, failed ones included.
    pub requests: u64,
    /// Bytes returned.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests being served now.
    pub in_flight: u64,
    /// The most that were served at the same time.
    pub max_in_flight: u64,
    /// Requests by size asked for, rounded up to a power of two.
    pub sizes: BTreeMap<u64, u64>,
}

impl Counts {
    fn begin(&mut self) {
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
    }

    fn end(&mut self, asked: u64, returned: Option<u64>) {
        self.in_flight -= 1;
        self.requests += 1;
        self.errors += u64::from(returned.is_none());
        self.bytes += returned.unwrap_or(0);
        *self.sizes.entry(asked.next_power_of_two()).or_default() += 1;
    }

    fn reset(&mut self) {
        *self = Self { in_flight: self.in_flight, max_in_flight: self.in_flight, ..Self::default() };
    }
}

/// The counts of one file; lives as long as the mount.
pub type FileCounts = Arc<Mutex<Counts>>;

/// The counts of a mount.
#[derive(Debug, Default)]
pub struct Counters {
    total: Mutex<Counts>,
    files: Mutex<BTreeMap<String, FileCounts>>,
}

/// What `counters.json` shows.
#[derive(Serialize)]
struct Snapshot {
    total: Counts,
    files: BTreeMap<String, Counts>,
}

impl Counters {
    /// The counts of the file at `path`, relative to the mount point.
    pub fn file(&self, path: &str) -> FileCounts {
        Arc::clone(locked(&self.files).entry(path.to_owned()).or_default())
    }

    pub fn begin(&self, file: &FileCounts) {
        locked(&self.total).begin();
        locked(file).begin();
    }

    /// Ends a request that asked for `asked` bytes and returned some, or None if it failed.
    pub fn end(&self, file: &FileCounts, asked: u64, returned: Option<u64>) {
        locked(&self.total).end(asked, returned);
        locked(file).end(asked, returned);
    }

    pub fn reset(&self) {
        locked(&self.total).reset();
        locked(&self.files).values().for_each(|file| locked(file).reset());
    }

    /// All counts as JSON; files without requests are left out.
    pub fn to_json(&self) -> Vec<u8> {
        let files = locked(&self.files)
            .iter()
            .map(|(path, counts)| (path.clone(), locked(counts).clone()))
            .filter(|(_, counts)| counts.requests + counts.in_flight > 0)
            .collect();
        let snapshot = Snapshot { total: locked(&self.total).clone(), files };
        let mut json = serde_json::to_vec_pretty(&snapshot).expect("counts are plain numbers");
        json.push(b'\n');
        json
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it counts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_per_file_and_in_all() {
        let counters = Counters::default();
        let (a, b) = (counters.file("a"), counters.file("dir/b"));
        counters.begin(&a);
        counters.begin(&b);
        counters.end(&a, 131_072, Some(131_072));
        counters.end(&b, 5000, None);
        assert_eq!(locked(&a).bytes, 131_072);
        assert_eq!(locked(&b).sizes, BTreeMap::from([(8192, 1)]));
        assert_eq!(locked(&b).errors, 1);
        assert_eq!(locked(&counters.total).requests, 2);
        assert_eq!(locked(&counters.total).max_in_flight, 2);
    }

    #[test]
    fn a_reset_keeps_what_is_in_flight() {
        let counters = Counters::default();
        let file = counters.file("a");
        counters.begin(&file);
        counters.reset();
        assert_eq!(locked(&file).in_flight, 1);
        counters.end(&file, 4096, Some(10));
        let counts = locked(&file);
        assert_eq!((counts.requests, counts.bytes), (1, 10));
    }
}
