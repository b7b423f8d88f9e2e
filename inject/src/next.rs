//! The functions that our exported ones stand in front of: libc's, or those of another preloaded library after us.
//!
//! Looked up when the library is loaded; an interposer that is called earlier, by another library's constructor, looks
//! up on the spot.

#[cfg(feature = "preload")]
use crate::{interpose::memory::preserving_errno, symbols::Symbols};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering::*};

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

pub type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// libc's own dlsym(3), which sees who calls it. Found by its version: the name alone would be bound to ours, and that of
/// another preloaded library would be the one that is seen. In `.data`, whose page the loader has written to: one of `.bss` would
/// be mapped to be read, and again to be written.
#[cfg_attr(feature = "preload", unsafe(link_section = ".data"))]
static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Since the functions of libdl are libc's own, as this library takes them to be.
const VERSION: &CStr = c"GLIBC_2.34";

/// The hashes of functions that were other ones once, and the version of those that programs are linked to. For `RTLD_NEXT`
/// glibc 2.34 and 2.35 give the first (bug 14932): a `realpath` that has no room of its own, a `posix_spawn` that has scripts
/// run by sh, timers whose names are numbers.
#[cfg(target_arch = "x86_64")]
const CHANGED: [(u32, [u8; 12]); 8] = [
    (hash(c"realpath"), *b"GLIBC_2.3\0\0\0"),
    (hash(c"posix_spawn"), *b"GLIBC_2.15\0\0"),
    (hash(c"posix_spawnp"), *b"GLIBC_2.15\0\0"),
    (hash(c"lio_listio"), *b"GLIBC_2.4\0\0\0"),
    (hash(c"timer_create"), *b"GLIBC_2.34\0\0"),
    (hash(c"timer_settime"), *b"GLIBC_2.34\0\0"),
    (hash(c"timer_gettime"), *b"GLIBC_2.34\0\0"),
    (hash(c"lio_listio64"), *b"GLIBC_2.4\0\0\0"),
];

/// The version that they, as all that glibc had when it came to x86-64, began with.
#[cfg(target_arch = "x86_64")]
const FIRST_VERSION: [u8; 12] = *b"GLIBC_2.2.5\0";

/// Looked up when it is called first: libc has it for old programs alone, and dlsym(3), which since 2.36 finds nothing of that
/// kind, allocates to say so.
#[cfg(feature = "preload")]
const WHEN_CALLED: u32 = hash(c"sigvec");

/// `RTLD_NEXT`: the next object after ours in search order (dlsym(3)).
const NEXT: *mut c_void = -1isize as *mut c_void;

/// The highest bit of a word, which no address of a program has: the word holds the hash of a name.
const SOUGHT: usize = 1 << (usize::BITS - 1);

/// What the linker's table finds a name by (`_dl_new_hash`, elf/dl-new-hash.h in glibc).
pub const fn hash(name: &CStr) -> u32 {
    let (name, mut hash, mut at) = (name.to_bytes(), 5381u32, 0);
    while at < name.len() {
        hash = hash.wrapping_mul(33).wrapping_add(name[at] as u32);
        at += 1;
    }
    hash
}

/// Where names are found by their hashes: our own table of symbols.
#[cfg(feature = "preload")]
type Names = Symbols;

/// Nothing is exported: each has its own name.
#[cfg(not(feature = "preload"))]
struct Names;

#[cfg(not(feature = "preload"))]
impl Names {
    const fn of_this_library() -> Self {
        Self
    }
}

/// One function of the next library.
pub struct Next {
    /// Or the hash of its name, until it is found; never 0. The name itself is that of our own function: once in the library is
    /// enough.
    address: AtomicPtr<c_void>,
    #[cfg(not(feature = "preload"))]
    name: &'static CStr,
}

