//! Calls that make, change or pin mappings.

use super::buffers::{is_bad_address, with_both};
use crate::arming::{consider, let_go};
use crate::buffers::Buffers;
use crate::doing::Doing;
use crate::mapped::Mapped;
use crate::next::Next;
use crate::parts::{self, Move};
use crate::{advice, go_on, interpose, registry, sys};
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem;
use core::ptr::NonNull;
use precache_contract::segment::Refusal;

/// Whether advice of this number changes the mapping itself, so that the program manages it from then on: populating (Linux 5.14)
/// stops with EFAULT at a protected page, and collapsing (Linux 6.1) with EINVAL, a forked child does not have the mapping, guard
/// regions (Linux 6.13) are the program's own.
fn is_changing(number: c_int) -> bool {
    matches!(number, MADV_POPULATE_READ..=MADV_COLLAPSE | libc::MADV_DONTFORK | MADV_GUARD_INSTALL | MADV_GUARD_REMOVE)
}

const MADV_POPULATE_READ: c_int = 22;
/// Between them lie MADV_POPULATE_WRITE, and MADV_DONTNEED_LOCKED, which is for locked memory.
const MADV_COLLAPSE: c_int = 25;
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
#[inline(never)] // One copy is enough for all who change.
pub fn change(what: Change, address: *const c_void, length: usize, call: Doing<(), isize>) -> isize {
    let why = match what {
        Change::Unmap if cfg!(feature = "sabotage-munmap-unnoticed") => return call.with(()),
        Change::Other if cfg!(feature = "sabotage-mprotect-unnoticed") => return call.with(()),
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
    let result = call.with(());
    drop((departure, fixed));
    result
}

/// The same for the whole process.
pub fn change_all(call: Doing<(), isize>) -> isize {
    change(Change::Other, core::ptr::null(), usize::MAX, call)
}

/// mremap(2): also of what is several mappings to the kernel, and one to the program.
#[inline(never)] // One copy is enough for both.
pub fn remap(address: usize, [length, new_length, flags, to]: [usize; 4], call: Doing<(), isize>) -> isize {
    let flags = flags as c_int;
    let once_or_in_parts = |()| {
        // SAFETY: the calling thread's own errno (errno(3)).
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        let before = unsafe { *errno };
        // To a place of its own the kernel unmaps what lies there before it fails.
        let is_ours_first = parts::may_exist() && flags & libc::MREMAP_FIXED != 0;
        let result = if is_ours_first { -1 } else { call.with(()) };
        let is_ours = is_ours_first || is_bad_address(result) && parts::may_exist();
        if !is_ours {
            return result;
        }
        let (result, number) = match Move::new(address, length, new_length, flags, to).and_then(|wanted| wanted.make())
        {
            Some(Ok(place)) => (place as isize, before),
            Some(Err(why)) => (-1, why.into_raw()),
            None if is_ours_first => return call.with(()),
            None => return result,
        };
        // SAFETY: as above.
        unsafe { *errno = number };
        result
    };
    change(
        Change::Move { to, length: new_length, flags },
        address as *const c_void,
        length,
        Doing::by(&once_or_in_parts),
    )
}

/// madvise(2) and its kin: 0, or it has failed.
pub fn advise(address: *const c_void, length: usize, number: c_int, call: Doing<(), c_int>) -> c_int {
    let (start, end) = (address as usize, (address as usize).saturating_add(length));
    let concerns_us = registry::could_overlap(start, end) && (is_changing(number) || registry::overlaps(start, end));
    if concerns_us { advise_armed(start, end, number, call) } else { call.with(()) }
}

#[cold]
#[inline(never)] // One copy is enough for all who call this.
fn advise_armed(start: usize, end: usize, number: c_int, call: Doing<(), c_int>) -> c_int {
    if is_changing(number) {
        let call = |()| call.with(()) as isize;
        return change(Change::Other, start as *const c_void, end - start, Doing::by(&call)) as c_int;
    }
    let result = call.with(());
    if let (0, Some(advice)) = (result, advice::of_memory(number)) {
        preserving_errno(|| advice::about_memory(advice, start, end));
    }
    result
}

/// process_madvise(2). What it changes is rarely this process, and never looked up.
pub fn advise_process(list: usize, number: c_int, call: Doing<(), isize>) -> isize {
    let call = |()| with_both(&[list, 0, 0, 0, 0, 0], Buffers::NONE, call);
    let call = Doing::by(&call);
    if is_changing(number) { change_all(call) } else { call.with(()) }
}

/// shmat(2). In place of how much the segment comes to lie is not asked: that is rare.
pub fn attach(address: *const c_void, flags: c_int, call: Doing<(), isize>) -> isize {
    if flags & libc::SHM_REMAP != 0 { change(Change::Other, address, usize::MAX, call) } else { call.with(()) }
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
    let call = |()| call.with(if is_ours { libc::MAP_POPULATE } else { 0 }) as isize;
    let call = Doing::by(&call);
    let is_fixed = flags & libc::MAP_FIXED != 0;
    let result = if is_fixed { change(Change::Unmap, address, length, call) } else { call.with(()) } as *mut c_void;
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

/// A function of at most five words: an unused register does no harm.
type Five = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> isize;

/// The same for a call that changes a range, of which nothing is ours, nearly always.
#[inline(always)]
fn make_here(words: [usize; 5], next: &Next, then: fn([usize; 5], Doing<(), isize>) -> isize) -> isize {
    let [a, b, c, d, e] = words;
    if !registry::overlaps_or_leaving(a, a.saturating_add(b))
        && let Some(next) = next.known()
    {
        // SAFETY: as said.
        let next = unsafe { mem::transmute::<NonNull<c_void>, Five>(next) };
        // SAFETY: the program's own call.
        return unsafe { next(a, b, c, d, e) };
    }
    make(words, next, then)
}

/// Gives `then` a call with these words, which the next function of the name takes, or the first ones of them.
#[inline(never)] // One copy is enough for all.
fn make(words: [usize; 5], next: &Next, then: fn([usize; 5], Doing<(), isize>) -> isize) -> isize {
    let Some(next) = next.address() else { return -1 };
    // SAFETY: as said.
    let next = unsafe { mem::transmute::<NonNull<c_void>, Five>(next) };
    let [a, b, c, d, e] = words;
    // SAFETY: the program's own call.
    then(words, Doing::by(&|()| unsafe { next(a, b, c, d, e) }))
}

/// What is done with such a call.
macro_rules! makes {
    ($($make:ident fn $name:ident(|$words:pat_param, $call:ident| $made:expr);)*) => {$(
        extern "C" fn $name(a: usize, b: usize, c: usize, d: usize, e: usize, next: &Next) -> isize {
            $make([a, b, c, d, e], next, |$words, $call| $made)
        }
    )*};
}

makes! {
    make_here fn unmap_range(|[address, length, ..], call| change(Change::Unmap, address as *const c_void, length, call));
    make_here fn change_range(|[address, length, ..], call| change(Change::Other, address as *const c_void, length, call));
    make fn change_whole(|_, call| change_all(call));
    make fn move_range(|[address, length, new_length, flags, to], call| remap(address, [length, new_length, flags, to], call));
    make fn attach_range(|[_, address, flags, ..], call| attach(address as *const c_void, flags as c_int, call));
    make fn advise_another(|[_, list, _, advice, _], call| advise_process(list, advice as c_int, call));
}

/// The same for advice: what is not of what is armed, nor changes anything, is left by a jump.
extern "C" fn advise_range(a: usize, b: usize, c: usize, d: usize, e: usize, next: &Next) -> isize {
    let end = a.saturating_add(b);
    let concerns_us =
        registry::could_overlap(a, end) && (is_changing(c as c_int) || registry::does_overlap_inline(a, end));
    if !concerns_us && let Some(next) = next.known() {
        // SAFETY: as said.
        let next = unsafe { mem::transmute::<NonNull<c_void>, Five>(next) };
        // SAFETY: the program's own call.
        return unsafe { next(a, b, c, d, e) };
    }
    make([a, b, c, d, e], next, |[address, length, number, ..], call| {
        let call = |()| call.with(()) as c_int;
        advise(address as *const c_void, length, number as c_int, Doing::by(&call)) as isize
    })
}

/// Calls made so: two instructions each (`by_words`).
macro_rules! changing {
    ($($(#[$doc:meta])* fn $name:ident($($type:ty),*) -> $result:ty, by $makes:ident;)*) => {$(
        mod $name {
            $crate::next_of!(pub(super) $name);
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($(_: $type),*) -> $result {
            go_on!($name::NEXT, $makes)
        }
    )*};
}

changing! {
    /// munmap(2).
    fn munmap(*mut c_void, usize) -> c_int, by unmap_range;
    /// mremap(2). The fifth argument is there only with `MREMAP_FIXED`.
    fn mremap(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void, by move_range;
    /// mprotect(2).
    fn mprotect(*mut c_void, usize, c_int) -> c_int, by change_range;
    /// pkey_mprotect(2).
    fn pkey_mprotect(*mut c_void, usize, c_int, c_int) -> c_int, by change_range;
    /// remap_file_pages(2).
    fn remap_file_pages(*mut c_void, usize, c_int, usize, c_int) -> c_int, by change_range;
    /// mlock(2).
    fn mlock(*const c_void, usize) -> c_int, by change_range;
    /// mlock2(2).
    fn mlock2(*const c_void, usize, c_uint) -> c_int, by change_range;
    /// mlockall(2).
    fn mlockall(c_int) -> c_int, by change_whole;
    /// madvise(2).
    fn madvise(*mut c_void, usize, c_int) -> c_int, by advise_range;
    /// posix_madvise(3): an error number, or 0; every libc has it. Its numbers are those of madvise(2), as far as they are of interest here.
    fn posix_madvise(*mut c_void, usize, c_int) -> c_int, by advise_range;
    /// shmat(2).
    fn shmat(c_int, *const c_void, c_int) -> *mut c_void, by attach_range;
    /// process_madvise(2).
    fn process_madvise(libc::pid_t, *const libc::iovec, usize, c_int, c_uint) -> isize, by advise_another;
}
