use std::ffi::{CStr, c_int};
use std::io;
use std::path::PathBuf;

use lmdb_master_sys as ffi;

use super::Location;
use crate::size::Bytes;

/// Why a database cannot be opened or walked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {error}; give the directory that holds data.mdb, or the data file of an MDB_NOSUBDIR database")]
    NotFound { path: PathBuf, error: io::Error },

    #[error("{path}: no readable data.mdb in this directory ({error}); is it an LMDB database?")]
    NoDataFile { path: PathBuf, error: io::Error },

    #[error("{path}: cannot read it: {error}")]
    Read { path: PathBuf, error: io::Error },

    #[error("{path}: cannot write it: {error}")]
    Write { path: PathBuf, error: io::Error },

    #[error(
        "{path}: belongs to the database {database}, which writing there would destroy; choose another output file"
    )]
    OutputIsDatabase { path: PathBuf, database: PathBuf },

    #[error("{path}: an LMDB data file or lock file, which a map would destroy; choose another output file")]
    OutputIsLmdb { path: PathBuf },

    #[error("{path}: not a regular file, so not an LMDB data file")]
    NotAFile { path: PathBuf },

    #[error("{path}: the file is empty: the program that was to write the database never committed anything")]
    Empty { path: PathBuf },

    #[error(
        "{path}: truncated: {length} bytes, and an LMDB data file has at least {least} (two meta pages); fetch it again from \
         where it came from"
    )]
    Short { path: PathBuf, length: u64, least: u64 },

    #[error("{path}: not an LMDB data file: it does not begin with LMDB's meta page")]
    Foreign { path: PathBuf },

    #[error(
        "{path}: written by a machine of the other byte order; LMDB files do not travel between them. Dump it there \
         (mdb_dump) and load it here (mdb_load)"
    )]
    ForeignByteOrder { path: PathBuf },

    #[error(
        "{path}: written by a program of 32 bits; LMDB files do not travel to those of 64. Dump it there (mdb_dump) and load \
         it here (mdb_load)"
    )]
    WordSize { path: PathBuf },

    #[error(
        "{path}: LMDB format version {version}; this program reads version 1 (LMDB 0.9). Dump it with the tools that wrote \
         it (mdb_dump) and load it with those of 0.9 (mdb_load)"
    )]
    Version { path: PathBuf, version: u32 },

    #[error("{path}: liblmdb refuses it: {reason}")]
    Refused { path: PathBuf, reason: String },

    #[error(
        "{path}: no address space for a mapping as large as its map size: this shell limits what a process may map; \
         run `ulimit -v unlimited` in it"
    )]
    NoAddressSpace { path: PathBuf },

    #[error("{path}: no database named \"{name}\" in it; its names: {known}")]
    NoSuchName { path: PathBuf, name: String, known: String },

    #[error("{path}: cannot find liblmdb's mapping of it in /proc/self/maps")]
    NoMapping { path: PathBuf },

    #[error("{path}: damaged: {what}. Compare it with its original, or copy what can still be read with mdb_dump")]
    Damaged { path: PathBuf, what: String },

    #[error(
        "{path}: truncated: a record ends at byte {end} ({}), the file at {length}; fetch it again from where it came from",
        Bytes(*end)
    )]
    Truncated { path: PathBuf, end: u64, length: u64 },
}

impl Error {
    /// What a return code of liblmdb means for whoever opens or walks a database.
    pub(super) fn of_code(location: &Location, code: c_int) -> Self {
        match code {
            // What it says of meta pages (the first has been looked at before), and of the pages of a tree.
            ffi::MDB_INVALID
            | ffi::MDB_VERSION_MISMATCH
            | ffi::MDB_CORRUPTED
            | ffi::MDB_PAGE_NOTFOUND
            | ffi::MDB_CURSOR_FULL => {
                Self::Damaged { path: location.data.clone(), what: format!("liblmdb says {}", reason(code)) }
            }
            code => Self::Refused { path: location.path.clone(), reason: reason(code) },
        }
    }
}

/// What liblmdb says about a return code of its own or of the system.
fn reason(code: c_int) -> String {
    if code > 0 {
        return io::Error::from_raw_os_error(code).to_string();
    }
    // SAFETY: mdb_strerror returns a pointer to a static string for its own codes, which are all <= 0 (lmdb.h).
    unsafe { CStr::from_ptr(ffi::mdb_strerror(code)) }.to_string_lossy().into_owned()
}
