//! dlopen(3) and dlmopen(3), for libraries whose calls go past ours to the C library that they bind themselves to
//! (`RTLD_DEEPBIND`) or that is loaded for them alone (another namespace): what they hand to the kernel, unmap or protect
//! nobody sees. The loader looks at who calls these: they are passed on by a jump.

use crate::next::Next;
use crate::past_libc;
use core::ffi::{c_int, c_long, c_void};
use core::ptr::NonNull;
use precache_contract::segment::Refusal;

/// The next function's address, when what it is to load has been looked at.
fn before(next: &Next, is_past_us: bool) -> *mut c_void {
    if is_past_us {
        past_libc::note(Refusal::RawCalls);
    }
    next.address().map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

extern "C" fn before_dlopen(_path: usize, flags: c_int) -> *mut c_void {
    before(&DLOPEN, flags & libc::RTLD_DEEPBIND != 0)
}

/// The first namespace (`LM_ID_BASE`) is the program's own.
extern "C" fn before_dlmopen(namespace: c_long, _path: usize, flags: c_int) -> *mut c_void {
    before(&DLMOPEN, namespace != 0 || flags & libc::RTLD_DEEPBIND != 0)
}

macro_rules! passed_on {
    ($($(#[$doc:meta])* fn $name:ident after $before:ident, $next:ident = $c_name:literal;)*) => {$(
        #[cfg_attr(feature = "preload", unsafe(link_section = "precache_next"))]
        #[used]
        static $next: Next = Next::new($c_name);

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
            )
        }
    )*};
}

passed_on! {
    /// dlopen(3).
    fn dlopen after before_dlopen, DLOPEN = c"dlopen";
    /// dlmopen(3).
    fn dlmopen after before_dlmopen, DLMOPEN = c"dlmopen";
}
