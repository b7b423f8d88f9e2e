//! What the program wants done on SIGSEGV. It sees this, and not our handler, whenever it asks.

use crate::next;
use crate::sys::{self, SignalSet};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disposition {
    /// `SIG_DFL`, `SIG_IGN` or a function.
    pub handler: usize,
    pub flags: c_int,
    pub mask: SignalSet,
}

struct Slot {
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

/// Two copies: a writer fills in the one that is not current, then makes it so; the handler never waits.
static SLOTS: [Slot; 2] = [const { Slot::new() }; 2];
static CURRENT: AtomicU32 = AtomicU32::new(0);
static WRITING: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);

impl Slot {
    const fn new() -> Self {
        Self { handler: AtomicUsize::new(libc::SIG_DFL), flags: AtomicI32::new(0), mask: AtomicU64::new(0) }
    }
}

/// Whether our handler is in place, so that the program's disposition is kept here.
pub fn is_virtual() -> bool {
    INSTALLED.load(Acquire)
}

/// What the program wants.
pub fn get() -> Disposition {
    loop {
        let current = CURRENT.load(Acquire);
        let slot = &SLOTS[(current & 1) as usize];
        let found = Disposition {
            handler: slot.handler.load(Acquire),
            flags: slot.flags.load(Acquire),
            mask: slot.mask.load(Acquire),
        };
        // Two changes in between could have reached this copy again.
        if CURRENT.load(Acquire) == current {
            return found;
        }
    }
}

/// The right to write: with all signals blocked, so that no handler waits for the thread that it interrupted.
struct Writing(#[expect(dead_code, reason = "held for its end")] sys::Quiet);

impl Writing {
    fn begin() -> Self {
        let quiet = sys::Quiet::begin();
        while WRITING.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            sys::yield_now();
        }
        Self(quiet)
    }

    fn set(&self, wanted: Disposition) -> Disposition {
        let old = get();
        let current = CURRENT.load(Relaxed);
        let slot = &SLOTS[(current.wrapping_add(1) & 1) as usize];
        slot.handler.store(wanted.handler, Release);
        slot.flags.store(wanted.flags, Release);
        slot.mask.store(wanted.mask, Release);
        CURRENT.store(current.wrapping_add(1), Release);
        old
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITING.store(false, Release);
    }
}

/// Sets what the program wants and returns what it wanted before.
pub fn set(wanted: Disposition) -> Disposition {
    let writing = Writing::begin();
    let old = writing.set(wanted);
    if is_virtual() && (old.flags ^ wanted.flags) & libc::SA_ONSTACK != 0 {
        install_with(wanted);
    }
    old
}

/// In a forked child: no other thread is setting anything.
pub fn reset_after_fork() {
    WRITING.store(false, Release);
}

/// Puts our handler in place, in front of the program's. `false` when that cannot be done.
pub fn install() -> bool {
    let writing = Writing::begin();
    if is_virtual() {
        return is_ours();
    }
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    let Some(sigaction) = next::sigaction() else { return false };
    // SAFETY: libc's sigaction with no new action fills in the old one.
    let program = unsafe {
        if sigaction(libc::SIGSEGV, core::ptr::null(), old.as_mut_ptr()) != 0 {
            return false;
        }
        from_libc(&old.assume_init())
    };
    writing.set(program);
    if !install_with(program) {
        return false;
    }
    INSTALLED.store(true, Release);
    is_ours()
}

/// Whether the kernel would call us: a handler can be installed past every library (Go, Mono).
pub fn is_ours() -> bool {
    sys::real_handler(libc::SIGSEGV) == Ok(super::on_sigsegv as *const () as usize)
}

/// The default action, for good. Everything must be lifted before.
pub fn uninstall() {
    INSTALLED.store(false, Release);
    if let Some(sigaction) = next::sigaction() {
        let default = Disposition { handler: libc::SIG_DFL, flags: 0, mask: 0 };
        // SAFETY: a valid action; sigaction is async-signal-safe (signal-safety(7)).
        unsafe { sigaction(libc::SIGSEGV, &to_libc(default), core::ptr::null_mut()) };
    }
}

fn install_with(program: Disposition) -> bool {
    let Some(sigaction) = next::sigaction() else { return false };
    // SA_SIGINFO: the address is all that we go by.
    // SA_ONSTACK: as the program has it for its own handler, so that this runs on the stack that it expects; without
    // a handler of its own, on the alternate stack if there is one (Go demands it; small stacks need it).
    let on_stack = match program.handler {
        libc::SIG_DFL | libc::SIG_IGN => libc::SA_ONSTACK,
        _ => program.flags & libc::SA_ONSTACK,
    };
    let ours = Disposition {
        handler: super::on_sigsegv as *const () as usize,
        flags: libc::SA_SIGINFO | on_stack,
        // All: no handler of the program's runs on top of ours, where it could unmap what we hold.
        mask: SignalSet::MAX,
    };
    // SAFETY: a valid action with a handler for SA_SIGINFO.
    unsafe { sigaction(libc::SIGSEGV, &to_libc(ours), core::ptr::null_mut()) == 0 }
}

/// The kernel's part of libc's larger `sigset_t` is its first word.
pub fn from_libc(action: &libc::sigaction) -> Disposition {
    // SAFETY: sigset_t is 128 bytes of plain data, at least as long and as aligned as the word read.
    let mask = unsafe { (&raw const action.sa_mask).cast::<SignalSet>().read() };
    Disposition { handler: action.sa_sigaction, flags: action.sa_flags, mask }
}

pub fn to_libc(disposition: Disposition) -> libc::sigaction {
    // SAFETY: sigaction is plain data, for which zero is a value.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = disposition.handler;
    action.sa_flags = disposition.flags;
    // SAFETY: as in `from_libc`.
    unsafe { (&raw mut action.sa_mask).cast::<SignalSet>().write(disposition.mask) };
    action
}
