//! Whether an optimizer still listens to this process; another one takes the place of one that died, and the process goes
//! over to it.

use crate::advice;
use crate::fork_gate::Shut;
use crate::handover::{self, Connection, Listener};
use crate::{owner, registry, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use precache_contract::segment::{Refusal, Segment};

/// How long a new optimizer is looked for, and how often, in milliseconds. A supervisor starts one within a second.
const PATIENCE: u64 = 5000;
const PERIOD: u64 = 20;

/// Descriptors that are looked through for a mapping's file.
const DESCRIPTORS: c_int = 256;

/// Since when nobody listens; 0: somebody does.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static LOST: AtomicU64 = AtomicU64::new(0);
static TRIED: AtomicU64 = AtomicU64::new(0);
static TRYING: AtomicBool = AtomicBool::new(false);

/// Whether it is time to look for an optimizer again.
pub fn is_due() -> bool {
    is_lost() && has_rested()
}

/// The segment. A forked child that has none, as the optimizer could not be told of it, tries again now and then.
#[cfg_attr(not(test), unsafe(link_section = ".text.hot.trip"))]
pub fn served() -> Option<&'static Segment> {
    handover::segment().or_else(|| {
        let tries = has_rested() && !cfg!(feature = "sabotage-unserved-children-forgotten");
        let why = if tries { check() } else { None };
        why.into_iter().for_each(super::give_up);
        handover::segment()
    })
}

fn has_rested() -> bool {
    sys::milliseconds().wrapping_sub(TRIED.load(Relaxed)) >= PERIOD
}

/// In a forked child: no other thread is looking, and this process has not looked yet (a vfork child adopts without).
pub fn reset_after_fork() {
    TRYING.store(false, Release);
    TRIED.store(0, Relaxed);
    LOST.store(0, Relaxed);
}

/// Whether nobody listens at present.
pub fn is_lost() -> bool {
    LOST.load(Relaxed) != 0
}

/// Looks for the optimizer, unless another thread forks: then a later trip does. The answer is why to let go of everything, if it
/// has been gone for too long.
pub fn check() -> Option<Refusal> {
    if owner::is_guest() {
        // The gate is its parent's.
        return None;
    }
    check_unforked(&Shut::try_begin()?)
}

/// The same, where no child can inherit the connection.
pub fn check_unforked(_shut: &Shut) -> Option<Refusal> {
    // A vfork child would be taken for the process whose memory it uses, and that one for dead when it ends.
    if owner::is_guest()
        || TRYING.compare_exchange(false, true, Acquire, Relaxed).is_err()
        || cfg!(feature = "sabotage-optimizer-death-unnoticed")
    {
        return None;
    }
    let now = sys::milliseconds();
    TRIED.store(now, Relaxed);
    let fate = match handover::find_listener() {
        Listener::Ours => {
            LOST.store(0, Relaxed);
            None
        }
        Listener::Another(connection) => {
            announce_all(&connection);
            LOST.store(0, Relaxed);
            None
        }
        Listener::Nobody => {
            let since = match LOST.compare_exchange(0, now, Relaxed, Relaxed) {
                Ok(_) => now,
                Err(since) => since,
            };
            (now.wrapping_sub(since) > PATIENCE).then_some(Refusal::OptimizerGone)
        }
    };
    TRYING.store(false, Release);
    fate
}

/// Announces every mapping whose file the program still has open, and what it has said of them. Of the others the
/// optimizer knows the files, if it knows the process that this one was forked from; else they are let go of.
pub fn announce_all(connection: &Connection) {
    registry::each(|held| {
        let announce = |file| connection.announce(held.slot(), held.generation(), file).is_ok();
        let announced = descriptor_of(held.file()).is_some_and(announce);
        if announced || connection.is_heirs {
            advice::repeat(&held);
        } else {
            held.doom(Refusal::OptimizerGone);
        }
    });
}

/// A descriptor of this process for the file.
fn descriptor_of(file: (u64, u64)) -> Option<c_int> {
    (0..DESCRIPTORS).find(|&number| {
        sys::file_status(number).is_ok_and(|status| (status.st_dev, status.st_ino) == file)
            && sys::open_flags(number).is_ok_and(|flags| flags & libc::O_ACCMODE != libc::O_WRONLY)
    })
}
