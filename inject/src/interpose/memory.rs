//! Calls that make, change or pin mappings.

use crate::arming::{consider, let_go};
use crate::doing::Doing;
use crate::mapped::Mapped;
use crate::{advice, interpose, registry, sys};
use core::ffi::{c_int, c_long, c_uint, c_void};
use precache_contract::segment::Refusal;

/// Whether advice of this number changes the mapping itself, so that the program manages it from then on: populating (Linux 5.14)
/// stops with EFAULT at a protected page, a forked child does not have the mapping, guard regions (Linux 6.13) are the program's
/// own.
fn is_changing(number: c_int) -> bool {
    matches!(
        number,
        MADV_POPULATE_READ | MADV_POPULATE_WRITE | libc::MADV_DONTFORK | MADV_GUARD_INSTALL | MADV_GUARD_REMOVE
    )
}

const MADV_POPULATE_READ: c_int = 22;
const MADV_POPULATE_WRITE: c_int = 23;
const MADV_GUARD_INSTALL: c_int = 102;
const MADV_GUARD_REMOVE: c_int = 103;

fn failed() -> *mut c_void {
    libc::MAP_FAILED
}

/// What a call does to a range.
pub enum Change {
    Unmap,
    /// mremap(2), to `to` if the flags say so.
    Move {
        to: usize,
        length: usize,
        flags: c_int,
    },
    /// Protecting or locking: from here on the program manages this mapping itself; locking fails at protected pages.
    Other,
}

/// Makes `call` without any armed mapping in the range that it changes. What lives on without us is told why.
pub fn change<T>(what: Change, address: *const c_void, length: usize, call: impl FnOnce() -> T) -> T {
    let why = match what {
        Change::Unmap if cfg!(feature = "sabotage-munmap-unnoticed") => return call(),
        Change::Other if cfg!(feature = "sabotage-mprotect-unnoticed") => return call(),
        Change::Unmap => None,
        _ => Some(Refusal::Changed),
    };
    let fixed = match what {
        Change::Move { to, length, flags } if flags & libc::MREMAP_FIXED != 0 => let_go(to, length, None),
        _ => None,
    };
    // A shared mapping is duplicated by a length of 0 (mremap(2)), with the protection that it has there.
    let length = if matches!(what, Change::Move { .. }) { length.max(1) } else { length };
    let departure = let_go(address as usize, length, why);
    let result = call();
    drop((departure, fixed));
    result
}

/// madvise(2) and its kin: 0, or it has failed.
#[inline(always)]
pub fn advise(address: *const c_void, length: usize, number: c_int, call: impl Fn() -> c_int + Copy) -> c_int {
    let (start, end) = (address as usize, (address as usize).saturating_add(length));
    let concerns_us =
        registry::could_overlap(start, end) && (is_changing(number) || registry::does_overlap_inline(start, end));
    if concerns_us { advise_armed(start, end, number, Doing::by(&move |()| call())) } else { call() }
}

/// madvise(2) by number, which is rarer: the look that others share will do.
pub fn advise_by_number(address: *const c_void, length: usize, number: c_int, call: Doing<(), c_int>) -> c_int {
    let (start, end) = (address as usize, (address as usize).saturating_add(length));
    let concerns_us = registry::could_overlap(start, end) && (is_changing(number) || registry::overlaps(start, end));
    if concerns_us { advise_armed(start, end, number, call) } else { call.with(()) }
}

#[cold]
#[inline(never)] // One copy is enough for all who call this.
fn advise_armed(start: usize, end: usize, number: c_int, call: Doing<(), c_int>) -> c_int {
    if is_changing(number) {
        return change(Change::Other, start as *const c_void, end - start, || call.with(()));
    }
    let result = call.with(());
    if let (0, Some(advice)) = (result, advice::of_memory(number)) {
        preserving_errno(|| advice::about_memory(advice, start, end));
    }
    result
}

/// process_madvise(2). What it changes is rarely this process, and never looked up.
pub fn advise_process(number: c_int, call: impl FnOnce() -> isize) -> isize {
    if is_changing(number) { change(Change::Other, core::ptr::null(), usize::MAX, call) } else { call() }
}

/// shmat(2). In place of how much the segment comes to lie is not asked: that is rare.
pub fn attach<T>(address: *const c_void, flags: c_int, call: impl FnOnce() -> T) -> T {
    if flags & libc::SHM_REMAP != 0 { change(Change::Other, address, usize::MAX, call) } else { call() }
}

