//! timer_create(2) with `SIGEV_THREAD`: libc begins a thread for each expiry by itself, with all signals blocked, and no call
//! of ours sees it begin. So the function that it is to run comes after one of ours.

use super::is_served;
use crate::handler::stand_in::settle_mask;
use crate::{interpose, past_libc};
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::*};
use precache_contract::segment::Refusal;

/// Functions that timers run, each in a slot for good: one may run after its timer is gone. Programs have few of them.
const SLOTS: usize = 8;

static FUNCTIONS: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

/// The slot of a function, taken if it has none; `None` if all are others'.
fn slot_of(function: usize) -> Option<usize> {
    let is_there = |slot: &AtomicUsize| match slot.compare_exchange(0, function, AcqRel, Acquire) {
        Ok(_) => true,
        Err(other) => other == function,
    };
    FUNCTIONS.iter().position(is_there)
}

/// Bytes of the code for one slot.
const ENTRY: usize = 16;

macro_rules! entry {
    ($at:literal) => {
        // The jump is as long as can be, so that all entries have one length.
        concat!("endbr64\n lea rax, [rip + {functions} + ", $at, "]\n .byte 0xe9\n .long 2f - . - 4")
    };
}

/// An entry for each slot: it begins what stands there, with its argument and without a frame of its own, for that may end by
/// pthread_exit(3).
#[unsafe(naked)]
extern "C" fn entries() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        entry!("0"),
        entry!("8"),
        entry!("16"),
        entry!("24"),
        entry!("32"),
        entry!("40"),
        entry!("48"),
        entry!("56"),
        // Three words pushed align the stack for the call (System V ABI, 3.2.2).
        "2: push rdi",
        "push rax",
        "push rax",
        ".cfi_adjust_cfa_offset 24",
        "call {settle}",
        "pop rax",
        "pop rax",
        "pop rdi",
        ".cfi_adjust_cfa_offset -24",
        "jmp qword ptr [rax]",
        ".cfi_endproc",
        functions = sym FUNCTIONS,
        settle = sym settle,
    )
}

extern "C" fn settle() {
    settle_mask();
}

/// `struct sigevent` (sigevent(3type)).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    value: usize,
    signal: c_int,
    notify: c_int,
    function: usize,
    rest: [usize; 5],
}

const _: () = assert!(size_of::<Event>() == size_of::<libc::sigevent>());

interpose! {
    /// timer_create(2).
    fn timer_create(clock: c_int, event: *const Event, timer: *mut c_void) -> c_int; missing -1; |next| {
        // SAFETY: null or a valid event, as the call demands.
        let wanted = unsafe { event.as_ref() };
        let threads = wanted.filter(|event| event.notify == libc::SIGEV_THREAD && event.function != 0 && is_served());
        let ours = threads.and_then(|event| match slot_of(event.function) {
            Some(slot) => Some(Event { function: entries as *const () as usize + slot * ENTRY, ..*event }),
            None => {
                past_libc::note(Refusal::RawCalls);
                None
            }
        });
        // SAFETY: the program's own call, or one like it.
        unsafe { next(clock, ours.as_ref().map_or(event, ptr::from_ref), timer) }
    }
}