impl Next {
    /// `name`: of a function that we export.
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            address: AtomicPtr::new(ptr::without_provenance_mut(SOUGHT | hash(name) as usize)),
            #[cfg(not(feature = "preload"))]
            name,
        }
    }

    /// For a function that is known already.
    pub const fn of_function(function: *const c_void) -> Self {
        Self {
            address: AtomicPtr::new(function.cast_mut()),
            #[cfg(not(feature = "preload"))]
            name: c"",
        }
    }

    /// Its address; `None` when no library has it: errno then is ENOSYS, as of a call that the kernel lacks.
    #[inline(always)]
    pub fn address(&self) -> Option<NonNull<c_void>> {
        self.known().or_else(|| self.look_up())
    }

    /// Its address, if it has been found.
    #[inline(always)]
    pub fn known(&self) -> Option<NonNull<c_void>> {
        let address = self.address.load(Acquire);
        // One test for 0 and `SOUGHT`, which is the sign's bit.
        if address.addr() as isize > 0 { NonNull::new(address) } else { None }
    }

    #[cold]
    #[inline(never)] // One copy is enough for all who ask.
    fn look_up(&self) -> Option<NonNull<c_void>> {
        self.look_up_by(&Names::of_this_library())
    }

    fn look_up_by(&self, names: &Names) -> Option<NonNull<c_void>> {
        let address = self.address.load(Acquire);
        let sought = address.addr();
        if sought & SOUGHT == 0 {
            // Another thread has found it meanwhile.
            return NonNull::new(address);
        }
        let hash = sought as u32;
        // SAFETY: a C string.
        let found = self.name(names, hash).and_then(|name| unsafe { of(name, hash) });
        match found {
            Some(found) => self.address.store(found.as_ptr(), Release),
            // SAFETY: the calling thread's own errno (errno(3)).
            None => unsafe { *libc::__errno_location() = libc::ENOSYS },
        }
        found
    }

    #[cfg(feature = "preload")]
    fn name(&self, names: &Names, hash: u32) -> Option<*const c_char> {
        names.name(hash)
    }

    #[cfg(not(feature = "preload"))]
    fn name(&self, _: &Names, _: u32) -> Option<*const c_char> {
        Some(self.name.as_ptr())
    }
}

/// The next function of a name with this hash, in the version that programs are linked to; `None` when no library has it.
///
/// # Safety
/// `name` is a C string.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, clippy::let_and_return, reason = "versions differ on x86-64 alone")
)]
pub unsafe fn of(name: *const c_char, hash: u32) -> Option<NonNull<c_void>> {
    // SAFETY: a C string and a handle that dlsym(3) defines.
    let found = NonNull::new(unsafe { libc_dlsym()?(NEXT, name) });
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise.
    let found = unsafe { newest(name, hash, found) };
    found
}

/// What programs are linked to, where what is `found` may be a function's first version.
///
/// # Safety
/// As [`of`].
#[cfg(target_arch = "x86_64")]
unsafe fn newest(name: *const c_char, hash: u32, found: Option<NonNull<c_void>>) -> Option<NonNull<c_void>> {
    // SAFETY: C strings and a handle that dlsym(3) defines.
    let of = |version: &[u8; 12]| NonNull::new(unsafe { dlvsym(NEXT, name, version.as_ptr().cast()) });
    match CHANGED.iter().find(|(changed, _)| *changed == hash) {
        Some((_, version)) if found == of(&FIRST_VERSION) => of(version),
        Some(_) => found,
        // What is there for old programs alone is found by its version.
        None => found.or_else(|| of(&FIRST_VERSION)),
    }
}

/// libc's dlsym(3); `None` in a C library that has it under no such version.
fn libc_dlsym() -> Option<Dlsym> {
    let mut address = DLSYM.load(Acquire);
    if address.is_null() {
        // SAFETY: C strings and a handle that dlsym(3) defines.
        address = unsafe { dlvsym(NEXT, c"dlsym".as_ptr(), VERSION.as_ptr()) };
        DLSYM.store(address, Release);
    }
    // SAFETY: dlsym(3) has this type in every libc, and null is `None` (the null pointer optimization of function pointers).
    unsafe { mem::transmute::<*mut c_void, Option<Dlsym>>(address) }
}

#[cfg(feature = "preload")]
unsafe extern "C" {
    #[link_name = "__start_precache_next"]
    static FIRST: [u8; 0];
    #[link_name = "__stop_precache_next"]
    static END: [u8; 0];
}

/// Looks up all of them: dlsym takes the loader's lock, which a signal handler that calls one of our functions first may
/// have interrupted.
#[cfg(feature = "preload")]
pub fn look_up_all() {
    let (first, end) = ((&raw const FIRST).cast::<Next>(), (&raw const END).cast::<Next>());
    // SAFETY: the linker's names for the two ends of the section, in which `interpose!` puts these one behind the other,
    // and nobody else puts anything.
    let all = unsafe { core::slice::from_raw_parts(first, end.offset_from_unsigned(first)) };
    // The program begins with the errno that it has without us.
    preserving_errno(|| {
        let names = Names::of_this_library();
        for next in all {
            if next.address.load(Relaxed).addr() as u32 != WHEN_CALLED {
                next.look_up_by(&names);
            }
        }
    });
}