/// mmap(2): the program's call, then ours. `call` leaves out the flags that it is given.
#[inline(never)] // As above.
pub fn map(
    call: Doing<c_int, *mut c_void>,
    address: *const c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: c_long,
) -> *mut c_void {
    let (place, offset) = (address as usize, offset as u64);
    let mut mapped = Mapped { address: place, length, protection, flags, file, offset, was_in_use: false };
    let is_ours = preserving_errno(|| {
        mapped.was_in_use = mapped.takes_what_may_be_in_use();
        mapped.is_populated_by_us()
    });
    let call = || call.with(if is_ours { libc::MAP_POPULATE } else { 0 });
    let result = if flags & libc::MAP_FIXED != 0 { change(Change::Unmap, address, length, call) } else { call() };
    if result != libc::MAP_FAILED {
        mapped.address = result as usize;
        preserving_errno(|| {
            let is_armed = consider(&mapped, is_ours);
            if is_ours && !is_armed {
                // SAFETY: the mapping that the program has just asked for. As natively, mmap does not tell what cannot be read.
                let _ = unsafe { sys::populate(mapped.address, length) };
            }
        });
    }
    result
}

/// errno as the program's call left it (a successful call may leave it as it was before).
pub fn preserving_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the calling thread's own errno (errno(3)).
    unsafe {
        let errno = *libc::__errno_location();
        let result = work();
        *libc::__errno_location() = if cfg!(feature = "sabotage-errno-of-calls") { libc::EIO } else { errno };
        result
    }
}

interpose! {
    /// mmap(2).
    fn mmap(address: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, offset: c_long)
        -> *mut c_void; missing failed(); |next| {
        // SAFETY: the program's own call.
        let call = |without: c_int| unsafe { next(address, length, protection, flags & !without, file, offset) };
        map(Doing::by(&call), address, length, protection, flags, file, offset)
    }
}

interpose! {
    /// mmap(2) under the name that programs built with large file support use.
    fn mmap64(address: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, offset: c_long)
        -> *mut c_void; missing failed(); |next| {
        // SAFETY: the program's own call.
        let call = |without: c_int| unsafe { next(address, length, protection, flags & !without, file, offset) };
        map(Doing::by(&call), address, length, protection, flags, file, offset)
    }
}

interpose! {
    /// munmap(2).
    fn munmap(address: *mut c_void, length: usize) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        change(Change::Unmap, address, length, || unsafe { next(address, length) })
    }
}

interpose! {
    /// mremap(2). The fifth argument is there only with `MREMAP_FIXED`; passing on an unused register is harmless.
    fn mremap(address: *mut c_void, length: usize, new_length: usize, flags: c_int, place: *mut c_void)
        -> *mut c_void; missing failed(); |next| {
        let what = Change::Move { to: place as usize, length: new_length, flags };
        // SAFETY: the program's own call.
        change(what, address, length, || unsafe { next(address, length, new_length, flags, place) })
    }
}

interpose! {
    /// mprotect(2).
    fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        change(Change::Other, address, length, || unsafe { next(address, length, protection) })
    }
}

interpose! {
    /// pkey_mprotect(2).
    fn pkey_mprotect(address: *mut c_void, length: usize, protection: c_int, key: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        change(Change::Other, address, length, || unsafe { next(address, length, protection, key) })
    }
}

interpose! {
    /// remap_file_pages(2).
    fn remap_file_pages(address: *mut c_void, length: usize, protection: c_int, page: usize, flags: c_int)
        -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        change(Change::Other, address, length, || unsafe { next(address, length, protection, page, flags) })
    }
}

interpose! {
    /// shmat(2).
    fn shmat(segment: c_int, address: *const c_void, flags: c_int) -> *mut c_void; missing failed(); |next| {
        // SAFETY: the program's own call.
        attach(address, flags, || unsafe { next(segment, address, flags) })
    }
}

interpose! {
    /// madvise(2).
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        advise(address, length, advice, move || unsafe { next(address, length, advice) })
    }
}

interpose! {
    /// posix_madvise(3): an error number, or 0. Its numbers are those of madvise(2), as far as they are of interest here.
    fn posix_madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int; missing libc::ENOSYS; |next| {
        // SAFETY: the program's own call.
        advise(address, length, advice, move || unsafe { next(address, length, advice) })
    }
}

interpose! {
    /// process_madvise(2).
    fn process_madvise(process: c_int, parts: *const libc::iovec, count: usize, advice: c_int, flags: c_uint) -> isize;
    missing -1; |next| {
        // SAFETY: the program's own call.
        advise_process(advice, || unsafe { next(process, parts, count, advice, flags) })
    }
}

interpose! {
    /// mlock(2).
    fn mlock(address: *const c_void, length: usize) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        change(Change::Other, address, length, || unsafe { next(address, length) })
    }
}

interpose! {
    /// mlock2(2).
    fn mlock2(address: *const c_void, length: usize, flags: c_uint) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        change(Change::Other, address, length, || unsafe { next(address, length, flags) })
    }
}

interpose! {
    /// mlockall(2).
    fn mlockall(flags: c_int) -> c_int; missing -1; |next| {
        // SAFETY: the program's own call.
        change(Change::Other, core::ptr::null(), usize::MAX, || unsafe { next(flags) })
    }
}
