//! Calls that are given paths and structures, which are short: each word that may point into an armed mapping is taken to do
//! so, whatever it means.

use super::buffers::with;
use crate::buffers::{Buffers, Words};
use core::ffi::c_int;

/// Any of these calls: words in registers, as many as there are; what one does not take is left unread.
pub type Call = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> isize;

/// Makes `call` with these words. It answers `failed` if it fails: -1 in the lower half of a word, or null.
#[inline(never)] // One copy is enough for all calls: they take longer than their copies would save.
pub fn make(words: &Words, call: Call, failed: isize) -> isize {
    let has_failed = move |result: isize| if failed == 0 { result == 0 } else { result as c_int == -1 };
    let call = move || {
        let &[a, b, c, d, e] = words;
        // SAFETY: the program's own call.
        let result = unsafe { call(a, b, c, d, e) };
        if has_failed(result) { -1 } else { result }
    };
    // SAFETY: the words are the caller's, until this returns.
    match with(unsafe { Buffers::words(words) }, call) {
        -1 => failed,
        result => result,
    }
}

/// Calls with at most five words, and what they answer if they fail.
#[macro_export]
macro_rules! by_words {
    ($($(#[$doc:meta])* fn $name:ident($($word:ident: $type:ty),*) -> $result:ty, missing $missing:expr;)*) => {$(
        $crate::interpose! {
            $(#[$doc])*
            fn $name($($word: $type),*) -> $result; missing $missing; |next| {
                let mut words = [0; 5];
                let given = [$($word as usize),*];
                words[..given.len()].copy_from_slice(&given);
                // SAFETY: integers and pointers are words in registers, to whoever reads them and in the result (System V
                // ABI for x86-64, 3.2.3; AAPCS64, 6.4 and 6.5).
                let call = unsafe {
                    core::mem::transmute::<unsafe extern "C" fn($($type),*) -> $result, $crate::interpose::words::Call>(next)
                };
                let failed: $result = $missing;
                $crate::interpose::words::make(&words, call, failed as isize) as $result
            }
        }
    )*};
}
