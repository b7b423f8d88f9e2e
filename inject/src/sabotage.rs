//! Broken on purpose, for the tests of the tests (`tests/sabotage`): see the features in `Cargo.toml`. Most rules are
//! broken where they are kept; here is what the handler must not do.

use crate::curtain::{Action, Span};
use crate::protect;
use crate::registry::Held;
use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering::*};
use precache_contract::PAGE;
use precache_contract::segment::Segment;

/// Tells such a library from a true one; `optimizer/build.rs` embeds none that has it.
#[unsafe(no_mangle)]
pub static PRECACHE_SABOTAGE: u8 = 1;

/// What signal context may not do.
///
/// # Safety
/// `context` is what the kernel passed to the handler.
pub unsafe fn in_signal_context(context: *mut c_void) {
    // SAFETY: libc's functions with arguments as they demand; what they do to the program is the point.
    unsafe {
        if cfg!(feature = "sabotage-malloc-in-handler") {
            libc::free(core::hint::black_box(libc::malloc(64)));
        }
        if cfg!(feature = "sabotage-lock-in-handler") {
            static LOCK: Lock = Lock(core::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
            libc::pthread_mutex_lock(LOCK.0.get());
            libc::pthread_mutex_unlock(LOCK.0.get());
        }
        if cfg!(feature = "sabotage-errno-in-handler") {
            *libc::__errno_location() = libc::EBADF;
        }
        if cfg!(feature = "sabotage-deep-stack") {
            core::hint::black_box(&mut [0u8; 16 << 10]);
        }
    }
    // SAFETY: the first word of the thread's control block points to itself (System V ABI, TLS variant II).
    #[cfg(all(target_arch = "x86_64", feature = "sabotage-thread-local-in-handler"))]
    unsafe {
        let _control_block: usize;
        core::arch::asm!("mov {}, fs:0", out(reg) _control_block);
    }
    // SAFETY: the caller's promise: a ucontext_t, with the registers that the kernel restores from it.
    #[cfg(all(target_arch = "x86_64", feature = "sabotage-registers-changed"))]
    unsafe {
        let registers = (*context.cast::<libc::ucontext_t>()).uc_mcontext.fpregs;
        (*registers).mxcsr ^= 0x6000;
    }
    let _ = context;
}

/// What a trip may not do: wait until the optimizer has heard of it.
pub fn after_news(segment: &Segment) {
    while cfg!(feature = "sabotage-waits-for-the-optimizer") && !segment.news.is_empty() {
        sys::yield_now();
    }
}

/// What a trip may not leave behind: the page that tripped before, closed again. Nor may it look at the data.
pub fn after_trip(held: &Held, at: u64) {
    if cfg!(feature = "sabotage-data-read-in-handler") {
        // SAFETY: open by now; that the file may have no such page any more is the point.
        unsafe { ((held.start() + at as usize) as *const u8).read_volatile() };
    }
    if cfg!(feature = "sabotage-fault-in-handler") && at >= FAULT_AT {
        // SAFETY: it faults, and that is the point.
        unsafe { core::ptr::dangling_mut::<u8>().write_volatile(0) };
    }
    static BEFORE: AtomicU64 = AtomicU64::new(u64::MAX);
    if cfg!(feature = "sabotage-closed-again-at-once") {
        let before = BEFORE.swap(at, Relaxed);
        if before != at && before < held.length() as u64 {
            let _ = protect::perform(held, Action::Close(Span { start: before, end: before + PAGE }));
        }
    }
}

/// From here on of a mapping.
const FAULT_AT: u64 = 4 << 20;

struct Lock(core::cell::UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is for several threads.
unsafe impl Sync for Lock {}
