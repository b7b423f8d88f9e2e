//! What is noted for the report of one session by the threads that serve its readers.

use super::worker::lock;
use crate::engine::{Account, FileRecord};
use std::sync::{Arc, Mutex};

/// Troubles that one session keeps.
const TROUBLES: usize = 100;

#[derive(Default)]
pub struct Ledger {
    /// Every file that a reader of the session mapped, and what was done with it for the session.
    files: Mutex<Vec<(Arc<FileRecord>, Arc<Account>)>>,
    troubles: Mutex<Vec<String>>,
}

impl Ledger {
    /// What is done with this file for the session.
    pub fn account_of(&self, record: &Arc<FileRecord>) -> Arc<Account> {
        let mut files = lock(&self.files);
        if let Some((_, account)) = files.iter().find(|(known, _)| Arc::ptr_eq(known, record)) {
            return Arc::clone(account);
        }
        let account = Arc::new(Account::default());
        files.push((Arc::clone(record), Arc::clone(&account)));
        account
    }

    /// Bytes of these files that were fetched, for whom it may be, and not dropped, as long as they are mapped.
    pub fn held(&self) -> u64 {
        lock(&self.files).iter().map(|(record, _)| record.kept.held()).sum()
    }

    /// Something that kept a process from being served.
    pub fn note_trouble(&self, what: String) {
        let mut troubles = lock(&self.troubles);
        if troubles.len() < TROUBLES {
            troubles.push(what);
        }
    }

    pub fn files(&self) -> Vec<(Arc<FileRecord>, Arc<Account>)> {
        lock(&self.files).clone()
    }

    /// The troubles so far; they are not told again.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.troubles))
    }
}
