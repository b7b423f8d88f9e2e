//! dlopen(3) and dlmopen(3), for libraries whose calls go past ours to the C library that they bind themselves to
//! (`RTLD_DEEPBIND`) or that is loaded for them alone (another namespace): what they hand to the kernel, unmap or protect
//! nobody sees; and dlsym(3), for those that look the C library's functions up in it by their names. The loader looks at who
//! calls these: they are passed on by a jump, but for a look into one library, which is the same for all.

use crate::next::Next;
#[cfg(feature = "preload")]
use crate::{
    next::{self, Dlsym},
    settings,
    symbols::Symbols,
};
use crate::{passed_on, past_libc};
use core::ffi::{c_int, c_long, c_void};
use core::ptr::{self, NonNull};
#[cfg(feature = "preload")]
use core::{
    ffi::{CStr, c_char},
    mem,
};
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

#[cfg(feature = "preload")]
extern "C" fn before_dlsym() -> *mut c_void {
    before(&DLSYM, false)
}

/// What a library has under a name; where our function of this name stands in front of just that, ours. Not where another
/// preloaded library stands in between: it may be the one that looks for what it is to pass calls on to.
#[cfg(feature = "preload")]
unsafe extern "C" fn find(library: *mut c_void, name: *const c_char) -> *mut c_void {
    let Some(next) = DLSYM.address() else { return ptr::null_mut() };
    // SAFETY: dlsym(3) has this type in every libc.
    let dlsym = unsafe { mem::transmute::<NonNull<c_void>, Dlsym>(next) };
    // SAFETY: the caller's own arguments.
    let found = unsafe { dlsym(library, name) };
    // Nobody sees a load end: dlopen(3) is left by a jump. What comes of it begins to be used here.
    past_libc::look_again();
    if found.is_null() || settings::is_left_alone() == Some(true) || cfg!(feature = "sabotage-looked-up-past-us") {
        return found;
    }
    // SAFETY: a name under which something was found.
    let wanted = unsafe { CStr::from_ptr(name) };
    let hash = next::hash(wanted);
    let Some(ours) = Symbols::of_this_library().function(wanted, hash) else { return found };
    // SAFETY: as above.
    if unsafe { next::of(name, hash) } == NonNull::new(found) || cfg!(feature = "sabotage-ours-whoever-looks") {
        return ours.as_ptr();
    }
    // What was looked up since may have left an error, which dlerror(3) would tell of.
    // SAFETY: the caller's own arguments.
    unsafe { dlsym(library, name) }
}

passed_on! {
    /// dlopen(3).
    fn dlopen after before_dlopen as DLOPEN = c"dlopen";
    /// dlmopen(3).
    fn dlmopen after before_dlmopen as DLMOPEN = c"dlmopen";
    #[cfg(feature = "preload")]
    /// dlsym(3). `RTLD_DEFAULT` is 0, `RTLD_NEXT` -1: their answers depend on who asks, and have ours in them where it stands
    /// behind that. What is neither is a library.
    fn dlsym after before_dlsym as DLSYM = c"dlsym" unless "lea rax, [rdi + 1]", "cmp rax, 1", "ja {instead}" => find;
}
