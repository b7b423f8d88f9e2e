//! Functions that are passed on by a jump, on an untouched stack: the next one sees who has called, and may come back elsewhere.

/// `before` gets the first three words of the call, and answers with the next function's address, or null.
#[macro_export]
macro_rules! passed_on {
    ($($(#[$doc:meta])* fn $name:ident after $before:ident
        as $next:ident = $c_name:literal $(unless $($condition:literal),+ => $instead:ident)?;)*) => {$(
        #[cfg_attr(feature = "preload", unsafe(link_section = "precache_next"))]
        #[used]
        static $next: $crate::next::Next = $crate::next::Next::new($c_name);

        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            // Three words pushed align the stack for the call (System V ABI, 3.2.2).
            core::arch::naked_asm!(
                ".cfi_startproc",
                "endbr64",
                $($($condition,)+)?
                "push rdi",
                "push rsi",
                "push rdx",
                ".cfi_adjust_cfa_offset 24",
                "call {before}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_adjust_cfa_offset -24",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                "2: ret",
                ".cfi_endproc",
                before = sym $before,
                $(instead = sym $instead,)?
            )
        }
    )*};
}
