//! The lock-free protocols of the injected library, compiled from its own files with loom's atomics: `tests/` runs them in
//! every order of their steps that at most a few preemptions lead to, with every value that the memory model lets a load
//! find.
//!
//! Each model has a sabotaged twin that must fail: a model that cannot fail shows nothing.

/// What the files take for `core::sync::atomic`.
mod atomic;

#[path = "../../src/fork_gate/gate.rs"]
pub mod gate;
#[path = "../../src/registry/lifecycle.rs"]
pub mod lifecycle;
#[path = "../../contract/src/ring.rs"]
pub mod ring;
#[path = "../../src/pins/shared.rs"]
pub mod shared;
#[path = "../../contract/src/sleeper.rs"]
pub mod sleeper;

pub use atomic::{AtomicU32, AtomicU64, AtomicUsize};

/// Runs a model in every order of its steps that three preemptions lead to.
pub fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(3);
    bounded.check(model);
}
