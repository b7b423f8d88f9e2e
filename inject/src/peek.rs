//! Looks at what the program points to, which need not be there: natively the kernel answers that with EFAULT, so no fault of
//! ours may end the program.
//!
//! A load that faults here goes on at the failure exit, where our handler sends it ([`recover`]). Where that is not in place, the
//! kernel is asked before, unless the program has forbidden itself calls: then what it says is there is taken to be. Not where all
//! signals are blocked: a fault would kill.

use crate::handler::disposition;
use crate::{past_libc, sys};
#[cfg(target_arch = "x86_64")]
use core::arch::naked_asm;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use precache_contract::PAGE;

/// Two words, in registers. Both all ones: they are not there. No call takes a buffer of that address and length, either.
#[repr(C)]
struct Pair(usize, usize);

/// Two words in a row, at whatever address.
///
/// # Safety
/// Our handler must be in place ([`disposition::is_in_place`]), or the words there.
#[inline(always)]
pub unsafe fn pair(address: usize) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise.
    let Pair(one, other) = unsafe { load_pair(address) };
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
        let Pair(word, is_lacking) = unsafe { load_word(address) };
        (is_lacking == 0).then_some(word)
    }
}

/// Six words in a row, at whatever address.
///
/// # Safety
/// As [`pair`].
#[inline(always)]
pub unsafe fn six(address: usize) -> Option<[usize; 6]> {
    let mut words = MaybeUninit::uninit();
    // SAFETY: the caller's promise; there is room for so many.
    let Pair(one, other) = unsafe { load_six(address, &mut words) };
    // SAFETY: `load_six` answers 0 only behind its last store; where it has not come so far, `fail` answers all ones.
    (one & other != usize::MAX).then(|| unsafe { words.assume_init() })
}

/// # Safety
/// As [`pair`].
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn load_six(address: usize, words: &mut MaybeUninit<[usize; 6]>) -> Pair {
    naked_asm!(
        ".cfi_startproc",
        "movups xmm0, [rdi]",
        "movups xmm1, [rdi + 16]",
        "movups xmm2, [rdi + 32]",
        "movups [rsi], xmm0",
        "movups [rsi + 16], xmm1",
        "movups [rsi + 32], xmm2",
        "xor eax, eax",
        "ret",
        ".cfi_endproc"
    )
}

/// # Safety
/// As [`pair`].
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn load_pair(address: usize) -> Pair {
    naked_asm!(".cfi_startproc", "mov rax, [rdi]", "mov rdx, [rdi + 8]", "ret", ".cfi_endproc")
}

/// # Safety
/// As above.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn load_word(address: usize) -> Pair {
    naked_asm!(".cfi_startproc", "mov rax, [rdi]", "xor edx, edx", "ret", ".cfi_endproc")
}

/// The failure exit of all, which have changed nothing but registers that calls may change.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn fail() -> Pair {
    naked_asm!(".cfi_startproc", "mov rax, -1", "mov rdx, rax", "ret", ".cfi_endproc")
}

/// If the fault is that of a load here, has it go on at the failure exit.
///
/// # Safety
/// `context` is what the kernel passed to the handler of a fault.
#[cfg(target_arch = "x86_64")]
pub unsafe fn recover(context: *mut c_void) -> bool {
    /// Bytes from the first of the loads to the second one, `mov rax, [rdi]` or `movups xmm0, [rdi]`, and to the third one,
    /// behind `movups xmm1, [rdi + 16]`.
    const SECOND: i64 = 3;
    const THIRD: i64 = SECOND + 4;
    let at = |function: *const ()| function as i64;
    let (pair, word, six) = (at(load_pair as *const ()), at(load_word as *const ()), at(load_six as *const ()));
    // SAFETY: the caller's promise: a ucontext_t.
    let next = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    let is_ours = [pair, pair + SECOND, word, six, six + SECOND, six + THIRD].contains(next);
    if is_ours {
        *next = at(fail as *const ());
    }
    is_ours
}

/// Elsewhere the kernel is always asked: whether the first and the last byte can be read.
#[cfg(not(target_arch = "x86_64"))]
fn is_there(address: usize, length: usize) -> bool {
    sys::can_access(address, false) && sys::can_access(address.wrapping_add(length - 1), false)
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn load_six(address: usize, words: &mut MaybeUninit<[usize; 6]>) -> Pair {
    if !is_there(address, size_of_val(words)) {
        return Pair(usize::MAX, usize::MAX);
    }
    // SAFETY: it can be read.
    words.write(unsafe { (address as *const [usize; 6]).read_unaligned() });
    Pair(0, 0)
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn load_pair(address: usize) -> Pair {
    if !is_there(address, size_of::<Pair>()) {
        return Pair(usize::MAX, usize::MAX);
    }
    // SAFETY: it can be read.
    unsafe { (address as *const Pair).read_unaligned() }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn load_word(address: usize) -> Pair {
    if !is_there(address, size_of::<usize>()) {
        return Pair(usize::MAX, usize::MAX);
    }
    // SAFETY: it can be read.
    Pair(unsafe { (address as *const usize).read_unaligned() }, 0)
}

#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn recover(_context: *mut c_void) -> bool {
    false
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
            // SAFETY: as above.
            assert_eq!(unsafe { six(address) }, Some(core::array::from_fn(|word| wanted(at + 8 * word))));
        }
        assert_eq!(word(8), None, "no handler is in place: the kernel tells");
    }
}
