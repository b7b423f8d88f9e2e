//! A safe door to liblmdb: one environment, opened for reading without locks, and one snapshot of it.

use std::ffi::{CStr, CString, c_int, c_uint};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use lmdb_master_sys as ffi;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use serde::Serialize;

use super::handle::{Handles, check, descriptor, env_info, env_stat, file_size};
use super::mapping::Mapping;
use super::{Error, Location, header};
use crate::patience::Steps;

/// The free list's tree and the unnamed tree: always there, with these handles (mdb.c, `FREE_DBI`, `MAIN_DBI`).
pub(super) const FREE: Tree = Tree(0);
pub(super) const MAIN: Tree = Tree(1);

/// A handle of one of the trees in an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree(pub(super) c_uint);

/// What a tree's own record says of it; costs no page of the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Stat {
    pub depth: u32,
    pub branch_pages: u64,
    pub leaf_pages: u64,
    /// Pages of values too long for a leaf page.
    pub overflow_pages: u64,
    /// Records; each duplicate counts.
    pub entries: u64,
    pub dupsort: bool,
    /// Keys are native unsigned integers of 4 or 8 bytes.
    pub integer_keys: bool,
}

/// An environment, its mapping and its newest snapshot.
///
/// Opened with MDB_RDONLY and MDB_NOLOCK: neither the data file nor the lock file is written or locked, so a writer may
/// reuse pages of the snapshot meanwhile. [`Env::newest_transaction`] tells whether one committed.
pub struct Env {
    handles: Handles,
    location: Location,
    pub page_size: u64,
    /// Bytes of the file that the snapshot may use: the last page number + 1, in bytes.
    pub used: u64,
    /// The map size that the writer asked for, in bytes.
    pub map_size: u64,
    /// Length of the data file, in bytes. Less than `used` where the last pages are free, or when it was truncated.
    pub file_size: u64,
    /// Number of the snapshot's transaction.
    pub transaction: u64,
    mapping: Mapping,
}

impl Env {
    /// Opens the database and its newest snapshot.
    ///
    /// # Errors
    /// What the file is instead of an LMDB 0.9 database, or what liblmdb says.
    pub fn open(location: Location) -> Result<Self, Error> {
        header::check(&location.data)?;
        let refused = |code| Error::of_code(&location, code);
        let damaged = |what: &str| Error::Damaged { path: location.data.clone(), what: what.into() };
        let path = CString::new(location.path.as_os_str().as_bytes()).map_err(|_| refused(libc::EINVAL))?;

        let mut env = ptr::null_mut();
        // SAFETY: mdb_env_create writes the handle that it allocates, and nothing else (lmdb.h).
        check(unsafe { ffi::mdb_env_create(&mut env) }).map_err(refused)?;
        let mut handles = Handles { env, txn: ptr::null_mut() };
        let no_subdir = if location.subdir { 0 } else { ffi::MDB_NOSUBDIR };
        // NOTLS: the snapshot belongs to the handle, not to the thread. NORDAHEAD: each page of the tree that is touched
        // brings in that page alone; where more is wanted it is fetched on purpose.
        let flags = ffi::MDB_RDONLY | ffi::MDB_NOLOCK | ffi::MDB_NOTLS | ffi::MDB_NORDAHEAD | no_subdir;
        // SAFETY: the handle is fresh and unopened; the path is a C string that outlives the call.
        unsafe {
            check(ffi::mdb_env_set_maxdbs(env, NAMED_AT_ONCE)).map_err(refused)?;
            let before = Mapping::snapshot();
            check(ffi::mdb_env_open(env, path.as_ptr(), flags, 0)).map_err(|code| match code {
                libc::ENOMEM if is_limited() => Error::NoAddressSpace { path: location.path.clone() },
                // Whoever made the database had mapped as much.
                libc::ENOMEM => damaged("its header asks for a map larger than any address space"),
                code => refused(code),
            })?;
            check(ffi::mdb_txn_begin(env, ptr::null_mut(), ffi::MDB_RDONLY, &mut handles.txn)).map_err(refused)?;
            // Looked at after the snapshot is taken: a transaction that is committed in between only adds pages.
            let (stat, info) = (env_stat(env), env_info(env));
            let file_size = file_size(env).map_err(|error| Error::Read { path: location.data.clone(), error })?;
            let page_size = u64::from(stat.ms_psize);
            let used = (info.me_last_pgno as u64).checked_add(1).and_then(|pages| pages.checked_mul(page_size));
            let used = used.filter(|_| header::is_page_size(page_size));
            let used = used.ok_or_else(|| damaged("its header has an impossible page size or page count"))?;
            let mapping = Mapping::appeared_since(&before, info.me_mapsize as u64)
                .ok_or_else(|| Error::NoMapping { path: location.data.clone() })?;
            if used > mapping.len() {
                return Err(damaged("its header counts more pages than its map can hold"));
            }
            let transaction = ffi::mdb_txn_id(handles.txn) as u64;
            Ok(Self {
                handles,
                page_size,
                used,
                map_size: info.me_mapsize as u64,
                file_size,
                transaction,
                mapping,
                location,
            })
        }
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Where the data file lies in this process's memory.
    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// liblmdb's own descriptor of the data file: opening another would make some file systems drop their cache.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the environment is open for as long as `self` lives.
        unsafe { descriptor(self.handles.env) }
    }

