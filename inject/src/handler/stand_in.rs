//! The program's view of SIGSEGV, kept by the kernel under the number of a signal that nothing sends.
//!
//! SIGSEGV itself is never blocked, for a checkpoint hit while it is blocked kills. What the program wants of it is set
//! for SIGSTKFLT instead ("stack fault on coprocessor (unused)", signal(7)): its bit in a thread's mask is the program's
//! bit for SIGSEGV, and its action is the program's (`disposition`). So the kernel does with it what it does with any
//! signal: threads and forked children inherit it, handlers run with it and return from it, longjmp and setcontext
//! restore it, a vfork child has an action of its own.
//!
//! The *program's form* of a set is what the program asks for and reads back, the *kernel's form* what is in force.

use crate::sys::{self, SignalSet, bit};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// The signal that stands in for SIGSEGV.
pub const STAND_IN: c_int = 16;

/// A real-time signal of no fixed use, whose bit also answers for SIGSTKFLT's own: both are in full sets and in none
/// else.
const WITNESS: c_int = 60;

const SEGV: SignalSet = bit(libc::SIGSEGV);
const STOOD_FOR: SignalSet = bit(STAND_IN);

/// Whether a call about this signal concerns what is kept here.
pub const fn concerns(signal: c_int) -> bool {
    signal == libc::SIGSEGV || signal == STAND_IN
}

/// Nothing stands in for SIGSEGV, which is the program's alone.
static STANDS_BACK: AtomicBool = AtomicBool::new(false);

/// SIGSTKFLT has stood for SIGSEGV in some mask.
static IS_IN_USE: AtomicBool = AtomicBool::new(false);

/// SIGSEGV itself has been blocked.
static IN_TRUTH: AtomicBool = AtomicBool::new(false);

/// Whether it has been since nothing stands in for it any more.
pub fn was_blocked_in_truth() -> bool {
    IN_TRUTH.load(Relaxed)
}

/// Whether the program has blocked SIGSEGV anywhere so far.
pub fn is_in_use() -> bool {
    IS_IN_USE.load(Relaxed)
}

/// From now on SIGSEGV itself is what is blocked, or no longer.
pub fn stand_back(stands_back: bool) {
    STANDS_BACK.store(stands_back, Release);
}

/// What to block so that the program finds these blocked.
#[inline(never)] // One copy is enough for all who ask.
pub fn kernel_form(program: SignalSet) -> SignalSet {
    if STANDS_BACK.load(Acquire) || cfg!(feature = "sabotage-segv-can-be-blocked") {
        if program & SEGV != 0 {
            IN_TRUTH.store(true, Relaxed);
        }
    } else if program & SEGV != 0 {
        IS_IN_USE.store(true, Relaxed);
    }
    form_of(program)
}

/// The same, of what is to be no mask that a call of the program's meets. While nothing stands in, SIGSTKFLT is left out, for masks
/// that were kept before mean SIGSEGV by it: it is known by its witness.
pub fn form_of(program: SignalSet) -> SignalSet {
    let others = program & !(SEGV | STOOD_FOR);
    match program & SEGV {
        0 => others,
        segv if STANDS_BACK.load(Acquire) || cfg!(feature = "sabotage-segv-can-be-blocked") => others | segv,
        _ => others | STOOD_FOR,
    }
}

/// What the program finds blocked when these are. SIGSEGV itself is when it was blocked past us, or is pending.
pub const fn program_form(kernel: SignalSet) -> SignalSet {
    let others = kernel & !(SEGV | STOOD_FOR);
    let segv = if kernel & (SEGV | STOOD_FOR) != 0 { SEGV } else { 0 };
    let own = if kernel & bit(WITNESS) != 0 { STOOD_FOR } else { 0 };
    others | segv | own
}

/// The same for a change of a mask: what is to be unblocked includes SIGSEGV itself.
pub fn change_form(how: c_int, program: SignalSet) -> SignalSet {
    kernel_form(program) | if how == libc::SIG_UNBLOCK { program & SEGV } else { 0 }
}

