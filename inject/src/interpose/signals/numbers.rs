//! The calls of this folder by number (syscall(2)): their sets have the kernel's size, and actions its layout.

use super::actions::{exchange, note, note_early};
use super::{fail, is_served, reveal};
use crate::buffers::Words;
use crate::doing::Doing;
use crate::handler::stand_in;
use crate::sys::{Action, SignalSet};
use crate::{past_libc, peek, sys};
use core::ffi::{c_int, c_long};
use core::mem::offset_of;

/// Bytes of a set; of another number the kernel takes none.
const SIZE: usize = size_of::<SignalSet>();

/// Makes any call by `call`, with these words or, if it is one of those, some like them.
#[inline(never)] // Its sets must not weigh on the stacks of others.
pub fn make(number: c_long, mut words: Words, call: Doing<Words, isize>) -> isize {
    let [a, b, c, d, e, f] = words;
    let form = |program: SignalSet| match number {
        libc::SYS_rt_sigprocmask => stand_in::change_form(a as c_int, program),
        _ => stand_in::kernel_form(program),
    };
    // Where the set is, its size, and which word tells where.
    let (set, size, word) = match number {
        _ if !is_served() => {
            let result = call.with(words);
            let is_set = number == libc::SYS_rt_sigaction && result == 0 && b != 0;
            if let Some(action) = is_set.then(|| action_at(b)).flatten() {
                note_early(a as c_int, &action);
            }
            return result;
        }
        libc::SYS_rt_sigaction if d == SIZE => return change_action(words, call),
        libc::SYS_rt_sigprocmask => (b, d, 1),
        libc::SYS_rt_sigsuspend => (a, b, 0),
        libc::SYS_ppoll => (d, e, 3),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => (e, f, 4),
        // The last word points to both.
        libc::SYS_pselect6 if f != 0 => match [f, f.wrapping_add(SIZE)].map(peek::word) {
            [Some(set), Some(size)] => (set, size, 5),
            _ => return call.with(words),
        },
        _ => return call.with(words),
    };
    let program = if set == 0 || size != SIZE { None } else { peek::word(set) };
    let inner = program.map(|program| form(program as SignalSet));
    let both = [inner.as_ref().map_or(set, |inner| core::ptr::from_ref(inner).addr()), size];
    words[word] = if word == 5 { both.as_ptr().addr() } else { both[0] };
    let result = call.with(words);
    if number == libc::SYS_rt_sigprocmask && result == 0 {
        // SAFETY: null, or a set that the kernel has just filled in, of which no more is looked at.
        unsafe { reveal(c as *mut libc::sigset_t) };
    }
    result
}

fn change_action([signal, new, old, size, e, f]: Words, call: Doing<Words, isize>) -> isize {
    let number = signal as c_int;
    let wanted = if new == 0 { None } else { action_at(new) };
    if new != 0 && wanted.is_none() {
        fail(libc::EFAULT);
        return -1;
    }
    if let Some(before) = exchange(number, wanted.as_ref()) {
        if old == 0 {
            return 0;
        }
        // The kernel, too, has changed what is in force when it finds no room for what was. Where the program has forbidden
        // itself system calls, whether it may be written is not asked for.
        let last = old.wrapping_add(size_of::<Action>() - 1);
        let may_be_written = || [old, last].into_iter().all(|address| sys::can_access(address, true));
        if action_at(old).is_none() || !past_libc::is_filtered() && !may_be_written() {
            fail(libc::EFAULT);
            return -1;
        }
        // SAFETY: it is there (above), and may be written, unless the program is wrong about that, too.
        unsafe { (old as *mut Action).write_unaligned(before) };
        return 0;
    }
    let mut inner = wanted;
    if number != libc::SIGSEGV
        && let Some(inner) = &mut inner
    {
        inner.mask = stand_in::kernel_form(inner.mask);
    }
    let inner = inner.as_ref().map_or(0, |inner| core::ptr::from_ref(inner).addr());
    let result = call.with([signal, inner, old, size, e, f]);
    if result == 0 {
        if number != libc::SIGSEGV && old != 0 {
            // SAFETY: an action that the kernel has just filled in.
            unsafe { reveal((old + offset_of!(Action, mask)) as *mut libc::sigset_t) };
        }
        wanted.into_iter().for_each(|wanted| note(number, wanted.handler));
    }
    result
}

/// What the program says is an action; `None`: it is not there.
#[inline(never)] // One copy is enough for all who ask.
fn action_at(address: usize) -> Option<Action> {
    let field = |offset: usize| peek::word(address.wrapping_add(offset));
    Some(Action {
        handler: field(offset_of!(Action, handler))?,
        flags: field(offset_of!(Action, flags))? as u64,
        restorer: field(offset_of!(Action, restorer))?,
        mask: field(offset_of!(Action, mask))? as SignalSet,
    })
}
