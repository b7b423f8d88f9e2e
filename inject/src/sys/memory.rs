//! Memory: what a mapping allows, which pages are mapped, and whether a byte may be accessed.

use super::{Result, SignalSet};
use core::ffi::c_int;
use core::mem::size_of;
use core::sync::atomic::AtomicU32;
use syscalls::{Errno, Sysno, syscall};

/// `MADV_GUARD_INSTALL` and `MADV_GUARD_REMOVE`, Linux 6.13 (file mappings: 6.15); newer than the headers in use.
const GUARD_INSTALL: usize = 102;
const GUARD_REMOVE: usize = 103;

/// `MADV_POPULATE_READ`, Linux 5.14.
const POPULATE_READ: usize = 22;

/// # Safety
/// The range must be a registered mapping's, held against unmapping (`registry::Held`).
pub unsafe fn mprotect(address: usize, length: usize, protection: c_int) -> Result<()> {
    // SAFETY: the caller's promise; protection changes alter no content (mprotect(2)).
    unsafe { syscall!(Sysno::mprotect, address, length, protection) }.map(drop)
}

/// # Safety
/// As [`mprotect`], and the mapping must be shared: on a private one, pages written to would lose their content.
pub unsafe fn guard_install(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; on a shared file mapping only page table entries go.
    unsafe { syscall!(Sysno::madvise, address, length, GUARD_INSTALL) }.map(drop)
}

/// # Safety
/// As [`mprotect`].
pub unsafe fn guard_remove(address: usize, length: usize) -> Result<()> {
    // SAFETY: removes guard markers, and nothing else (madvise(2)).
    unsafe { syscall!(Sysno::madvise, address, length, GUARD_REMOVE) }.map(drop)
}

/// # Safety
/// As [`mprotect`], and the pages must be clean ones of a file.
pub unsafe fn unmap_pages(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; the next access brings in the same bytes (madvise(2), MADV_DONTNEED).
    unsafe { syscall!(Sysno::madvise, address, length, libc::MADV_DONTNEED) }.map(drop)
}

/// Maps the pages of a file there as reading them would, without reading them; waits for those that are not in the page
/// cache, as reading would. Fails at a protected page, when all before it are mapped (madvise(2), MADV_POPULATE_READ).
///
/// # Safety
/// The range must be held against unmapping (`registry::Held`).
pub unsafe fn populate(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; page tables are filled in, and no content changes. A page that cannot be read makes
    // the call fail, without a signal.
    unsafe { syscall!(Sysno::madvise, address, length, POPULATE_READ) }.map(drop)
}

/// mremap(2).
///
/// # Safety
/// What the call does is what is wanted of the memory, wherever it lies.
pub unsafe fn remap(address: usize, length: usize, new_length: usize, flags: c_int, to: usize) -> Result<usize> {
    // SAFETY: the caller's promise.
    unsafe { syscall!(Sysno::mremap, address, length, new_length, flags, to) }
}

/// Address space in which nothing is yet; at `place` in place of what is there, if that `is_fixed`.
///
/// # Safety
/// Nobody needs what lies there.
pub unsafe fn reserve(place: usize, length: usize, is_fixed: bool) -> Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let flags = if is_fixed { flags | libc::MAP_FIXED } else { flags };
    // SAFETY: the caller's promise (mmap(2)).
    unsafe { syscall!(Sysno::mmap, place, length, libc::PROT_NONE, flags, usize::MAX, 0) }
}

/// # Safety
/// Nobody needs what lies there.
pub unsafe fn unmap(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise (munmap(2)).
    unsafe { syscall!(Sysno::munmap, address, length) }.map(drop)
}

/// Maps `descriptor` shared and writable, in place of what is there.
///
/// # Safety
/// The range must be whole pages of memory of ours, in which threads access nothing but atomics.
pub unsafe fn map_over(address: usize, length: usize, descriptor: c_int) -> Result<usize> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: the caller's promise; the old mapping goes and the new one comes in one step (mmap(2), MAP_FIXED).
    unsafe { syscall!(Sysno::mmap, address, length, protection, flags, descriptor, 0) }
}

/// From now on a forked child finds these pages zeroed (`MADV_WIPEONFORK`, Linux 4.14).
///
/// # Safety
/// The range must be whole pages of private memory of ours that is in no file.
pub unsafe fn wipe_on_fork(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; nothing changes in this process (madvise(2)).
    unsafe { syscall!(Sysno::madvise, address, length, libc::MADV_WIPEONFORK) }.map(drop)
}

/// Whether the program may read or write this byte now: asked of the kernel, which answers for its own access, without a
/// signal and without an effect.
pub fn can_access(address: usize, write: bool) -> bool {
    const NOWHERE: usize = usize::MAX;
    let set = address & !(size_of::<SignalSet>() - 1);
    // SAFETY: the kernel reads a set from there and then refuses what to do with it (rt_sigprocmask(2)).
    let read = unsafe { syscall!(Sysno::rt_sigprocmask, NOWHERE, set, 0, size_of::<SignalSet>()) };
    if read != Err(Errno::EINVAL) || !write {
        return read == Err(Errno::EINVAL);
    }
    let word = address & !(size_of::<u32>() - 1);
    let (own, nobody) = (AtomicU32::new(0), 0);
    // FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0): adds nothing, atomically (futex(2)).
    let add_nothing = 1usize << 28;
    // SAFETY: `own` is ours; the other word keeps its value. Nobody waits on either, and at most none is woken.
    let written =
        unsafe { syscall!(Sysno::futex, own.as_ptr(), libc::FUTEX_WAKE_OP, nobody, nobody, word, add_nothing) };
    written.is_ok()
}
