//! Whether this process is still the one that set things up, or a child forked from it.
//!
//! The word lies in a page that the kernel zeroes in a forked child (`MADV_WIPEONFORK`). A vfork child shares the
//! parent's memory, and with it everything that is true of it.

use crate::sys;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use precache_contract::PAGE;

const FORKED: u32 = 0;
const OWNED: u32 = 1;
const ADOPTING: u32 = 2;

/// Address of the page, 0 before [`establish`].
static PAGE_ADDRESS: AtomicUsize = AtomicUsize::new(0);

fn word() -> Option<&'static AtomicU32> {
    let address = if cfg!(feature = "sabotage-forks-unnoticed") { 0 } else { PAGE_ADDRESS.load(Acquire) };
    // SAFETY: set once, to a private page of our own that is never unmapped; aligned and always initialised (the
    // kernel zeroes it).
    (address != 0).then(|| unsafe { &*(address as *const AtomicU32) })
}

/// This process owns the copy of our memory that it sees. `false` when no page can be had.
pub fn establish() -> bool {
    if PAGE_ADDRESS.load(Acquire) != 0 {
        return true;
    }
    let Ok(address) = sys::map_wiped_on_fork(PAGE as usize) else { return false };
    // SAFETY: just mapped, writable, aligned to a page.
    unsafe { &*(address as *const AtomicU32) }.store(OWNED, Release);
    if PAGE_ADDRESS.compare_exchange(0, address, AcqRel, Acquire).is_err() {
        // SAFETY: another thread was faster; nobody has seen this page.
        let _ = unsafe { sys::unmap(address, PAGE as usize) };
    }
    true
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
