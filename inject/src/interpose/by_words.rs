//! Functions for calls with integers and pointers alone, at most six of them: some two hundred. One with at most five is two
//! instructions, which leave the words where they are; it needs no entry in the tables of unwinders, for it has no frame and is
//! never returned to.

use super::words::Failure;
use core::arch::naked_asm;

/// Goes on with a call whose words are in registers as the program has put them there, and whose [`Next`](crate::next::Next) is where a
/// sixth would be: words that it does not take are zero from here on.
///
/// # Safety
/// It is to be jumped to, by a function that stands in front of the one of [`by_words!`](crate::by_words).
#[unsafe(naked)]
pub unsafe extern "C" fn take<F: Failure, const COUNT: usize>() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".if {count} < 2", "xor esi, esi", ".endif",
        ".if {count} < 3", "xor edx, edx", ".endif",
        ".if {count} < 4", "xor ecx, ecx", ".endif",
        ".if {count} < 5", "xor r8d, r8d", ".endif",
        "jmp {make}",
        count = const COUNT,
        make = sym <F as Failure>::make,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".if {count} < 2", "mov x1, xzr", ".endif",
        ".if {count} < 3", "mov x2, xzr", ".endif",
        ".if {count} < 4", "mov x3, xzr", ".endif",
        ".if {count} < 5", "mov x4, xzr", ".endif",
        "b {make}",
        count = const COUNT,
        make = sym <F as Failure>::make,
    );
}

/// The instructions of such a function.
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! go_on {
    ($next:path, $take:path) => {
        core::arch::naked_asm!("lea r9, [rip + {next}]", "jmp {take}", next = sym $next, take = sym $take)
    };
}

/// The instructions of such a function.
#[cfg(target_arch = "aarch64")]
#[macro_export]
macro_rules! go_on {
    ($next:path, $take:path) => {
        core::arch::naked_asm!(
            "adrp x5, {next}",
            "add x5, x5, :lo12:{next}",
            "b {take}",
            next = sym $next,
            take = sym $take,
        )
    };
}

/// Calls with at most six integers and pointers, and nothing else.
#[macro_export]
macro_rules! by_words {
    ($($(#[$doc:meta])* fn $name:ident $words:tt -> $result:ty;)*) => {$(
        $crate::by_words!(one $(#[$doc])* $name $words $result);
    )*};
    // Six: no register is left.
    (one $(#[$doc:meta])* $name:ident ($a:ident: $at:ty, $b:ident: $bt:ty, $c:ident: $ct:ty, $d:ident: $dt:ty, $e:ident: $et:ty,
        $f:ident: $ft:ty) $result:ty) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($a: $at, $b: $bt, $c: $ct, $d: $dt, $e: $et, $f: $ft) -> $result {
            $crate::next_of!($name);
            let words = [$a as usize, $b as usize, $c as usize, $d as usize, $e as usize, $f as usize];
            $crate::interpose::words::pass(&NEXT, words)
        }
    };
    (one $(#[$doc:meta])* $name:ident ($($word:ident: $type:ty),*) $result:ty) => {
        mod $name {
            $crate::next_of!(pub(super) $name);
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($word: $type),*) -> $result {
            $crate::go_on!(
                $name::NEXT,
                $crate::interpose::by_words::take::<
                    <$result as $crate::interpose::words::Answer>::Failure,
                    { [$(stringify!($word)),*].len() },
                >
            )
        }
    };
}