/// What to put in force in place of a mask that the program may have put together by itself, or have been told in the kernel's
/// form: with SIGSEGV it is its own. With SIGSTKFLT alone it may be either, unless that has stood for SIGSEGV nowhere yet.
pub fn settled(mask: SignalSet) -> SignalSet {
    if mask & SEGV != 0 || !IS_IN_USE.load(Relaxed) { kernel_form(mask) } else { mask }
}

/// Whether this mask, in the kernel's form, blocks SIGSEGV for the program.
pub const fn blocks(kernel: SignalSet) -> bool {
    kernel & STOOD_FOR != 0
}

/// The calling thread's mask, in the kernel's form, if it may block SIGSEGV for the program. It is not asked for where nothing
/// stands in for SIGSEGV in any mask: a program may have forbidden itself that call.
pub fn blocking() -> Option<SignalSet> {
    let may_block = IS_IN_USE.load(Relaxed) && !STANDS_BACK.load(Acquire);
    may_block.then(sys::mask).filter(|&now| blocks(now))
}

/// Changes the calling thread's mask as the program wants; the answer is the one before, in its form too.
pub fn change_mask(how: c_int, program: SignalSet) -> SignalSet {
    program_form(sys::change_mask(how, change_form(how, program) & !sys::LIBC_INTERNAL))
}

/// Unblocks SIGSEGV for the calling thread, if it is blocked: by whoever executed this program, or by a raw system
/// call. The program goes on to find it blocked.
pub fn settle_mask() {
    let now = sys::mask();
    if now & SEGV != 0 {
        sys::set_mask(kernel_form(now));
    }
}

/// A handler of another signal was set, before all else here, that blocks SIGSEGV while it runs. The constructor looks at it, and
/// writes to the page that it is in anyway.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static BLOCKED_EARLY: AtomicBool = AtomicBool::new(false);

/// The mask of an action that is set before [`begin`].
pub fn note_early(mask: SignalSet) {
    if mask & SEGV != 0 {
        BLOCKED_EARLY.store(true, Relaxed);
    }
}

/// At the start of a program SIGSTKFLT stands for nothing yet, unless one of the program's own libraries has begun before and
/// blocks SIGSEGV.
pub fn begin() {
    let now = sys::mask();
    if now & SEGV != 0 {
        sys::set_mask(kernel_form(now));
    } else if now & STOOD_FOR != 0 && !IS_IN_USE.load(Relaxed) {
        sys::set_mask(now & !STOOD_FOR);
    }
    if BLOCKED_EARLY.load(Relaxed) {
        (1..=64).filter(|&signal| !concerns(signal)).for_each(settle_action);
    }
}

/// While the handler of another signal runs, the signal that stands in for SIGSEGV is blocked instead of it.
fn settle_action(signal: c_int) {
    if let Ok(action) = sys::action(signal)
        && action.mask & SEGV != 0
    {
        // SAFETY: what is in force, with another mask.
        let _ = unsafe { sys::set_action(signal, &sys::Action { mask: kernel_form(action.mask), ..action }) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read back of every set in which SIGSTKFLT and its witness go together.
    #[test]
    fn sets_come_back_as_they_went() {
        let all = SignalSet::MAX;
        let sets = [0, all, SEGV, all & !SEGV, bit(libc::SIGUSR1), bit(libc::SIGUSR1) | SEGV, all & !bit(libc::SIGBUS)];
        for set in sets {
            assert_eq!(program_form(kernel_form(set)), set, "{set:x}");
            assert_eq!(kernel_form(set) & SEGV, 0, "{set:x}");
            assert_eq!(blocks(kernel_form(set)), set & SEGV != 0, "{set:x}");
        }
    }

    #[test]
    fn what_is_blocked_past_us_is_found_and_can_be_undone() {
        assert_eq!(program_form(SEGV), SEGV);
        assert_eq!(change_form(libc::SIG_UNBLOCK, SEGV), SEGV | STOOD_FOR);
        assert_eq!(change_form(libc::SIG_BLOCK, SEGV), STOOD_FOR);
        assert_eq!(change_form(libc::SIG_UNBLOCK, STOOD_FOR), 0, "SIGSTKFLT alone changes nothing");
    }
}
