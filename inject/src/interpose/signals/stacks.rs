//! Stacks that the program has its handlers run on (sigaltstack(2)). Ours runs there, too, in front of the program's.

use super::is_served;
use crate::arming::{lend, settle_inheritance};
use crate::handler::disposition;
use crate::interpose::words::pass;
use crate::{interpose, peek};
use core::ffi::c_int;
use core::mem::offset_of;
use libc::stack_t;
use precache_contract::PAGE;
use precache_contract::segment::Refusal;

/// What a stack must have: room for the frame with which the kernel calls handlers, which takes less than half of it, as long as
/// the thread has used no tiles of AMX (Documentation/arch/x86/xstate.rst, "Dynamic features in signal frames"), and for a trip,
/// which takes a third of a page. glibc's SIGSTKSZ was always as much.
const ROOM: usize = if cfg!(target_arch = "x86_64") { 2 } else { 4 } * PAGE as usize;

interpose! {
    /// sigaltstack(2).
    fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int; missing -1; |_next| {
        look_at_stack(new.addr());
        pass(&NEXT, [new as usize, old as usize])
    }
}

/// Lets go of everything if the program's next alternate stack, described at this address, has no room for our handler: a trip there
/// would end the program, or write to what lies below. If it lies in a mapping, of that: the kernel calls no handler on a closed
/// page.
pub fn look_at_stack(description: usize) {
    let field = |offset: usize| peek::word(description.wrapping_add(offset));
    let offsets = [offset_of!(stack_t, ss_sp), offset_of!(stack_t, ss_flags), offset_of!(stack_t, ss_size)];
    if description == 0 || !is_served() || cfg!(feature = "sabotage-small-stacks-unnoticed") {
        return;
    }
    // None is set, or the kernel refuses it.
    let [Some(bottom), Some(flags), Some(size)] = offsets.map(field) else { return };
    if flags as c_int & libc::SS_DISABLE != 0 {
        return;
    }
    if size < ROOM {
        // What a forked child has inherited is settled first, or it would be closed again.
        settle_inheritance();
        disposition::bar(Refusal::SmallStack);
    }
    lend(bottom, size);
}
