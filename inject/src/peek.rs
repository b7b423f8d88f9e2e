//! Looks at what the program points to, which need not be there: natively the kernel answers that with EFAULT, so no fault of
//! ours may end the program.
//!
//! Each look is a few loads with an entry in a table (`precache_peeks`), as the kernel has one for its own looks at the program
//! (extable): where one of them faults our handler goes on behind them ([`recover`]). Where that is not in place, the kernel is
//! asked before, unless the program has forbidden itself calls: then what it says is there is taken to be. Not where all signals
//! are blocked: a fault would kill.

use crate::handler::disposition;
use crate::{past_libc, sys};
use precache_contract::PAGE;

/// Two words in a row, at whatever address. `None`: they are not there, or are all ones, and no call takes a buffer of that address
/// and length, either.
///
/// # Safety
/// Our handler must be in place ([`disposition::is_in_place`]), or the words there.
#[inline(always)]
pub unsafe fn pair(address: usize) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise.
    let (one, other) = unsafe { pair_or_ones(address) };
    (one & other != usize::MAX).then_some((one, other))
}

/// The same; all ones where they are not there.
///
/// # Safety
/// As [`pair`].
#[inline(always)]
pub unsafe fn pair_or_ones(address: usize) -> (usize, usize) {
    // SAFETY: the caller's promise.
    unsafe { load_pair(address) }
}

/// The word at this address.
///
/// # Safety
/// As [`pair`].
#[inline(always)]
pub unsafe fn word_inline(address: usize) -> Option<usize> {
    // SAFETY: the caller's promise.
    let (word, is_lacking) = unsafe { load_word(address) };
    (is_lacking == 0).then_some(word)
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
        unsafe { word_inline(address) }
    }
}

/// The words of a `msghdr`, but for the length of its name and its flags: name, list and its length, control data and its length.
/// `None`: as for a [`pair`], by name and the length of the list.
///
/// # Safety
/// As [`pair`].
#[inline(always)]
pub unsafe fn message(address: usize) -> Option<[usize; 5]> {
    // SAFETY: the caller's promise.
    let words = unsafe { message_or_ones(address) };
    (words[0] & words[2] != usize::MAX).then_some(words)
}

/// The same; where they are not there, name and the length of the list are all ones, and the others anything.
///
/// # Safety
/// As [`pair`].
#[inline(always)]
pub unsafe fn message_or_ones(address: usize) -> [usize; 5] {
    // SAFETY: the caller's promise.
    unsafe { load_message(address) }
}

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
        static __start_precache_peeks: [Loads; 0];
        static __stop_precache_peeks: [Loads; 0];
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

    /// Each by itself, as the program has stored them: a wider load would wait until these have left the processor's store buffer.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub unsafe fn load_message(address: usize) -> [usize; 5] {
        let (name, parts, count, control, length);
        // SAFETY: as above.
        unsafe {
            loads!(
                [
                    "mov rax, [{at}]",
                    "mov {parts}, [{at} + 16]",
                    "mov rdx, [{at} + 24]",
                    "mov {control}, [{at} + 32]",
                    "mov {length}, [{at} + 40]"
                ],
                at = in(reg) address, parts = out(reg) parts, control = out(reg) control, length = out(reg) length,
                out("rax") name, out("rdx") count,
            );
        }
        [name, parts, count, control, length]
    }

    /// If the fault is that of a load here, has it go on behind them.
    ///
    /// # Safety
    /// `context` is what the kernel passed to the handler of a fault.
    pub unsafe fn recover(context: *mut c_void) -> bool {
        let (first, end) =
            ((&raw const __start_precache_peeks).cast::<Loads>(), (&raw const __stop_precache_peeks).cast());
        let mut entry = first;
        // SAFETY: the caller's promise: a ucontext_t.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let at = registers[libc::REG_RIP as usize] as usize;
        while entry != end {
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
    use crate::arming::prepare_for_call;
    use crate::buffers::Buffers;
    use crate::sys;
    use core::ffi::c_void;

    const LACKING: (usize, usize) = (usize::MAX, usize::MAX);

    fn is_there(address: usize, length: usize) -> bool {
        let can_read =
            || [address, address.wrapping_add(length - 1)].into_iter().all(|byte| sys::can_access(byte, false));
        // What is closed the kernel does not find either: it is hit, as by a load of the program's.
        can_read() || prepare_for_call(&Buffers::one(address as *const c_void, length)).is_some() && can_read()
    }

    pub unsafe fn load_message(address: usize) -> [usize; 5] {
        if !is_there(address, size_of::<[usize; 6]>()) {
            return [usize::MAX; 5];
        }
        // SAFETY: it can be read.
        let [name, _, parts, count, control, length] = unsafe { (address as *const [usize; 6]).read_unaligned() };
        [name, parts, count, control, length]
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
            let address = bytes.as_ptr().expose_provenance() + at;
            // SAFETY: they are there.
            assert_eq!(unsafe { pair(address) }, Some((wanted(at), wanted(at + 8))));
            assert_eq!(word(address), Some(wanted(at)));
            // SAFETY: as above.
            assert_eq!(unsafe { message(address) }, Some([0, 2, 3, 4, 5].map(|word| wanted(at + 8 * word))));
        }
        assert_eq!(word(8), None, "no handler is in place: the kernel tells");
    }
}
