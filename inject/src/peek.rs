//! Looks at what the program points to, which need not be there: natively the kernel answers that with EFAULT, so no fault of
//! ours may end the program.
//!
//! Each look is a few loads with an entry in a table (`precache_peeks`), as the kernel has one for its own looks at the program
//! (extable): where one of them faults our handler goes on behind them ([`recover`]). Where that is not in place, the kernel is
//! asked before, unless the program has forbidden itself calls: then what it says is there is taken to be. Not where all signals
//! are blocked: a fault would kill.

use crate::handler::disposition;
use crate::{past_libc, sys};
use core::mem::offset_of;
use precache_contract::PAGE;

/// Two words in a row, at whatever address. `None`: they are not there, or are all ones, and no call takes a buffer of that address
/// and length, either.
///
/// # Safety
/// Our handler must be in place ([`disposition::is_in_place`]), or the words there.
#[inline(always)]
pub unsafe fn pair(address: usize) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise.
    let (one, other) = unsafe { load_pair(address) };
    (one & other != usize::MAX).then_some((one, other))
}

/// One word, at whatever address.
pub fn word(address: usize) -> Option<usize> {
    Words::default().next(address)
}

/// Looks at one word after the other; the kernel is asked once for those that lie in one page.
#[derive(Default)]
pub struct Words {
    /// Number of a page that is there, and one; 0: none is known.
    page: usize,
}

impl Words {
    /// The word at this address.
    #[inline(never)] // One copy is enough for all who look.
    pub fn next(&mut self, address: usize) -> Option<usize> {
        let last = address.wrapping_add(size_of::<usize>() - 1);
        let pages = [address, last].map(|byte| byte / PAGE as usize + 1);
        if pages != [self.page; 2] && !disposition::is_in_place() && !past_libc::is_filtered() {
            if !sys::can_access(address, false) || pages[0] != pages[1] && !sys::can_access(last, false) {
                return None;
            }
            self.page = pages[1];
        }
        // SAFETY: the word is there, or our handler is in place, or it is as the program says.
        let (word, is_lacking) = unsafe { load_word(address) };
        (is_lacking == 0).then_some(word)
    }
}

/// What is at the address of a `msghdr`: its words, and those of the first of its parts; of none, both are 0. `None` where either is
/// not there: a call that is given it transfers nothing.
///
/// # Safety
/// As [`pair`].
#[inline(always)]
pub unsafe fn message(address: usize) -> Option<([usize; 6], (usize, usize))> {
    // SAFETY: the caller's promise.
    let (words, (one, other)) = unsafe { load_message(address) };
    (one & other != usize::MAX).then_some((words, (one, other)))
}

const _: () = assert!(offset_of!(libc::msghdr, msg_iov) == 16 && offset_of!(libc::msghdr, msg_iovlen) == 24);

pub use self::machine::recover;
use self::machine::{load_message, load_pair, load_word};

#[cfg(target_arch = "x86_64")]
mod machine {
    use core::arch::asm;
    use core::ffi::c_void;
    use core::ptr::from_ref;

    /// Loads of program memory and where they end, each as bytes from itself.
    #[repr(C)]
    struct Loads {
        start: i32,
        end: i32,
    }

    unsafe extern "C" {
        // The linker's names for the two ends of the table.
        static __start_precache_peeks: Loads;
        static __stop_precache_peeks: Loads;
    }

    /// Loads, and their entry in the table. Where one faults, `rax` and `rdx` are all ones; what else it was to load is anything.
    macro_rules! loads {
        ([$($load:literal),*], $($operands:tt)*) => {
            asm!(
                "2:",
                $($load,)*
                "3:",
                ".pushsection precache_peeks, \"aR\"",
                ".balign 4",
                ".long 2b - .",
                ".long 3b - .",
                ".popsection",
                $($operands)*
                options(nostack, readonly)
            )
        };
    }

    /// # Safety
    /// As for [`super::pair`].
    #[inline(always)]
    pub unsafe fn load_pair(address: usize) -> (usize, usize) {
        let (one, other);
        // SAFETY: the caller's promise; nothing but these registers is changed.
        unsafe {
            loads!(["mov rax, [{at}]", "mov rdx, [{at} + 8]"], at = in(reg) address, out("rax") one, out("rdx") other,);
        }
        (one, other)
    }