static SIGACTION: Next = Next::new(c"sigaction");

pub type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

/// The next `sigaction`. Looked up before the handler is installed, so that signal context finds it ready.
pub fn sigaction() -> Option<Sigaction> {
    // SAFETY: sigaction(3) has this type in every libc.
    SIGACTION.address().map(|address| unsafe { mem::transmute::<NonNull<c_void>, Sigaction>(address) })
}

/// Defines `NEXT`, the next function of this name.
#[macro_export]
macro_rules! next_of {
    ($visibility:vis $name:ident) => {
        #[cfg_attr(feature = "preload", unsafe(link_section = "precache_next"))]
        #[used]
        $visibility static NEXT: $crate::next::Next = {
            const NAME: &str = concat!(stringify!($name), "\0");
            // SAFETY: the bytes end in the one zero byte that is added here.
            $crate::next::Next::new(unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(NAME.as_bytes()) })
        };
    };
}

/// Defines an exported function that stands in front of the next one of its name. In the body, `next` is a function
/// pointer to that.
#[macro_export]
macro_rules! interpose {
    ($(#[$doc:meta])* fn $name:ident ( $($argument:ident : $type:ty),* ) -> $result:ty ; missing $missing:expr ; |$next:ident| $body:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            $crate::next_of!($name);
            let Some(address) = NEXT.address() else { return $missing };
            // SAFETY: the next function of this name has this type.
            let $next = unsafe {
                core::mem::transmute::<core::ptr::NonNull<core::ffi::c_void>, unsafe extern "C" fn($($type),*) -> $result>(address)
            };
            $body
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "looks into libc")]
    fn what_no_library_has_is_told_by_errno() {
        // SAFETY: the calling thread's own errno.
        let errno = || unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *errno() = 0 };
        assert_eq!(Next::new(c"no_library_has_this").address(), None);
        // SAFETY: as above.
        assert_eq!(unsafe { *errno() }, libc::ENOSYS);
        assert!(Next::new(c"pthread_attr_setsigmask_np").address().is_some());
    }

    /// Against the versions that this test itself is linked to.
    #[test]
    #[cfg(target_arch = "x86_64")]
    #[cfg_attr(miri, ignore = "looks into libc")]
    fn of_functions_that_have_changed_the_newest_is_found() {
        let changed = [
            (c"realpath", libc::realpath as *const () as *mut c_void),
            (c"posix_spawn", libc::posix_spawn as *const () as *mut c_void),
            (c"posix_spawnp", libc::posix_spawnp as *const () as *mut c_void),
            (c"lio_listio", libc::lio_listio as *const () as *mut c_void),
            (c"timer_create", libc::timer_create as *const () as *mut c_void),
            (c"timer_settime", libc::timer_settime as *const () as *mut c_void),
            (c"timer_gettime", libc::timer_gettime as *const () as *mut c_void),
        ];
        for (name, linked) in changed {
            let linked = NonNull::new(linked);
            // SAFETY: C strings and a handle that dlsym(3) defines.
            let first = NonNull::new(unsafe { dlvsym(NEXT, name.as_ptr(), FIRST_VERSION.as_ptr().cast()) });
            assert!(first.is_some() && first != linked, "{name:?} has changed");
            // SAFETY: a C string.
            let newest = |found| unsafe { newest(name.as_ptr(), hash(name), found) };
            assert_eq!(newest(first), linked);
            assert_eq!(newest(linked), linked);
        }
        let others = Some(NonNull::dangling());
        // SAFETY: C strings.
        let of_others = |name: &CStr| unsafe { newest(name.as_ptr(), hash(name), others) };
        assert_eq!(of_others(c"realpath"), others, "another library's");
        assert_eq!(of_others(c"write"), others);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    #[cfg_attr(miri, ignore = "looks into libc")]
    fn what_is_there_for_old_programs_alone_is_found() {
        assert!(Next::new(c"sigvec").address().is_some());
    }
}
