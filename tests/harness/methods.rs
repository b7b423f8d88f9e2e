//! The ways of protecting pages, and whether a run was what it was meant to be.

use crate::runs::Report;
use crate::storage::{lacking, scratch};
use std::sync::OnceLock;

/// Both ways, as options.
pub const METHODS: [&str; 2] = [GUARD, MPROTECT];

pub const GUARD: &str = "--protect=guard";
pub const MPROTECT: &str = "--protect=mprotect";

/// `MADV_GUARD_INSTALL` (Linux 6.13).
const GUARD_INSTALL: libc::c_int = 102;

/// Fails where pages were not protected as this option demands: a run with guards that has none tests nothing of them. Not where
/// the kernel has none for files, which is said; nor where a mapping was gone before the optimizer looked at it, and may have had some.
pub fn must_be_in_use(option: &str, report: &Report) -> Result<(), String> {
    let has = |method: &str| report.mappings().any(|mapping| mapping["method"] == method);
    match option {
        MPROTECT if has("guard") => Err("there were guards".into()),
        GUARD if !has("guard") && !has("unknown") && has_guards() => Err("there was no guard".into()),
        _ => Ok(()),
    }
}

/// Whether the kernel has guard regions in mappings of files (Linux 6.15).
fn has_guards() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let file = tempfile::tempfile_in(scratch()).expect("a file");
        file.set_len(4096).expect("a page");
        // SAFETY: a file of our own, which nobody cuts short.
        let map = unsafe { memmap2::Mmap::map(&file) }.expect("it is mapped");
        // SAFETY: nobody looks at this memory.
        let has = unsafe { libc::madvise(map.as_ptr().cast_mut().cast(), map.len(), GUARD_INSTALL) } == 0;
        if !has {
            lacking("guard regions in mappings of files (Linux 6.15)");
        }
        has
    })
}
