//! Times in which our handler stands aside: nothing is armed then, and SIGSEGV is the program's own in truth.

use super::{
    IGNORE, IGNORING, INSTALLED, Installing, MARK, NOBODY, PROCESS, Suspended, accommodate, bar, get, is_known,
    is_ours, is_virtual, put_in_place, set, set_own, take_over, with_restorer,
};
use crate::handler::stand_in::{self, STAND_IN};
use crate::sys::{self, Action, SignalSet};
use crate::{past_libc, pins};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::*};
use precache_contract::segment::Refusal;

/// While this exists SIGSEGV is ignored in truth, as the program wants it: a program that is executed inherits that.
/// What another thread sets meanwhile is in force at once.
pub struct Ignored(Suspended);

impl Ignored {
    /// `None`: the program does not ignore SIGSEGV. Not for signal context: it waits for who installs our handler.
    pub fn begin() -> Option<Self> {
        is_virtual().then(get).filter(|wanted| wanted.handler == libc::SIG_IGN)?;
        // No handler of the program's forks before this is counted as a whole.
        let _quiet = sys::Quiet::begin();
        let suspended = Suspended::begin();
        // Nobody puts our handler in place who has not seen that nothing may be armed.
        let _installing = suspended.is_ours().then(Installing::begin);
        if !is_known(&sys::action(libc::SIGSEGV).ok()?) {
            return None;
        }
        if suspended.is_ours() {
            IGNORING.fetch_add(1, SeqCst);
            // Whoever has found a page closed gets SIGSEGV before that is ignored: ignored, it would kill
            // (`force_sig_info_to_task` in kernel/signal.c).
            if !past_libc::is_filtered() {
                sys::interrupt_other_threads();
            }
        }
        // SAFETY: ignoring calls nothing.
        let _ = unsafe { sys::set_action(libc::SIGSEGV, &Action { mask: MARK, ..IGNORE }) };
        accommodate();
        Some(Self(suspended))
    }
}

impl Drop for Ignored {
    fn drop(&mut self) {
        if cfg!(feature = "sabotage-settings-undone") {
            set(&IGNORE);
        }
        // No handler forks from here on.
        let _quiet = sys::Quiet::begin();
        let is_ours = self.0.is_ours();
        // The child of a handler that forked meanwhile has put it in place when it adopted.
        if !is_ours && self.0.process != NOBODY {
            return;
        }
        let _installing = is_ours.then(Installing::begin);
        if !is_ours || pins::decrease(&IGNORING) <= 1 {
            put_in_place(&get());
            accommodate();
        }
    }
}

/// In force is [`on_last_fault`], or what it leaves: the default action, which the program wants.
static IS_LAST: AtomicBool = AtomicBool::new(false);

/// Whether that is so, and nothing of ours will be called any more unless the program sets a handler.
pub(super) fn is_last() -> bool {
    IS_LAST.load(Acquire)
}

/// The program has set a handler: ours is put in place in front of it.
pub(super) fn end_last(wanted: &Action) {
    IS_LAST.store(false, Release);
    put_in_place(wanted);
}

/// While this exists, or for good if it is forgotten, SIGSEGV is the program's alone, as without us.
pub enum Withdrawn {
    /// What the program set is in force; this was blocked before.
    Whole(SignalSet),
    /// One fault is let through, and then SIGSEGV has its default action.
    ButForOneFault,
}

impl Withdrawn {
    /// Nothing is armed any more, and the program has not forbidden itself calls before. `None`: our handler is not in place, or it
    /// stays: another thread may have a fault of ours on its way to it, and the program handles SIGSEGV, or has blocked it.
    pub fn begin() -> Option<Self> {
        let is_to_go = is_virtual() && PROCESS.load(Relaxed) == sys::process() && is_ours();
        let wanted = is_to_go.then(get)?;
        if !sys::is_alone() {
            return Self::but_for_one_fault(wanted);
        }
        // SAFETY: what the program set for these signals.
        unsafe {
            sys::set_action(libc::SIGSEGV, &wanted).ok()?;
            let _ = sys::set_action(STAND_IN, &set_own(None));
        }
        INSTALLED.store(false, Release);
        stand_in::stand_back(true);
        let mask = sys::mask();
        sys::set_mask(stand_in::program_form(mask));
        Some(Self::Whole(mask))
    }

    /// For the default action: who has found a page closed a moment ago reads on after that fault.
    fn but_for_one_fault(wanted: Action) -> Option<Self> {
        // Of what a thread blocks, what is sent has to stay pending.
        if wanted.handler != libc::SIG_DFL || stand_in::is_in_use() {
            return None;
        }
        sys::interrupt_other_threads();
        let flags = (libc::SA_SIGINFO | libc::SA_RESETHAND | libc::SA_NODEFER | libc::SA_ONSTACK) as u64;
        let handler = on_last_fault as *const () as usize;
        let last = with_restorer(&Action { handler, flags, restorer: 0, mask: 0 });
        IS_LAST.store(true, Release);
        // SAFETY: a handler for SA_SIGINFO, and libc's restorer.
        if unsafe { sys::set_action(libc::SIGSEGV, &last) }.is_err() {
            IS_LAST.store(false, Release);
            return None;
        }
        stand_in::stand_back(true);
        // Another thread may have set or blocked something since.
        let now = get();
        if now.handler != libc::SIG_DFL || stand_in::is_in_use() {
            stand_in::stand_back(false);
            end_last(&now);
            return None;
        }
        Some(Self::ButForOneFault)
    }
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        stand_in::stand_back(false);
        let Self::Whole(mask) = *self else {
            end_last(&get());
            accommodate();
            if stand_in::was_blocked_in_truth() {
                // By another thread meanwhile: at a checkpoint it would be killed.
                bar(Refusal::Filtered);
            }
            return;
        };
        sys::set_mask(mask);
        // A handler of the program's may have set others meanwhile.
        if let (Ok(wanted), Ok(own)) = (sys::action(libc::SIGSEGV), sys::action(STAND_IN)) {
            set_own(Some(&own));
            take_over(&wanted);
        }
        INSTALLED.store(true, Release);
    }
}

/// In our handler's place where system calls may be forbidden: it makes none, but for the return from it. A fault comes again by
/// itself; a signal that was sent does not, so one is made.
unsafe extern "C" fn on_last_fault(_signal: c_int, info: *const libc::siginfo_t, _context: *const c_void) {
    // SAFETY: the kernel gives it to a handler with SA_SIGINFO (sigaction(2)).
    if unsafe { (*info).si_code } <= 0 {
        // SAFETY: ends the process: nothing is mapped there (`vm.mmap_min_addr`), and SA_RESETHAND has set the default action.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!("mov [{0}], {0}", in(reg) 0usize);
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!("str {0}, [{0}]", in(reg) 0usize);
        }
    }
}
