//! execl(3), execlp(3) and execle(3), whose arguments come one by one: laid out as the list that execv(3) takes.
//!
//! A function with a variable number of arguments cannot be written in stable Rust: these begin in assembly.

use super::programs::{execv, execve, execvp};
use crate::preload::List;
use core::ffi::{c_char, c_int};

/// Calls that give their arguments, as a list, to `$listed`.
macro_rules! one_by_one {
    ($($(#[$doc:meta])* fn $name:ident => $listed:ident;)*) => {$(
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
                // The return address lies between the arguments in registers and those on the stack: it is put below, so
                // that they lie in one row, the null pointer at the end included (System V ABI 3.2.3).
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rax",
                ".cfi_def_cfa_offset 48",
                // Register 16: the return address (System V ABI, figure 3.36).
                ".cfi_offset 16, -48",
                "call {listed}",
                "pop rdx",
                "add rsp, 40",
                "push rdx",
                ".cfi_def_cfa_offset 8",
                ".cfi_offset 16, -8",
                "ret",
                ".cfi_endproc",
                listed = sym $listed,
            )
        }
    )*};
}

one_by_one! {
    /// execl(3).
    fn execl => execv;
    /// execlp(3).
    fn execlp => execvp;
    /// execle(3).
    fn execle => execv_with_environment;
}

/// The environment comes after the null pointer at the end of the arguments.
unsafe extern "C" fn execv_with_environment(path: *const c_char, arguments: List) -> c_int {
    // SAFETY: the list ends with null, as execle(3) demands; the word after it is the last argument of that.
    unsafe {
        let mut end = arguments;
        while !(*end).is_null() {
            end = end.add(1);
        }
        execve(path, arguments, *end.add(1) as List)
    }
}
