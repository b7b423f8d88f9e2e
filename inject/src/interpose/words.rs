//! Calls that are given paths and structures, which are short: each word that points into an armed mapping is taken to be an
//! address, whatever it means.

use super::buffers::with;
use crate::buffers::{Buffers, Words};
use crate::in_use::are_calls_watched;
use crate::next::Next;
use crate::registry;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

/// Any of these calls: words in registers, as many as there are; what one does not take is left unread.
pub type Call = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;

/// How such a call says that it has failed.
pub trait Failure {
    const ANSWER: isize;

    /// Makes the call that `next` stands for, with at most five words.
    extern "C" fn make(a: usize, b: usize, c: usize, d: usize, e: usize, next: &Next) -> isize;
}

/// By -1 in the lower half of a word.
pub enum MinusOne {}

impl Failure for MinusOne {
    const ANSWER: isize = -1;

    #[inline(never)] // One copy is enough for all calls; so below.
    extern "C" fn make(a: usize, b: usize, c: usize, d: usize, e: usize, next: &Next) -> isize {
        // Nearly always: before anything is put into memory.
        if !registry::could_any_lie_in([a, b, c, d, e])
            && !are_calls_watched()
            && let Some(next) = next.known()
        {
            // SAFETY: as in `make`; the program's own call.
            return unsafe { core::mem::transmute::<NonNull<c_void>, Call>(next)(a, b, c, d, e, 0) };
        }
        near(a, b, c, d, e, next)
    }
}

/// By null.
pub enum Null {}

impl Failure for Null {
    const ANSWER: isize = 0;

    #[inline(never)]
    extern "C" fn make(a: usize, b: usize, c: usize, d: usize, e: usize, next: &Next) -> isize {
        make(next, &[a, b, c, d, e, 0], 0)
    }
}

/// The same between armed mappings, of which there are few: still in registers.
#[inline(never)]
extern "C" fn near(a: usize, b: usize, c: usize, d: usize, e: usize, next: &Next) -> isize {
    if registry::lie_between_few([a, b, c, d, e])
        && !are_calls_watched()
        && let Some(next) = next.known()
    {
        // SAFETY: as above.
        return unsafe { core::mem::transmute::<NonNull<c_void>, Call>(next)(a, b, c, d, e, 0) };
    }
    looked_at(a, b, c, d, e, next)
}

#[inline(never)] // All of it is on the stack there.
extern "C" fn looked_at(a: usize, b: usize, c: usize, d: usize, e: usize, next: &Next) -> isize {
    make(next, &[a, b, c, d, e, 0], -1)
}

/// What such a call answers.
pub trait Answer {
    type Failure: Failure;

    fn of(result: isize) -> Self;
}

impl Answer for c_int {
    type Failure = MinusOne;

    fn of(result: isize) -> Self {
        result as Self
    }
}

impl Answer for isize {
    type Failure = MinusOne;

    fn of(result: isize) -> Self {
        result
    }
}

impl Answer for *mut c_void {
    type Failure = Null;

    fn of(result: isize) -> Self {
        result as Self
    }
}

/// Makes the call that `next` stands for, with these words.
#[inline(always)]
pub fn pass<R: Answer, const COUNT: usize>(next: &'static Next, given: [usize; COUNT]) -> R {
    const { assert!(COUNT <= 6, "no call takes more") };
    let word = |at: usize| given.get(at).copied().unwrap_or(0);
    R::of(if COUNT == 6 {
        make(next, &core::array::from_fn(word), R::Failure::ANSWER)
    } else {
        R::Failure::make(word(0), word(1), word(2), word(3), word(4), next)
    })
}

/// Makes the call that `next` stands for, which answers `failure` if it fails.
#[inline(never)]
pub fn make(next: &Next, words: &Words, failure: isize) -> isize {
    let Some(next) = next.address() else { return failure };
    // SAFETY: integers and pointers are words in registers, to whoever reads them and in the result (System V ABI for x86-64,
    // 3.2.3; AAPCS64, 6.4 and 6.5), and the functions that come here take and return nothing else.
    let next = unsafe { core::mem::transmute::<NonNull<c_void>, Call>(next) };
    let has_failed = move |result: isize| if failure == 0 { result == 0 } else { result as c_int == -1 };
    let call = move || {
        let &[a, b, c, d, e, f] = words;
        // SAFETY: the program's own call.
        let result = unsafe { next(a, b, c, d, e, f) };
        if has_failed(result) { -1 } else { result }
    };
    // SAFETY: the words are the caller's, until this returns.
    match with(unsafe { Buffers::words(words) }, call) {
        -1 => failure,
        result => result,
    }
}
