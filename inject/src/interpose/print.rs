//! The printf family, and the kin of warn(3) and err(3). glibc before 2.37 gives a long `%s` to the kernel as it lies, by a system
//! call that no interposer sees. It measures the text first; what that hits is kept open until the call is over.
//!
//! A function with a variable number of arguments cannot be written in stable Rust: those are written in
//! assembly, which gives them to the ones with a `va_list`.

use crate::arming::keep_all_open;
use crate::next::Next;
use crate::pins::Frame;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

type Call = unsafe extern "C" fn(usize, usize, usize, usize) -> c_int;

/// Makes the next call with all open.
#[inline(never)] // One copy is enough for all calls.
extern "C" fn with_all_open(a: usize, b: usize, c: usize, d: usize, next: &'static Next) -> c_int {
    let Some(next) = next.address() else { return -1 };
    let own = 0;
    let _open = keep_all_open(Frame::of(&own));
    // SAFETY: the program's own call; integers and pointers are words in registers, to whoever reads them and in the result
    // (System V ABI 3.2.3).
    unsafe { core::mem::transmute::<NonNull<c_void>, Call>(next)(a, b, c, d) }
}

/// Calls with a list of arguments, behind two words and a format at most. What a register holds that is none of these four is passed on
/// as it is, and nobody reads it.
#[cfg(target_arch = "x86_64")]
macro_rules! listed {
    ($($(#[$doc:meta])* fn $name:ident;)*) => {$(
        mod $name {
            $crate::next_of!(pub(super) $name);
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_: usize, _: usize, _: usize, _: usize) -> c_int {
            core::arch::naked_asm!(
                "lea r8, [rip + {next}]",
                "jmp {with_all_open}",
                next = sym $name::NEXT,
                with_all_open = sym with_all_open,
            )
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
listed! {
    /// vprintf(3).
    fn vprintf;
    /// vfprintf(3).
    fn vfprintf;
    /// vdprintf(3).
    fn vdprintf;
    /// vprintf(3), with a check of the format (`_FORTIFY_SOURCE`).
    fn __vprintf_chk;
    /// vfprintf(3), with a check of the format.
    fn __vfprintf_chk;
    /// vdprintf(3), with a check of the format.
    fn __vdprintf_chk;
    /// warn(3).
    fn vwarn;
    /// warn(3).
    fn vwarnx;
    /// err(3), which ends the program.
    fn verr;
    /// err(3), which ends the program.
    fn verrx;
    /// perror(3).
    fn perror;
    /// psignal(3).
    fn psignal;
    /// psiginfo(3).
    fn psiginfo;
    /// herror(3).
    fn herror;
}

/// Calls with their arguments one by one: `$fixed` are named, the others go to `$listed` as a list.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($($(#[$doc:meta])* fn $name:ident => $listed:ident, $fixed:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "endbr64",
                "lea r10, [rip + {listed}]",
                concat!("mov r11d, ", $fixed),
                "jmp {give_list}",
                listed = sym $listed,
                give_list = sym give_list,
            )
        }
    )*};
}

/// Lays the arguments behind the first r11 out as a `va_list` (`gp_offset`, `fp_offset`, `overflow_arg_area`, `reg_save_area`; System V
/// ABI 3.5.7), and gives it to the function at r10 as the argument after these, of which there are one to three.
///
/// # Safety
/// r10 must be a function that takes them, al as a caller of a variadic function sets it (System V ABI 3.5.7): it calls nothing else.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn give_list() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, 216",
        ".cfi_adjust_cfa_offset 216",
        "mov [rsp + 32], rdi",
        "mov [rsp + 40], rsi",
        "mov [rsp + 48], rdx",
        "mov [rsp + 56], rcx",
        "mov [rsp + 64], r8",
        "mov [rsp + 72], r9",
        // al: whether vector registers hold arguments.
        "test al, al",
        "je 2f",
        "movaps [rsp + 80], xmm0",
        "movaps [rsp + 96], xmm1",
        "movaps [rsp + 112], xmm2",
        "movaps [rsp + 128], xmm3",
        "movaps [rsp + 144], xmm4",
        "movaps [rsp + 160], xmm5",
        "movaps [rsp + 176], xmm6",
        "movaps [rsp + 192], xmm7",
        "2:",
        "lea eax, [r11 * 8]",
        "mov [rsp], eax",
        "mov dword ptr [rsp + 4], 48",
        "lea rax, [rsp + 224]",
        "mov [rsp + 8], rax",
        "lea rax, [rsp + 32]",
        "mov [rsp + 16], rax",
        "cmp r11d, 2",
        "cmovb rsi, rsp",
        "cmove rdx, rsp",
        "cmova rcx, rsp",
        "call r10",
        "add rsp, 216",
        ".cfi_adjust_cfa_offset -216",
        "ret",
        ".cfi_endproc",
    )
}

#[cfg(target_arch = "x86_64")]
variadic! {
    /// printf(3).
    fn printf => vprintf, "1";
    /// fprintf(3).
    fn fprintf => vfprintf, "2";
    /// dprintf(3).
    fn dprintf => vdprintf, "2";
    /// printf(3), with a check of the format.
    fn __printf_chk => __vprintf_chk, "2";
    /// fprintf(3), with a check of the format.
    fn __fprintf_chk => __vfprintf_chk, "3";
    /// dprintf(3), with a check of the format.
    fn __dprintf_chk => __vdprintf_chk, "3";
    /// warn(3).
    fn warn => vwarn, "1";
    /// warn(3).
    fn warnx => vwarnx, "1";
    /// err(3).
    fn err => verr, "2";
    /// err(3).
    fn errx => verrx, "2";
}
