//! Stacks that the program has its handlers run on (sigaltstack(2)). Ours runs there, too, in front of the program's.

use crate::arming::lend;
use crate::handler::disposition;
use crate::interpose::words::pass;
use crate::{interpose, peek};
use core::ffi::{c_int, c_ulong};
use core::mem::offset_of;
use libc::stack_t;
use precache_contract::PAGE;
use precache_contract::segment::Refusal;

/// Bytes that a trip may take beside the frame with which the kernel calls handlers: a third of it is what was seen.
const HANDLER: usize = PAGE as usize;

/// How large that frame may be (asm/auxvec.h).
const AT_MINSIGSTKSZ: c_ulong = 51;

/// It is never larger here, whatever the processor could do: AT_MINSIGSTKSZ counts the tiles of AMX, which are in it
/// only where they are in use (Documentation/arch/x86/xstate.rst, "Dynamic features in signal frames").
const LARGEST_FRAME: usize = if cfg!(target_arch = "x86_64") { PAGE as usize } else { usize::MAX };

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
    // None is set, or the kernel refuses it.
    let [Some(bottom), Some(flags), Some(size)] = offsets.map(field) else { return };
    if flags as c_int & libc::SS_DISABLE != 0 || cfg!(feature = "sabotage-small-stacks-unnoticed") {
        return;
    }
    // SAFETY: it reads what the kernel told when the program was executed (getauxval(3)).
    let frame = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
    if size < frame.min(LARGEST_FRAME) + HANDLER {
        disposition::bar(Refusal::SmallStack);
    }
    lend(bottom, size);
}
