//! What runs in signal context. READ BEFORE CHANGING.
//!
//! Allowed here: atomics, the fixed tables, and the system calls of [`crate::sys`]. Not allowed: allocation, locks,
//! waiting, thread-local storage, panics, formatting, libc. A thread may be anywhere when a checkpoint stops it:
//! inside malloc, inside the dynamic loader, holding any lock, on a stack of two pages.
//!
//! Two waits there are: in a forked child, until another thread of it has adopted what it inherited; and whoever opens everything,
//! where nothing may be closed any more, waits for the turns of other threads ([`open_everything`]). Who has a turn waits for
//! nobody, asks no file for anything, and none of its signals comes through.

pub mod attachment;
pub mod disposition;
mod forward;
mod populate;
mod repetition;
pub mod stand_in;
mod trip;

use crate::peek;
use core::ffi::{c_int, c_void};

pub use forward::open_everything;
pub use trip::{adopt, give_up, hit_for_call};

/// Called by the kernel with all signals blocked: on SIGSEGV, whoever caused it.
///
/// What a trip runs lies together in the library (`.text.hot.trip`), and so does what it reads and writes (`.bss.trip`, with
/// what the constructor looks at; an entry of the table of mappings, two pages of the segment, that which forks wipe): a slow
/// reader's trips find little of it in the processor's caches, and each page of it is looked up anew.
///
/// A handler of the program's is jumped to, not called: it finds the stack and the registers with which the kernel calls
/// handlers, and returns to where they return, so that no backtrace and no stack pointer shows us.
///
/// # Safety
/// For the kernel alone, as a handler installed with SA_SIGINFO.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
pub unsafe extern "C" fn on_sigsegv(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // The stack is aligned for the call (System V ABI, 3.2.2), however it comes: qemu-user of some versions enters handlers eight
    // bytes off.
    core::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "and rsp, -16",
        "call {decide}",
        "lea rsp, [rbp - 24]",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "mov r11, rax",
        "xor eax, eax",
        "test r11, r11",
        "jz 2f",
        "jmp r11",
        "2: ret",
        decide = sym decide,
    )
}

/// The same, by a call.
///
/// # Safety
/// For the kernel alone, as a handler installed with SA_SIGINFO.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe extern "C" fn on_sigsegv(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's arguments. The program installed the address as a handler; without SA_SIGINFO it ignores two
    // of the arguments, as it does when the kernel calls it.
    unsafe {
        let handler = decide(signal, info, context);
        if handler != 0 {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = core::mem::transmute(handler);
            handler(signal, info, context);
        }
    }
}

/// Does what is to be done; the answer is a handler of the program's that is to run now, or 0.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
unsafe extern "C" fn decide(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> usize {
    #[cfg(feature = "sabotage")]
    // SAFETY: what the kernel passed.
    unsafe {
        crate::sabotage::in_signal_context(context);
    }
    // SAFETY: the kernel passes a siginfo_t and a ucontext_t to a handler with SA_SIGINFO (sigaction(2)).
    let (code, address, error) = unsafe { ((*info).si_code, (*info).si_addr() as usize, error_code(context)) };
    let by_protection = code == SEGV_MAPERR || code == SEGV_ACCERR;
    // SAFETY: as above.
    let from_kernel = code > 0 && !(by_protection && unsafe { claims_address(context, address) });
    // Only the kernel's own word counts: a signal sent by a program can claim any address, and other faults than a missing
    // page or permission are not made by checkpoints. Nor does an instruction lie in what is armed: data alone is.
    let is_access = by_protection && from_kernel && error & FETCH == 0;
    if (is_access || cfg!(feature = "sabotage-sent-signals-trip"))
        && trip::on_fault(address, error & WRITE != 0, context.addr())
    {
        return 0;
    }
    // SAFETY: as above.
    if from_kernel && unsafe { peek::recover(context) } {
        return 0;
    }
    // SAFETY: as above.
    unsafe { forward::forward(signal, info, context, from_kernel) }
}

/// `si_code` of a fault on a guard region, on x86-64 and arm64.
const SEGV_MAPERR: c_int = 1;
/// `si_code` of a fault on `PROT_NONE`.
const SEGV_ACCERR: c_int = 2;

/// Bits of the page-fault error code of x86-64 (Intel SDM vol. 3, 4.7): the access was a write; it was that of an
/// instruction.
const WRITE: i64 = 2;
const FETCH: i64 = 16;

#[cfg(target_arch = "x86_64")]
unsafe fn error_code(context: *const c_void) -> i64 {
    // SAFETY: the kernel passes a ucontext_t (sigaction(2)).
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] }
}

/// Whether the address is not that of the last fault, but of a signal that the process has sent itself in the kernel's words
/// (rt_sigqueueinfo(2)).
#[cfg(target_arch = "x86_64")]
unsafe fn claims_address(context: *const c_void, address: usize) -> bool {
    // SAFETY: as above.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_CR2 as usize] as usize != address }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn claims_address(_context: *const c_void, _address: usize) -> bool {
    false
}

/// Unknown elsewhere: what no opening helps is then told by its [`repetition`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn error_code(_context: *const c_void) -> i64 {
    0
}