    /// The last committed transaction, now: another than [`Env::transaction`] once a writer has committed.
    pub fn newest_transaction(&self) -> u64 {
        // SAFETY: the environment is open for as long as `self` lives.
        unsafe { env_info(self.handles.env) }.me_last_txnid as u64
    }

    /// A tree's statistics.
    ///
    /// # Errors
    /// When they cannot be true of this file.
    pub fn stat(&self, tree: Tree) -> Result<Stat, Error> {
        let mut stat = MaybeUninit::zeroed();
        let mut flags: c_uint = 0;
        // SAFETY: the transaction is live; both calls check the handle and only write what they are given.
        let (stat, flags) = unsafe {
            self.check(ffi::mdb_stat(self.handles.txn, tree.0, stat.as_mut_ptr()))?;
            // The free list is none of the databases that have flags to ask for.
            if tree != FREE {
                self.check(ffi::mdb_dbi_flags(self.handles.txn, tree.0, &mut flags))?;
            }
            (stat.assume_init(), flags)
        };
        let stat = Stat {
            depth: stat.ms_depth,
            branch_pages: stat.ms_branch_pages as u64,
            leaf_pages: stat.ms_leaf_pages as u64,
            overflow_pages: stat.ms_overflow_pages as u64,
            entries: stat.ms_entries as u64,
            dupsort: flags & ffi::MDB_DUPSORT != 0,
            integer_keys: flags & ffi::MDB_INTEGERKEY != 0,
        };
        let pages = [stat.branch_pages, stat.leaf_pages, stat.overflow_pages];
        let pages = pages.into_iter().try_fold(0_u64, u64::checked_add);
        if pages.is_none_or(|pages| pages > self.used / self.page_size) {
            return Err(self.damaged("a tree counts more pages than the file has"));
        }
        Ok(stat)
    }

    /// The tree of that name, or none where the name is that of a record, or of nothing.
    pub fn named(&self, name: &CStr) -> Result<Option<Named<'_>>, Error> {
        let mut tree: c_uint = 0;
        let _search = Steps::begin();
        // SAFETY: the transaction is live, the name is a C string.
        match unsafe { ffi::mdb_dbi_open(self.handles.txn, name.as_ptr(), 0, &mut tree) } {
            ffi::MDB_NOTFOUND | ffi::MDB_INCOMPATIBLE => Ok(None),
            code => self.check(code).map(|()| Some(Named { env: self, tree: Tree(tree) })),
        }
    }

    pub(super) fn transaction_handle(&self) -> *mut ffi::MDB_txn {
        self.handles.txn
    }

    pub(super) fn check(&self, code: c_int) -> Result<(), Error> {
        check(code).map_err(|code| Error::of_code(&self.location, code))
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::Damaged { path: self.location.data.clone(), what: what.into() }
    }
}

/// Named trees are opened one after the other; the few extra places are for the two trees that have no name.
const NAMED_AT_ONCE: c_uint = 8;

/// A named tree, open until dropped.
pub struct Named<'env> {
    env: &'env Env,
    pub tree: Tree,
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle was opened by `Env::named` in this process, and the snapshot that uses it modifies nothing,
        // which is what mdb_dbi_close asks for (lmdb.h).
        unsafe { ffi::mdb_dbi_close(self.env.handles.env, self.tree.0) }
    }
}

/// Whether this process may not map as much as it likes: `ulimit -v`.
fn is_limited() -> bool {
    getrlimit(Resource::RLIMIT_AS).is_ok_and(|(soft, _)| soft != RLIM_INFINITY)
}
