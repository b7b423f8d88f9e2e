//! Files that are mapped over memory (MAP_FIXED), on which a call of the program's may be at work meanwhile.
//!
//! What a call is given is looked at before it is made, and what it returns is not (`interpose::buffers`). On memory that is
//! armed under it, it would fail. So from the first such mapping on, calls are looked at when they return, too; and that
//! mapping is not armed where one may be at work that began before.

use crate::fork_gate::Shut;
use crate::glance::GLANCE;
use crate::maps::Maps;
use crate::registry;
use core::sync::atomic::{Ordering::*, fence};

/// Asked after what the call is given was found not to be armed: who finds it gone from the table, because a file is being
/// mapped over it, finds this set.
#[inline(always)]
pub fn are_calls_watched() -> bool {
    // Pairs with what takes a mapping out of the table.
    fence(Acquire);
    GLANCE.are_calls_watched.load(Relaxed)
}

/// Before a file is mapped over the range: whether it must not be armed there, for a call may be at work on it that nobody
/// looks at when it returns.
pub fn watch_calls(start: usize, end: usize) -> bool {
    !cfg!(feature = "sabotage-calls-unwatched")
        && !GLANCE.are_calls_watched.swap(true, SeqCst)
        && is_accessible(start, end)
}

/// Whether anything of the range can be accessed that is not armed: what is armed is pinned by the calls that are given it.
#[inline(never)] // Its buffer must not weigh on the stacks of others.
fn is_accessible(start: usize, end: usize) -> bool {
    let shut = Shut::begin();
    let mut maps = Maps::of_process(&shut);
    while let Some(line) = maps.next()
        && line.start < end
    {
        let is_ours = || registry::is_within_one(line.start.max(start), line.end.min(end));
        if line.is_accessible && start < line.end && !is_ours() {
            return true;
        }
    }
    !maps.were_told()
}

#[cfg(test)]
mod tests {
    use super::*;
    use precache_contract::PAGE;

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn what_is_reserved_is_not_accessible() {
        let place = |protection| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a new mapping, at the kernel's choice.
            unsafe { libc::mmap(core::ptr::null_mut(), 4 * PAGE as usize, protection, flags, -1, 0) as usize }
        };
        let end = |start: usize| start + 4 * PAGE as usize;
        let (reserved, used) = (place(libc::PROT_NONE), place(libc::PROT_WRITE));
        assert!(!is_accessible(reserved, end(reserved)));
        assert!(is_accessible(used, end(used)));
        assert!(is_accessible(used - PAGE as usize, used + 1));
        assert!(is_accessible(end(used) - 1, end(used)));
    }
}
