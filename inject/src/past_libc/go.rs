//! Go's runtime makes its system calls itself. It is told by what it leaves in a program or library.

use crate::next;
use crate::symbols::Symbols;
use core::ffi::CStr;

/// Whether the object has a Go runtime.
///
/// # Safety
/// `info` must describe a loaded object.
pub unsafe fn has_runtime(info: &libc::dl_phdr_info) -> bool {
    // SAFETY: the caller's promise.
    unsafe { has_note(info) || has_function(info) }
}

/// # Safety
/// As [`has_runtime`].
unsafe fn headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if info.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
}

/// Whether its runtime calls C, or is called by it: under this name it tells C where the stack of a goroutine
/// ends (runtime/cgo).
///
/// # Safety
/// As [`has_runtime`].
unsafe fn has_function(info: &libc::dl_phdr_info) -> bool {
    const NAME: &CStr = c"_cgo_topofstack";
    const HASH: u32 = next::hash(NAME);
    // SAFETY: the caller's promise.
    unsafe { headers(info) }.iter().filter(|header| header.p_type == libc::PT_DYNAMIC).any(|header| {
        let dynamic = info.dlpi_addr.wrapping_add(header.p_vaddr) as *const [usize; 2];
        // SAFETY: the segment is loaded, and stays as long as the object.
        unsafe { Symbols::of(info.dlpi_addr as usize, dynamic) }.symbol(NAME, HASH).is_some()
    })
}

/// Whether Go's linker has left a note of type 4 by the name of `Go` (`.note.go.buildid`): not if it is
/// told to leave none (`-ldflags=-buildid=`).
///
/// # Safety
/// As [`has_runtime`].
unsafe fn has_note(info: &libc::dl_phdr_info) -> bool {
    const GO_BUILD_ID: u32 = 4;
    // SAFETY: the caller's promise.
    let headers = unsafe { headers(info) };
    headers.iter().filter(|header| header.p_type == libc::PT_NOTE && header.p_memsz >= 16).any(|header| {
        let address = info.dlpi_addr.wrapping_add(header.p_vaddr) as *const u8;
        // SAFETY: the segment is loaded, and stays as long as the object; the length is the segment's own.
        let mut notes = unsafe { core::slice::from_raw_parts(address, header.p_memsz as usize) };
        // Each note: lengths of name and content, a type; then both, padded to four bytes (elf(5)).
        while let Some((head, rest)) = notes.split_first_chunk::<12>() {
            let word = |at: usize| {
                let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
                u32::from_ne_bytes(bytes)
            };
            if word(8) == GO_BUILD_ID && rest.starts_with(b"Go\0\0") {
                return true;
            }
            let length = (word(0) as usize).next_multiple_of(4) + (word(4) as usize).next_multiple_of(4);
            notes = rest.get(length..).unwrap_or_default();
        }
        false
    })
}
