//! The printf family. glibc before 2.37 gives a long `%s` to the kernel as it lies, by a system call that no interposer
//! sees. It measures the text first; what that hits is kept open until the call is over.
//!
//! A function with a variable number of arguments cannot be written in stable Rust: those are written in
//! assembly, which gives them to the ones with a `va_list`.

use crate::arming::keep_all_open;
use crate::interpose;
use crate::pins::Frame;
use core::ffi::{c_char, c_int, c_void};

/// `va_list` as a parameter: a pointer, on x86-64 (System V ABI 3.5.7).
type Arguments = *mut c_void;

/// Calls with a list of arguments.
macro_rules! listed {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        interpose! {
            $(#[$doc])*
            fn $name($($argument: $type,)* format: *const c_char, arguments: Arguments) -> c_int; missing -1; |next| {
                let own = 0;
                let _open = keep_all_open(Frame::of(&own));
                // SAFETY: the program's own call.
                unsafe { next($($argument,)* format, arguments) }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
listed! {
    /// vprintf(3).
    fn vprintf();
    /// vfprintf(3).
    fn vfprintf(stream: *mut c_void);
    /// vdprintf(3).
    fn vdprintf(file: c_int);
    /// vprintf(3), with a check of the format (`_FORTIFY_SOURCE`).
    fn __vprintf_chk(flag: c_int);
    /// vfprintf(3), with a check of the format.
    fn __vfprintf_chk(stream: *mut c_void, flag: c_int);
    /// vdprintf(3), with a check of the format.
    fn __vdprintf_chk(file: c_int, flag: c_int);
}

/// Calls with their arguments one by one: `$fixed` are named, the others are laid out as a `va_list` (`gp_offset`,
/// `fp_offset`, `overflow_arg_area`, `reg_save_area`; System V ABI 3.5.7), which goes to `$listed` as the argument after
/// the named ones, in `$register`.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($($(#[$doc:meta])* fn $name:ident => $listed:ident, $fixed:literal, $register:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "endbr64",
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
                concat!("mov dword ptr [rsp], 8 * ", $fixed),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $register, ", rsp"),
                "call {listed}",
                "add rsp, 216",
                ".cfi_adjust_cfa_offset -216",
                "ret",
                ".cfi_endproc",
                listed = sym $listed,
            )
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
variadic! {
    /// printf(3).
    fn printf => vprintf, "1", "rsi";
    /// fprintf(3).
    fn fprintf => vfprintf, "2", "rdx";
    /// dprintf(3).
    fn dprintf => vdprintf, "2", "rdx";
    /// printf(3), with a check of the format.
    fn __printf_chk => __vprintf_chk, "2", "rdx";
    /// fprintf(3), with a check of the format.
    fn __fprintf_chk => __vfprintf_chk, "3", "rcx";
    /// dprintf(3), with a check of the format.
    fn __dprintf_chk => __vdprintf_chk, "3", "rcx";
}