    /// The word, and 0.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub unsafe fn load_word(address: usize) -> (usize, usize) {
        let (word, is_lacking);
        // SAFETY: as above.
        unsafe {
            loads!(["mov rax, [{at}]", "xor edx, edx"], at = in(reg) address, out("rax") word, out("rdx") is_lacking,);
        }
        (word, is_lacking)
    }

    /// Word by word, as the program has stored them: a wider load would wait until these have left the processor's store buffer.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub unsafe fn load_message(address: usize) -> ([usize; 6], (usize, usize)) {
        let (name, name_length, parts, count, control, control_length, one, other);
        // SAFETY: as above.
        unsafe {
            loads!(
                [
                    "xor eax, eax",
                    "xor edx, edx",
                    "mov {name}, [{at}]",
                    "mov {name_length}, [{at} + 8]",
                    "mov {parts}, [{at} + 16]",
                    "mov {count}, [{at} + 24]",
                    "mov {control}, [{at} + 32]",
                    "mov {control_length}, [{at} + 40]",
                    "test {count}, {count}",
                    "jz 3f",
                    "mov rax, [{parts}]",
                    "mov rdx, [{parts} + 8]"
                ],
                at = in(reg) address, name = out(reg) name, name_length = out(reg) name_length, parts = out(reg) parts,
                count = out(reg) count, control = out(reg) control, control_length = out(reg) control_length,
                out("rax") one, out("rdx") other,
            );
        }
        ([name, name_length, parts, count, control, control_length], (one, other))
    }

    /// If the fault is that of a load here, has it go on behind them.
    ///
    /// # Safety
    /// `context` is what the kernel passed to the handler of a fault.
    pub unsafe fn recover(context: *mut c_void) -> bool {
        let mut entry = &raw const __start_precache_peeks;
        // SAFETY: the caller's promise: a ucontext_t.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let at = registers[libc::REG_RIP as usize] as usize;
        while entry != &raw const __stop_precache_peeks {
            // SAFETY: an entry of the table, which the linker has laid end to end.
            let loads = unsafe { &*entry };
            let place = |distance: &i32| from_ref(distance).addr().wrapping_add_signed(*distance as isize);
            if (place(&loads.start)..place(&loads.end)).contains(&at) {
                registers[libc::REG_RIP as usize] = place(&loads.end) as i64;
                registers[libc::REG_RAX as usize] = -1;
                registers[libc::REG_RDX as usize] = -1;
                return true;
            }
            entry = entry.wrapping_add(1);
        }
        false
    }
}

/// Elsewhere the kernel is always asked: whether the first and the last byte can be read.
#[cfg(not(target_arch = "x86_64"))]
mod machine {
    use crate::sys;
    use core::ffi::c_void;

    const LACKING: (usize, usize) = (usize::MAX, usize::MAX);

    fn is_there(address: usize, length: usize) -> bool {
        sys::can_access(address, false) && sys::can_access(address.wrapping_add(length - 1), false)
    }

    pub unsafe fn load_message(address: usize) -> ([usize; 6], (usize, usize)) {
        if !is_there(address, size_of::<[usize; 6]>()) {
            return ([0; 6], LACKING);
        }
        // SAFETY: it can be read.
        let words = unsafe { (address as *const [usize; 6]).read_unaligned() };
        let [_, _, parts, count, ..] = words;
        // SAFETY: as for this.
        (words, if count == 0 { (0, 0) } else { unsafe { load_pair(parts) } })
    }

    pub unsafe fn load_pair(address: usize) -> (usize, usize) {
        if !is_there(address, size_of::<[usize; 2]>()) {
            return LACKING;
        }
        // SAFETY: it can be read.
        let [one, other] = unsafe { (address as *const [usize; 2]).read_unaligned() };
        (one, other)
    }

    pub unsafe fn load_word(address: usize) -> (usize, usize) {
        if !is_there(address, size_of::<usize>()) {
            return LACKING;
        }
        // SAFETY: it can be read.
        (unsafe { (address as *const usize).read_unaligned() }, 0)
    }

    pub unsafe fn recover(_context: *mut c_void) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "assembly")]
    fn what_is_there_is_read_at_any_address() {
        let bytes: [u8; 56] = core::array::from_fn(|at| at as u8);
        let wanted = |at: usize| usize::from_ne_bytes(core::array::from_fn(|byte| (at + byte) as u8));
        for at in 0..8 {
            let address = bytes.as_ptr().addr() + at;
            // SAFETY: they are there.
            assert_eq!(unsafe { pair(address) }, Some((wanted(at), wanted(at + 8))));
            assert_eq!(word(address), Some(wanted(at)));
        }
        assert_eq!(word(8), None, "no handler is in place: the kernel tells");
    }

    #[test]
    #[cfg_attr(miri, ignore = "assembly")]
    fn a_message_is_read_with_its_first_part() {
        let part = [11usize, 12];
        for (count, first) in [(0, (0, 0)), (2, (11, 12))] {
            let header = [1, 2, part.as_ptr().addr(), count, 5, 6];
            // SAFETY: they are there.
            assert_eq!(unsafe { message(header.as_ptr().addr()) }, Some((header, first)));
        }
    }
}
