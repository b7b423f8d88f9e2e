//! The library inside the reader: checkpoints, their SIGSEGV handler and the interposed calls.
//!
//! What runs where: [`interpose`] and [`arming`] in the program's own calls; [`handler`] in signal context, with
//! [`curtain`] as its pure policy and [`protect`] as its hands. [`registry`] says which memory may be touched at all,
//! [`handover`] makes it known to the optimizer.

#![cfg_attr(not(test), no_std)]

pub mod advice;
pub mod arming;
/// Where atomics come from. `inject/models` compiles files of this crate with others.
mod atomic {
    pub use core::sync::atomic::*;
}
pub mod buffers;
pub mod curtain;
pub mod doing;
pub mod executable;
mod extent;
pub mod fork_gate;
mod glance;
pub mod handler;
pub mod handover;
mod in_use;
pub mod interpose;
pub mod lockfile;
pub mod mapped;
mod maps;
pub mod next;
pub mod owner;
mod parts;
pub mod past_libc;
mod peek;
pub mod pins;
mod place;
pub mod populating;
pub mod preload;
pub mod protect;
pub mod registry;
#[cfg(feature = "sabotage")]
mod sabotage;
pub mod settings;
#[cfg(feature = "preload")]
mod start;
mod symbols;
pub mod sys;
mod valgrind;
