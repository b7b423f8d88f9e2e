//! liblmdb's handles, and what can be asked of one.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use lmdb_master_sys as ffi;
use nix::sys::stat::fstat;

/// An environment and a transaction in it, closed when dropped.
pub(super) struct Handles {
    pub env: *mut ffi::MDB_env,
    /// Null until there is one.
    pub txn: *mut ffi::MDB_txn,
}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: the handle came from mdb_env_create; closing is the one thing allowed after a failed open, and what must
        // come after the end of a transaction (lmdb.h).
        unsafe {
            if !self.txn.is_null() {
                ffi::mdb_txn_abort(self.txn);
            }
            ffi::mdb_env_close(self.env);
        }
    }
}

pub(super) fn check(code: c_int) -> Result<(), c_int> {
    if code == ffi::MDB_SUCCESS { Ok(()) } else { Err(code) }
}

/// # Safety
/// `env` is open, and stays so for as long as the result is used.
pub(super) unsafe fn descriptor<'env>(env: *mut ffi::MDB_env) -> BorrowedFd<'env> {
    let mut fd: c_int = -1;
    // SAFETY: the caller vouches for `env`, so the call stores its descriptor, which is open for as long (lmdb.h).
    unsafe {
        ffi::mdb_env_get_fd(env, &mut fd);
        BorrowedFd::borrow_raw(fd)
    }
}

/// # Safety
/// `env` is open.
pub(super) unsafe fn file_size(env: *mut ffi::MDB_env) -> io::Result<u64> {
    // SAFETY: the caller vouches for `env`.
    let status = fstat(unsafe { descriptor(env) })?;
    Ok(status.st_size as u64)
}

/// # Safety
/// `env` is open.
pub(super) unsafe fn env_info(env: *mut ffi::MDB_env) -> ffi::MDB_envinfo {
    let mut info = MaybeUninit::zeroed();
    // SAFETY: the caller vouches for `env`; the struct holds integers and one pointer, for which zeroes are valid.
    unsafe {
        ffi::mdb_env_info(env, info.as_mut_ptr());
        info.assume_init()
    }
}

/// # Safety
/// `env` is open.
pub(super) unsafe fn env_stat(env: *mut ffi::MDB_env) -> ffi::MDB_stat {
    let mut stat = MaybeUninit::zeroed();
    // SAFETY: the caller vouches for `env`; the struct holds integers only, for which zeroes are valid.
    unsafe {
        ffi::mdb_env_stat(env, stat.as_mut_ptr());
        stat.assume_init()
    }
}
