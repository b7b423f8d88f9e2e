//! The data files and the pools: one of each per file and per mount, whoever reads.

use crate::engine::{DataFile, FileRecord, Identity, Pool};
use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Weak};

#[derive(Default)]
pub struct Files {
    files: HashMap<Identity, (Weak<FileRecord>, Weak<DataFile>)>,
    pools: HashMap<u64, Weak<Pool>>,
}

impl Files {
    /// The file, on the descriptor that came first. It is let go of when its last mapping is gone; its record stays
    /// while someone has to report on it.
    pub fn find_or_add(&mut self, file: File) -> std::io::Result<Arc<DataFile>> {
        self.files.retain(|_, (record, _)| record.strong_count() > 0);
        let identity = Identity::of(&file)?;
        let size = file.metadata()?.len();
        // A file that has changed its length is another file, with another end.
        let same = |record: &Weak<FileRecord>| record.upgrade().is_some_and(|record| record.size == size);
        let known = self.files.get(&identity).filter(|(record, _)| same(record));
        if let Some(open) = known.and_then(|(_, open)| open.upgrade()) {
            return Ok(open);
        }
        let file = Arc::new(DataFile::new(file, known.and_then(|(record, _)| record.upgrade()))?);
        self.files.insert(identity, (Arc::downgrade(&file.record), Arc::downgrade(&file)));
        Ok(file)
    }

    /// The pool of the file's mount, with at least `jobs` requests allowed.
    pub fn pool_of(&mut self, file: &DataFile, jobs: usize) -> Arc<Pool> {
        self.pools.retain(|_, known| known.strong_count() > 0);
        let device = file.identity.device;
        if let Some(known) = self.pools.get(&device).and_then(Weak::upgrade) {
            known.allow(jobs);
            return known;
        }
        let pool = Arc::new(Pool::new(jobs));
        self.pools.insert(device, Arc::downgrade(&pool));
        pool
    }
}
