//! The exported functions that stand in front of libc's, by subject. Each does its part and leaves the rest to the
//! next library, with its result and errno.

pub mod administering;
pub mod advice;
pub mod buffers;
pub mod by_words;
pub mod deaths;
#[cfg(target_arch = "x86_64")]
pub mod execl;
pub mod files;
pub mod given;
#[cfg(target_arch = "x86_64")]
pub mod jump;
pub mod lent;
#[cfg(target_arch = "x86_64")]
pub mod libraries;
pub mod limits;
pub mod memory;
pub mod messages;
pub mod paths;
#[cfg(target_arch = "x86_64")]
pub mod print;
pub mod programs;
#[cfg(target_arch = "x86_64")]
pub mod raw;
pub mod signals;
pub mod stdio;
pub mod structures;
pub mod words;
