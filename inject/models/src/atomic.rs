//! Loom's atomics, with sequential consistency made up for.
//!
//! Loom takes `SeqCst` accesses for `AcqRel` ones, so a load could find an old value in orders that cannot happen. A
//! read-modify-write always finds the newest: here, sequentially consistent loads are such, and so are stores, that they
//! have one order with these.
//!
//! A clone is the same word once more: a model of fork looks at words that a type keeps to itself.

use loom::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::Arc;

pub use loom::sync::atomic::{Ordering, fence};

macro_rules! atomic {
    ($($name:ident: $word:ty;)*) => {$(
        #[derive(Clone, Debug)]
        pub struct $name(Arc<loom::sync::atomic::$name>);

        impl $name {
            pub fn new(value: $word) -> Self {
                Self(Arc::new(loom::sync::atomic::$name::new(value)))
            }

            pub fn load(&self, order: Ordering) -> $word {
                match order {
                    SeqCst => self.0.fetch_or(0, Acquire),
                    _ => self.0.load(order),
                }
            }

            pub fn store(&self, value: $word, order: Ordering) {
                self.0.swap(value, order);
            }

            pub fn swap(&self, value: $word, order: Ordering) -> $word {
                self.0.swap(value, order)
            }

            pub fn fetch_add(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_add(value, order)
            }

            pub fn fetch_sub(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_sub(value, order)
            }

            pub fn fetch_or(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_or(value, order)
            }

            pub fn fetch_and(&self, value: $word, order: Ordering) -> $word {
                self.0.fetch_and(value, order)
            }

            pub fn fetch_update(
                &self,
                order: Ordering,
                or: Ordering,
                next: impl FnMut($word) -> Option<$word>,
            ) -> Result<$word, $word> {
                self.0.fetch_update(order, or, next)
            }

            pub fn compare_exchange(&self, old: $word, new: $word, order: Ordering, or: Ordering) -> Result<$word, $word> {
                self.0.compare_exchange(old, new, order, or)
            }

            pub fn compare_exchange_weak(&self, old: $word, new: $word, order: Ordering, or: Ordering) -> Result<$word, $word> {
                self.0.compare_exchange_weak(old, new, order, or)
            }
        }
    )*};
}

atomic! {
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicUsize: usize;
}
