//! Visiting every record of a tree in key order without reading values.
//!
//! liblmdb hands out pointers into its mapping. The key's page is a leaf of the tree and is read; of a value in overflow
//! pages only the address is taken, so that its pages stay where they are.

use std::ptr;

use lmdb_master_sys as ffi;

use super::env::{Stat, Tree};
use super::fetch::Fetcher;
use super::{Env, Error};
use crate::patience::Steps;

/// Bytes of the header of each page (mdb.c, `PAGEHDRSZ`): what precedes a value in its overflow pages.
const PAGE_HEADER: u64 = 16;

/// Leaf pages between two times of letting mapped pages go. A fault maps what is cached around its page, up to 2 MiB where
/// the page cache has folios of that size: this bounds the mapped part to some 16 MiB.
const LET_GO_EVERY: u64 = 8;

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub key: &'a [u8],
    /// First byte of the value, in the data file.
    pub offset: u64,
    /// Bytes of the value.
    pub length: u64,
    /// First byte of the leaf page that holds the key.
    pub leaf: u64,
    /// The value has pages of its own; else it lies in a leaf page.
    pub overflow: bool,
}

impl Record<'_> {
    /// The bytes of the file that whoever reads the value touches, in whole pages: from, to. An empty value has its key's
    /// page.
    pub fn pages(&self, page_size: u64) -> (u64, u64) {
        let (at, length) = if self.length == 0 { (self.leaf, 1) } else { (self.offset, self.length) };
        (at / page_size * page_size, (at + length).next_multiple_of(page_size))
    }
}

impl Env {
    /// Calls `visit` for each record of `tree`, in key order; duplicates one by one.
    ///
    /// # Errors
    /// What liblmdb says of a page, a record that cannot be where it is said to be, a tree with more or fewer records than
    /// its statistics claim; or the visitor's own error. Damage may also crash: see [`isolated`](crate::child::isolated).
    pub fn walk<E: From<Error>>(
        &self,
        tree: Tree,
        fetcher: &mut Fetcher<'_>,
        mut visit: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stat = self.stat(tree)?;
        // A damaged branch page may lead in circles; a file cannot hold more records than bytes.
        let limit = stat.entries.min(self.used);
        let mut cursor = Cursor::open(self, tree)?;
        let steps = Steps::begin();
        let (mut records, mut page, mut pages) = (0, u64::MAX, 0);
        while let Some((key, value)) = cursor.next()? {
            records += 1;
            if records > limit {
                return Err(self
                    .damaged(format!("a tree holds more than the {limit} records that its header counts"))
                    .into());
            }
            let record = self.record(key, value, stat)?;
            let here = if stat.dupsort { record.pages(self.page_size).0 } else { record.leaf };
            if here != page {
                page = here;
                pages += 1;
                steps.got_on();
                fetcher.arrived_at(page);
                if pages % LET_GO_EVERY == 0 {
                    self.mapping().let_go();
                }
            }
            visit(record)?;
        }
        if records < stat.entries {
            let what = format!("a tree holds {records} records, its header counts {}", stat.entries);
            return Err(self.damaged(what).into());
        }
        Ok(())
    }

    /// Places one record, after checking that it can lie there.
    fn record(&self, key: ffi::MDB_val, value: ffi::MDB_val, stat: Stat) -> Result<Record<'_>, Error> {
        let outside = || self.damaged("a record lies outside the part of the file that is in use");
        let (key_at, key_length) = self.extent(key).ok_or_else(outside)?;
        let (offset, length) = self.extent(value).ok_or_else(outside)?;
        let file_end = |at: u64, length: u64| match at + length {
            end if end > self.file_size => {
                Err(Error::Truncated { path: self.location().data.clone(), end, length: self.file_size })
            }
            _ => Ok(()),
        };
        file_end(key_at, key_length)?;
        file_end(offset, length)?;
        let page_of = |at: u64| at / self.page_size;
        // An empty value at the end of its page begins where the next page does.
        let overflow = !stat.dupsort && length > 0 && page_of(offset) != page_of(key_at);
        if overflow && offset % self.page_size != PAGE_HEADER {
            return Err(self.damaged("a value begins in the middle of a page that is not its leaf"));
        }
        // SAFETY: the key lies in the mapping and ends before the end of the file (checked above), the mapping outlives
        // the borrow of `self`, and it is mapped read-only.
        let key = unsafe { std::slice::from_raw_parts(key.mv_data.cast::<u8>(), key.mv_size) };
        Ok(Record { key, offset, length, leaf: page_of(key_at) * self.page_size, overflow })
    }

    /// Offset and length of what liblmdb points to, where it lies in the used part of the file.
    fn extent(&self, val: ffi::MDB_val) -> Option<(u64, u64)> {
        let length = val.mv_size as u64;
        // An empty value may be placed behind the last byte of its page.
        let at = match length {
            0 => self.mapping().offset_of(val.mv_data.cast::<u8>().wrapping_sub(1))? + 1,
            _ => self.mapping().offset_of(val.mv_data.cast())?,
        };
        (at.checked_add(length)? <= self.used).then_some((at, length))
    }

    /// Pages on the free list: (free pages, transactions whose pages they were).
    ///
    /// Reads the first word of each entry of the free list: the number of page numbers that follow (mdb.c, `MDB_IDL`).
    pub fn free_pages(&self) -> Result<(u64, u64), Error> {
        let (mut pages, mut entries) = (0_u64, 0);
        self.walk(super::env::FREE, &mut Fetcher::pages(), |record| {
            let word = size_of::<usize>();
            if record.length < word as u64 {
                return Err(self.damaged("an entry of the free list is too short"));
            }
            let at = self.mapping().address_of(record.offset);
            // SAFETY: `walk` checked that the value lies in the mapping and in the file; it holds at least a word.
            let count = unsafe { ptr::read_unaligned(at.cast::<usize>()) } as u64;
            pages += count;
            entries += 1;
            if pages > self.used / self.page_size {
                return Err(self.damaged("the free list holds more pages than the file"));
            }
            Ok(())
        })?;
        Ok((pages, entries))
    }
}

/// A cursor on one tree of the snapshot, closed when dropped.
struct Cursor<'env> {
    env: &'env Env,
    raw: *mut ffi::MDB_cursor,
}

impl<'env> Cursor<'env> {
    fn open(env: &'env Env, tree: Tree) -> Result<Self, Error> {
        let mut raw = ptr::null_mut();
        // SAFETY: the transaction is live for as long as `env`; liblmdb checks the handle.
        env.check(unsafe { ffi::mdb_cursor_open(env.transaction_handle(), tree.0, &mut raw) })?;
        Ok(Self { env, raw })
    }

    /// The next key and value as liblmdb points to them.
    fn next(&mut self) -> Result<Option<(ffi::MDB_val, ffi::MDB_val)>, Error> {
        let nothing = || ffi::MDB_val { mv_size: 0, mv_data: ptr::null_mut() };
        let (mut key, mut value) = (nothing(), nothing());
        // SAFETY: the cursor is open; on success liblmdb stores where key and value lie.
        match unsafe { ffi::mdb_cursor_get(self.raw, &mut key, &mut value, ffi::MDB_NEXT) } {
            ffi::MDB_NOTFOUND => Ok(None),
            code => self.env.check(code).map(|()| Some((key, value))),
        }
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: a cursor of a read-only transaction must be closed before the transaction ends (lmdb.h), which
        // `env` does only after this borrow.
        unsafe { ffi::mdb_cursor_close(self.raw) }
    }
}
