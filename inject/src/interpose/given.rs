//! What a program is executed with: names, arguments and variables, and the lists of these, which may lie in armed mappings.
//! libc reads them where all signals are blocked, and the kernel where it answers with EFAULT; part of the work is done by
//! then (the file actions of posix_spawn(3)), so that such a call is never made anew.

use crate::arming::{ForCall, prepare_for_call};
use crate::buffers::{Buffers, STRING_MAX};
use crate::preload::List;
use crate::{handler, owner, past_libc, peek, registry};
use core::ffi::c_char;
use precache_contract::segment::Refusal;

/// Names, arguments, variables, and the variables of this process, of which libc takes PATH: open as long as this exists.
pub struct Given {
    _names: [Option<ForCall>; 2],
    _lists: [[Option<ForCall>; 2]; 3],
}

unsafe extern "C" {
    static environ: List;
}

impl Given {
    /// `None`: nothing is armed. Null stands for what a call is not given.
    ///
    /// # Safety
    /// What is no null must be what the call takes: strings, and lists of them that end with null.
    #[inline(never)] // One copy is enough for all who call this.
    pub unsafe fn hold(names: [*const c_char; 2], [arguments, variables]: [List; 2]) -> Option<Self> {
        if registry::is_empty() || past_libc::is_filtered() {
            return None;
        }
        // SAFETY: the loader's pointer to the environment (environ(7)).
        let ours = unsafe { environ };
        Some(Self {
            _names: names.map(|name| open(Buffers::from(name.cast(), STRING_MAX))),
            _lists: [arguments, variables, ours].map(|list| {
                let count = length(list);
                // A list that is open is read safely where no checkpoint may be met.
                [open(Buffers::one(list.cast(), (count + 1) * WORD)), open(Buffers::strings(list, count))]
            }),
        })
    }
}

const WORD: usize = size_of::<*const c_char>();

/// Strings in a list, as far as there is memory: what the kernel cannot read it answers.
fn length(list: List) -> usize {
    if list.is_null() {
        return 0;
    }
    let entry = |index: usize| peek::word(list.wrapping_add(index).addr());
    (0..).map_while(entry).take_while(|&entry| entry != 0).count()
}

/// Opens what of these is armed.
fn open(buffers: Buffers) -> Option<ForCall> {
    if !buffers.may_be_armed() {
        return None;
    }
    if owner::is_guest() {
        // A program that is executed would leave a pin behind in the memory of its parent.
        handler::open_everything(Refusal::Executing);
        return None;
    }
    prepare_for_call(&buffers)
}
