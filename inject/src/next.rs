//! The functions that our exported ones stand in front of: libc's, or those of another preloaded library after us.
//!
//! Looked up when the library is loaded; an interposer that is called earlier, by another library's constructor, looks
//! up on the spot.

#[cfg(feature = "preload")]
use crate::interpose::memory::preserving_errno;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering::*};

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

pub type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The dlsym(3) that ours stands in front of. Found by its version: the name alone would be bound to ours.
static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Since the functions of libdl are libc's own, as this library takes them to be.
const VERSION: &CStr = c"GLIBC_2.34";

/// `RTLD_NEXT`: the next object after ours in search order (dlsym(3)).
const NEXT: *mut c_void = -1isize as *mut c_void;

/// Room for a name, with the zero byte at its end.
const NAME: usize = 24;

/// What the longest names begin with, and the byte that stands for it.
const PREFIX: &[u8] = b"pthread_attr_";
const MARK: u8 = 1;

/// One function of the next library. Its name lies in it: a pointer would be relocated whenever the library is loaded.
pub struct Next {
    address: AtomicPtr<c_void>,
    name: [u8; NAME],
}

/// Whether the name begins with [`PREFIX`].
const fn is_long(name: &[u8]) -> bool {
    let mut at = 0;
    while at < PREFIX.len() && at < name.len() && name[at] == PREFIX[at] {
        at += 1;
    }
    at == PREFIX.len()
}

impl Next {
    pub const fn new(name: &'static CStr) -> Self {
        let name = name.to_bytes();
        let mut own = [0; NAME];
        let (mut from, mut to) = (0, 0);
        if is_long(name) {
            own[0] = MARK;
            (from, to) = (PREFIX.len(), 1);
        }
        while from < name.len() {
            own[to] = name[from];
            (from, to) = (from + 1, to + 1);
        }
        assert!(own[NAME - 1] == 0, "there is room for the zero byte");
        Self { address: AtomicPtr::new(core::ptr::null_mut()), name: own }
    }

    /// Its address; `None` when no library has it: errno then is ENOSYS, as of a call that the kernel lacks.
    #[inline(always)]
    pub fn address(&self) -> Option<NonNull<c_void>> {
        NonNull::new(self.address.load(Acquire)).or_else(|| self.look_up())
    }

    #[cold]
    #[inline(never)] // One copy is enough for all who ask.
    fn look_up(&self) -> Option<NonNull<c_void>> {
        let mut whole = [0u8; PREFIX.len() + NAME];
        let (prefix, rest) = if self.name[0] == MARK { (PREFIX, &self.name[1..]) } else { (&[][..], &self.name[..]) };
        whole.iter_mut().zip(prefix.iter().chain(rest)).for_each(|(to, from)| *to = *from);
        // SAFETY: a C string and a handle that dlsym(3) defines.
        let address = dlsym().map_or(ptr::null_mut(), |dlsym| unsafe { dlsym(NEXT, whole.as_ptr().cast()) });
        self.address.store(address, Release);
        if address.is_null() {
            // SAFETY: the calling thread's own errno (errno(3)).
            unsafe { *libc::__errno_location() = libc::ENOSYS };
        }
        NonNull::new(address)
    }
}

/// The next dlsym(3), which sees who calls it; `None` in a C library that has it under no such version.
pub extern "C" fn dlsym() -> Option<Dlsym> {
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
    static FIRST: u8;
    #[link_name = "__stop_precache_next"]
    static END: u8;
    #[link_name = "__ehdr_start"]
    static BEGIN: u8;
}

#[cfg(feature = "preload")]
fn all() -> &'static [Next] {
    let (first, end) = ((&raw const FIRST).cast::<Next>(), (&raw const END).cast::<Next>());
    // SAFETY: the linker's names for the two ends of the section, in which `interpose!` puts these one behind the other,
    // and nobody else puts anything.
    unsafe { core::slice::from_raw_parts(first, end.offset_from_unsigned(first)) }
}

/// Looks up all of them: dlsym takes the loader's lock, which a signal handler that calls one of our functions first may
/// have interrupted.
#[cfg(feature = "preload")]
pub fn look_up_all() {
    // The program begins with the errno that it has without us.
    preserving_errno(|| {
        for next in all() {
            next.look_up();
        }
    });
}

/// Whether one of our functions stands in front of what is there.
#[cfg(feature = "preload")]
pub fn is_behind_ours(address: *mut c_void) -> bool {
    all().iter().any(|next| next.address.load(Relaxed) == address)
}

/// Whether a function is ours: code lies between the header of an ELF file and its data, as linkers place them.
#[cfg(feature = "preload")]
pub fn is_ours(function: *mut c_void) -> bool {
    ((&raw const BEGIN).addr()..(&raw const FIRST).addr()).contains(&function.addr())
}

static SIGACTION: Next = Next::new(c"sigaction");

pub type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

/// The next `sigaction`. Looked up before the handler is installed, so that signal context finds it ready.
pub fn sigaction() -> Option<Sigaction> {
    // SAFETY: sigaction(3) has this type in every libc.
    SIGACTION.address().map(|address| unsafe { core::mem::transmute::<NonNull<c_void>, Sigaction>(address) })
}

/// Defines `NEXT`, the next function of this name.
#[macro_export]
macro_rules! next_of {
    ($name:ident) => {
        #[cfg_attr(feature = "preload", unsafe(link_section = "precache_next"))]
        #[used]
        static NEXT: $crate::next::Next = {
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
}
