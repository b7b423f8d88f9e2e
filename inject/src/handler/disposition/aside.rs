//! Times in which our handler stands aside: nothing is armed then. SIGSEGV is the program's own in truth, or our handler stays and
//! makes no system call.

use super::{
    IGNORE, IGNORING, INSTALLED, Installing, MARK, NOBODY, PROCESS, Suspended, accommodate, bar, get, in_front_of,
    is_known, is_ours, is_virtual, put_in_place, set, set_own, take_over,
};
use crate::glance::GLANCE;
use crate::handler::stand_in::{self, STAND_IN};
use crate::sys::{self, Action, SignalSet, bit};
use crate::{owner, past_libc, pins};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use precache_contract::segment::Refusal;

/// While this exists SIGSEGV is ignored in truth, as the program wants it: a program that is executed inherits that.
/// What another thread sets meanwhile is in force at once.
pub struct Ignored(Suspended);

impl Ignored {
    /// `None`: the program does not ignore SIGSEGV. Not for signal context: it waits for who installs our handler.
    pub fn begin() -> Option<Self> {
        // Where system calls may be forbidden, by what is in memory.
        (!is_last() || LAST.load(Acquire) == libc::SIG_IGN).then_some(())?;
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
        if !is_last() {
            accommodate();
        } else if get().handler != libc::SIG_IGN {
            renew_last();
        }
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

/// Our handler goes by what is in memory: system calls may be forbidden.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static IS_LAST: AtomicBool = AtomicBool::new(false);

/// It has done so, and may have been entered then with the program's mask.
static WAS_LAST: AtomicBool = AtomicBool::new(false);

/// What the program wants done then: a handler, whose flags and mask are in force already, or `SIG_DFL` or `SIG_IGN`.
static LAST: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// In [`LAST`]: the handler is called once (`SA_RESETHAND`). No function lies there (x86-64, arm64: the kernel's half).
const ONE_CALL: usize = 1 << 63;

/// Whether that is so. Nothing is armed then; what was closed a moment ago may still be on its way to our handler.
#[inline(always)]
pub fn is_last() -> bool {
    IS_LAST.load(Acquire)
}

/// Whether it has been so, and a mask that is not ours tells nothing.
pub fn was_last() -> bool {
    WAS_LAST.load(Acquire)
}

/// A handler of the program's that is to be called then, or 0. `None`: the signal was sent and is blocked, and what is left to do
/// takes system calls.
pub fn at_last(from_kernel: bool, interrupted: &mut SignalSet) -> Option<usize> {
    let mut wanted = LAST.load(Acquire);
    if stand_in::blocks(*interrupted) {
        if !from_kernel {
            return None;
        }
        wanted = libc::SIG_DFL;
    } else if wanted & ONE_CALL != 0 {
        // Of two threads one calls it.
        let was_first = LAST.compare_exchange(wanted, libc::SIG_DFL, AcqRel, Relaxed).is_ok();
        wanted = if was_first { wanted & !ONE_CALL } else { libc::SIG_DFL };
    }
    match wanted {
        libc::SIG_IGN if !from_kernel => Some(0),
        libc::SIG_DFL | libc::SIG_IGN => {
            if !from_kernel {
                fault();
            }
            // It comes again, and kills, at the same instruction (`force_sig_info_to_task` in kernel/signal.c).
            *interrupted |= bit(libc::SIGSEGV);
            Some(0)
        }
        handler => Some(handler),
    }
}

/// In place of a signal that was sent.
fn fault() {
    // SAFETY: ends the process: nothing is mapped there (`vm.mmap_min_addr`).
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov [{0}], {0}", in(reg) 0usize);
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("str {0}, [{0}]", in(reg) 0usize);
    }
}

/// Has what the program wants by now in memory, and its flags and mask in force. Of a vfork child, whose memory is its parent's and
/// whose actions are its own, that alone is put in force.
pub(super) fn renew_last() {
    let is_guest = owner::is_guest();
    loop {
        let wanted = get();
        let is_handler = ![libc::SIG_DFL, libc::SIG_IGN].contains(&wanted.handler);
        let is_one_call = is_handler && wanted.flags & libc::SA_RESETHAND as u32 as u64 != 0;
        if !is_guest {
            LAST.store(wanted.handler | if is_one_call { ONE_CALL } else { 0 }, Release);
        }
        let itself = if wanted.flags & libc::SA_NODEFER as u64 == 0 { bit(libc::SIGSEGV) } else { 0 };
        let mask = if is_handler { stand_in::form_of(wanted.mask | itself) } else { 0 };
        let in_front = in_front_of(&wanted);
        let in_memory = Action { flags: in_front.flags | libc::SA_NODEFER as u64, mask, ..in_front };
        let last = if is_guest { wanted } else { in_memory };
        let is_aside = wanted.handler == libc::SIG_IGN && IGNORING.load(SeqCst) != 0;
        if !is_aside {
            // SAFETY: our handler, for SA_SIGINFO, and libc's restorer, or the program's action. Ours stays, should this fail.
            let _ = unsafe { sys::set_action(libc::SIGSEGV, &last) };
        }
        if get() == wanted {
            return;
        }
    }
}

/// While this exists, or for good if it is forgotten, SIGSEGV takes no system call of ours.
pub enum Withdrawn {
    /// What the program set is in force, as without us; this was blocked before.
    Whole(SignalSet),
    /// Another thread may have a fault of ours on its way to our handler, so that stays.
    ButForHandler,
}

impl Withdrawn {
    /// Nothing is armed any more, and the program has not forbidden itself calls before. `None`: our handler is not in place.
    pub fn begin() -> Option<Self> {
        if !is_virtual() || PROCESS.load(Relaxed) != sys::process() || !is_ours() {
            return None;
        }
        if !sys::is_alone() {
            // Of what a thread blocks, what is sent has to stay pending.
            stand_in::stand_back(!stand_in::is_in_use() && get().handler == libc::SIG_DFL);
            // Whoever comes in between is known by its mask, which is not ours.
            WAS_LAST.store(true, SeqCst);
            renew_last();
            IS_LAST.store(true, SeqCst);
            // What another thread has set without a look at this.
            renew_last();
            if stand_in::is_in_use() {
                // Another thread has blocked something meanwhile.
                stand_in::stand_back(false);
            }
            return Some(Self::ButForHandler);
        }
        // SAFETY: what the program set for these signals.
        unsafe {
            sys::set_action(libc::SIGSEGV, &get()).ok()?;
            let _ = sys::set_action(STAND_IN, &set_own(None));
        }
        GLANCE.handler.fetch_and(!INSTALLED, Release);
        stand_in::stand_back(true);
        let mask = sys::mask();
        sys::set_mask(stand_in::form_of(stand_in::program_form(mask)));
        Some(Self::Whole(mask))
    }
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        stand_in::stand_back(false);
        let Self::Whole(mask) = *self else {
            IS_LAST.store(false, SeqCst);
            put_in_place(&get());
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
        GLANCE.handler.fetch_or(INSTALLED, Release);
    }
}
