//! Whether this process is still the one that set things up, or a child forked from it.
//!
//! The word lies in a page that the kernel zeroes in a forked child (`MADV_WIPEONFORK`). A vfork child shares the
//! parent's memory, and with it everything that is true of it: there it is a guest, under whose number nobody enrols.

use crate::fork_gate::Gate;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::*};

const FORKED: u32 = 0;
const OWNED: u32 = 1;
const ADOPTING: u32 = 2;

/// A page of the library's own: what the kernel would place by itself could come to lie where the program has made a hole
/// that it counts on.
#[repr(C, align(4096))]
struct Page {
    word: AtomicU32,
    /// The process whose memory this is; 0: not known (a child made past libc's `fork`).
    process: AtomicI32,
    /// However a child was made, none of the threads that its parent's gate knows of are in it.
    gate: Gate,
}

static WIPED: Page = Page {
    word: AtomicU32::new(FORKED),
    process: AtomicI32::new(0),
    gate: Gate::new(AtomicU32::new(0), AtomicU32::new(0)),
};

/// The gate between this process's forks and its threads.
pub static GATE: &Gate = &WIPED.gate;

/// Whether the word counts.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static ESTABLISHED: AtomicBool = AtomicBool::new(false);

fn word() -> Option<&'static AtomicU32> {
    (is_established() && !cfg!(feature = "sabotage-forks-unnoticed")).then_some(&WIPED.word)
}

/// From the constructor: this process owns the memory that it sees. Later a vfork child may be the first to map a file, and
/// would take its parent's memory for its own.
pub fn establish() {
    // SAFETY: one page, zero at first and therefore in no file: the loader maps it as private anonymous memory (ELF
    // specification, program header: p_memsz beyond p_filesz).
    if unsafe { sys::wipe_on_fork((&raw const WIPED).addr(), size_of::<Page>()) }.is_ok() {
        WIPED.process.store(sys::process(), Relaxed);
        WIPED.word.store(OWNED, Release);
        ESTABLISHED.store(true, Release);
    }
}

/// Whether the kernel tells a child that it is one.
pub fn is_established() -> bool {
    ESTABLISHED.load(Acquire)
}

/// In a child that libc has forked, before anything else runs there.
pub fn note_child() {
    if is_established() {
        WIPED.process.store(sys::process(), Relaxed);
    }
}

/// The process whose memory this is: the parent's, for a vfork child.
pub fn process() -> i32 {
    match WIPED.process.load(Relaxed) {
        0 => sys::process(),
        known => known,
    }
}

/// Whether the memory is another process's.
pub fn is_guest() -> bool {
    process() != sys::process() && !cfg!(feature = "sabotage-guests-enrol")
}

/// What the caller finds.
#[derive(PartialEq, Eq)]
pub enum Standing {
    /// All as it should be.
    Owner,
    /// A forked child's first look: the caller adopts, then drops the token.
    Heir(Adoption),
    /// Another thread is adopting.
    Underage,
}

/// While this exists the child adopts its memory.
#[derive(PartialEq, Eq)]
pub struct Adoption(());

impl Drop for Adoption {
    fn drop(&mut self) {
        if let Some(word) = word() {
            word.store(OWNED, Release);
        }
    }
}

/// Whether all is as it should be, as nearly always.
pub fn is_settled() -> bool {
    word().is_none_or(|word| word.load(Acquire) == OWNED)
}

pub fn standing() -> Standing {
    let Some(word) = word() else { return Standing::Owner };
    match word.load(Acquire) {
        OWNED => Standing::Owner,
        FORKED if word.compare_exchange(FORKED, ADOPTING, AcqRel, Acquire).is_ok() => Standing::Heir(Adoption(())),
        _ => Standing::Underage,
    }
}
