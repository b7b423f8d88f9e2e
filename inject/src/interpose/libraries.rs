//! dlopen(3) and dlmopen(3), for libraries whose calls go past ours to the C library that they bind themselves to
//! (`RTLD_DEEPBIND`) or that is loaded for them alone (another namespace): what they hand to the kernel, unmap or protect
//! nobody sees; and dlsym(3), for those that look the C library's functions up in it by their names. The loader looks at who
//! calls these: they are passed on by a jump.

use crate::next::Next;
#[cfg(feature = "preload")]
use crate::next::{dlsym as next_dlsym, is_behind_ours, is_ours};
use crate::past_libc;
use core::ffi::{c_int, c_long, c_void};
use core::ptr::{self, NonNull};
use precache_contract::segment::Refusal;

/// The next function's address, when what it is to load has been looked at.
fn before(next: &Next, is_past_us: bool) -> *mut c_void {
    if is_past_us {
        past_libc::note(Refusal::RawCalls);
    }
    next.address().map_or(ptr::null_mut(), NonNull::as_ptr)
}

extern "C" fn before_dlopen(_path: usize, flags: c_int) -> *mut c_void {
    before(&DLOPEN, flags & libc::RTLD_DEEPBIND != 0)
}

/// The first namespace (`LM_ID_BASE`) is the program's own.
extern "C" fn before_dlmopen(namespace: c_long, _path: usize, flags: c_int) -> *mut c_void {
    before(&DLMOPEN, namespace != 0 || flags & libc::RTLD_DEEPBIND != 0)
}

/// What a library has under a name; where one of our functions stands in front of that, ours. Not where another preloaded
/// library stands in between: it may be the one that looks for what it is to pass calls on to.
#[cfg(feature = "preload")]
unsafe extern "C" fn find(library: *mut c_void, name: *const core::ffi::c_char) -> *mut c_void {
    let Some(dlsym) = next_dlsym() else { return ptr::null_mut() };
    // SAFETY: the caller's own arguments.
    let found = unsafe { dlsym(library, name) };
    if found.is_null() || !is_behind_ours(found) {
        return found;
    }
    // SAFETY: the name has just been found.
    let first = unsafe { dlsym(libc::RTLD_DEFAULT, name) };
    if is_ours(first) { first } else { found }
}

macro_rules! passed_on {
    ($($(#[$doc:meta])* fn $name:ident after $before:ident
        $(as $next:ident = $c_name:literal)? $(unless $($condition:literal),+ => $instead:ident)?;)*) => {$(
        $(
            #[cfg_attr(feature = "preload", unsafe(link_section = "precache_next"))]
            #[used]
            static $next: Next = Next::new($c_name);
        )?

        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            // Three words pushed align the stack for the call (System V ABI, 3.2.2).
            core::arch::naked_asm!(
                ".cfi_startproc",
                "endbr64",
                $($($condition,)+)?
                "push rdi",
                "push rsi",
                "push rdx",
                ".cfi_adjust_cfa_offset 24",
                "call {before}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_adjust_cfa_offset -24",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                "2: ret",
                ".cfi_endproc",
                before = sym $before,
                $(instead = sym $instead,)?
            )
        }
    )*};
}

passed_on! {
    /// dlopen(3).
    fn dlopen after before_dlopen as DLOPEN = c"dlopen";
    /// dlmopen(3).
    fn dlmopen after before_dlmopen as DLMOPEN = c"dlmopen";
    #[cfg(feature = "preload")]
    /// dlsym(3). `RTLD_DEFAULT` is 0, `RTLD_NEXT` -1: their answers depend on who asks, and have ours in them. What is neither
    /// is a library.
    fn dlsym after next_dlsym unless "lea rax, [rdi + 1]", "cmp rax, 1", "ja {instead}" => find;
}
