//! What another function is to do. A reference to `dyn Fn` would have a table for each closure, which the loader relocates.

use core::ffi::c_void;
use core::marker::PhantomData;

/// A closure whose type is forgotten: given `T`, it answers `R`.
pub struct Doing<'a, T, R> {
    make: unsafe fn(*const c_void, T) -> R,
    of: *const c_void,
    closure: PhantomData<&'a ()>,
}

impl<T, R> Clone for Doing<'_, T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, R> Copy for Doing<'_, T, R> {}

impl<'a, T, R> Doing<'a, T, R> {
    pub fn by<F: Fn(T) -> R>(closure: &'a F) -> Self {
        // SAFETY: it is given `of`, which is such a closure, and lives as long as this (`with`).
        let make = |of: *const c_void, given| unsafe { (*of.cast::<F>())(given) };
        Self { make, of: (&raw const *closure).cast(), closure: PhantomData }
    }

    pub fn with(self, given: T) -> R {
        // SAFETY: `of` is the closure that `make` was made for, and is borrowed for as long as this lives.
        unsafe { (self.make)(self.of, given) }
    }
}
