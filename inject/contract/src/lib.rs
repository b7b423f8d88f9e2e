//! What the injected library and the optimizer agree on.
//!
//! The reader creates one shared [`Segment`](segment::Segment) and hands it over by an
//! [`Enrolment`](enrolment::Enrolment); from then on the two sides talk through its atomics alone.
//! Everything here is plain data with a fixed layout: no allocation, no locks, no system calls, so that signal
//! context may use all of it.
//!
//! Both sides treat what the other wrote as a stranger's word: an index is checked before it is used and a value out
//! of range ends the acceleration of that reader, nothing else.

#![no_std]

/// Where atomics come from. `inject/models` compiles files of this crate with others.
mod atomic {
    pub use core::sync::atomic::*;
}
pub mod enrolment;
pub mod presence;
pub mod ring;
pub mod segment;
pub mod settings;
pub mod sleeper;
pub mod uninjected;

/// Changes with every change of layout or meaning. A peer with another version is refused, and the program runs alone.
pub const VERSION: u32 = 16;

/// What the injected library opens at a time while a reader's pattern is not known: what one fault maps around itself
/// (`fault_around_bytes`). The optimizer tells new readers by it.
pub const STEP: u64 = 64 << 10;

/// Steps that a reader of unknown order goes one by one: what it reads in one piece is seen exactly up to a mebibyte.
pub const STEPS: u32 = 16;

/// How far from the start of one record the next may begin, for a reader that skips.
pub const REACH: u64 = 32 << 20;

/// Size of a page. Checkpoints are pages; x86-64 has this one size for ordinary mappings.
pub const PAGE: u64 = 4096;
