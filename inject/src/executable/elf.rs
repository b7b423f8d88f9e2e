//! What an ELF file tells about taking a library that is not its own.

use super::is_program;
use crate::sys;
use core::ffi::c_int;
use core::mem::{MaybeUninit, size_of, size_of_val};
use precache_contract::uninjected::Uninjected;

/// Of its segments, so many are looked at: those that matter come first, and stacks may be small.
const SEGMENTS: usize = 24;

/// Of the path of its loader, so many bytes are read.
const LOADER: usize = 256;

/// Where the loader of this machine's C library is, and the version of that which our library needs: its loader has it, too.
const LOADER_HERE: &[u8] =
    if cfg!(target_arch = "aarch64") { b"/lib/ld-linux-aarch64.so.1" } else { b"/lib64/ld-linux-x86-64.so.2" };
const VERSION: &[u8] = b"\0GLIBC_2.34\0";

/// Of the names in a program, so many bytes are looked through.
const NAMES: u64 = 4 << 20;

/// Structures of the ELF format from this offset on: as many as there are, and as there is room for.
fn read<T: Copy>(file: c_int, offset: u64, room: &mut [MaybeUninit<T>]) -> sys::Result<&[T]> {
    // SAFETY: as many bytes as the room has, all of them zero so far.
    let bytes = unsafe { core::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<u8>(), size_of_val(room)) };
    let count = sys::read_at(file, bytes, offset)?.min(size_of_val(room)) / size_of::<T>();
    // SAFETY: callers ask for structures of integers, for which all bytes are values.
    Ok(unsafe { core::slice::from_raw_parts(room.as_ptr().cast::<T>(), count) })
}

/// Room for so many.
const fn room<T, const COUNT: usize>() -> [MaybeUninit<T>; COUNT] {
    [const { MaybeUninit::zeroed() }; COUNT]
}

/// Why the loader will not give our library to this program, or it would not start with it.
pub fn reason_against(file: c_int) -> Option<Uninjected> {
    const WORDS_OF_64_BITS: u8 = 2;
    const MACHINE: u16 = if cfg!(target_arch = "aarch64") { libc::EM_AARCH64 } else { libc::EM_X86_64 };
    let mut header = room::<libc::Elf64_Ehdr, 1>();
    let Ok(header) = read(file, 0, &mut header) else {
        // What else cannot be read exec refuses.
        let why = if gains_rights(file) { Uninjected::Privileged } else { Uninjected::Unseen };
        return is_program(file).then_some(why);
    };
    let header = header.first().filter(|header| header.e_ident.starts_with(b"\x7fELF"))?;
    if header.e_ident[libc::EI_CLASS] != WORDS_OF_64_BITS || header.e_machine != MACHINE {
        return Some(Uninjected::OtherMachine);
    }
    if gains_rights(file) {
        return Some(Uninjected::Privileged);
    }
    let mut segments = room::<libc::Elf64_Phdr, SEGMENTS>();
    let segments = read(file, header.e_phoff, segments.get_mut(..usize::from(header.e_phnum.min(SEGMENTS as u16)))?)
        .unwrap_or_default();
    let names = Dynamic::of(file, segments);
    let Some(loader) = segments.iter().find(|segment| segment.p_type == libc::PT_INTERP) else {
        // A loader can be executed, too, and runs the program that it is given: it has a name as libraries have.
        return (!names.is_some_and(|names| names.is_library)).then_some(Uninjected::Static);
    };
    if is_foreign(file, loader.p_offset) {
        return Some(Uninjected::OtherLibc);
    }
    any_name(file, names?.names(segments)?, has_runtime).then_some(Uninjected::Sanitizer)
}

/// Whether exec makes the process more than its caller, or another: the loader trusts no environment then (ld.so(8)).
#[inline(never)] // Its buffer must not weigh on the stacks of others.
fn gains_rights(file: c_int) -> bool {
    const BY_GROUP: u32 = libc::S_ISGID | libc::S_IXGRP;
    let Ok(status) = sys::file_status(file) else { return false };
    let (user, group) = sys::real_user_and_group();
    let other_user = status.st_mode & libc::S_ISUID != 0 && status.st_uid != user;
    let other_group = status.st_mode & BY_GROUP == BY_GROUP && status.st_gid != group;
    (other_user || other_group || user != 0 && sys::has_capabilities(file)) && !sys::is_kept_from_rights()
}

/// Whether the loader whose path is at this offset is that of another C library than GNU's (musl's, uClibc's, Android's), or of
/// an older one than our library needs.
#[inline(never)] // Its buffer must not weigh on the stacks of others.
fn is_foreign(file: c_int, offset: u64) -> bool {
    // One byte more, which stays zero, ends the path.
    let mut buffer = [0u8; LOADER + 1];
    let length = sys::read_at(file, &mut buffer[..LOADER], offset).unwrap_or(0);
    let path = buffer.get(..length).unwrap_or_default().split(|&byte| byte == 0).next().unwrap_or_default();
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if name.starts_with(b"ld-musl") || name.starts_with(b"linker") || name.windows(6).any(|part| part == b"uClibc") {
        return true;
    }
    if path == LOADER_HERE {
        return false;
    }
    // SAFETY: a path that ends in a zero byte. What cannot be opened exec refuses.
    let Ok(loader) = (unsafe { sys::open_to_look(libc::AT_FDCWD, buffer.as_ptr().cast(), 0) }) else { return false };
    names_of(loader.0).is_some_and(|names| {
        !any_name(loader.0, names, |piece| piece.windows(VERSION.len()).any(|part| part == VERSION))
    })
}

/// Where this file keeps its names: see [`Dynamic::names`].
#[inline(never)] // As above.
fn names_of(file: c_int) -> Option<(u64, u64)> {
    let (mut header, mut segments) = (room::<libc::Elf64_Ehdr, 1>(), room::<libc::Elf64_Phdr, SEGMENTS>());
    let header = read(file, 0, &mut header).ok()?.first()?;
    let segments = read(file, header.e_phoff, segments.get_mut(..usize::from(header.e_phnum.min(SEGMENTS as u16)))?)
        .unwrap_or_default();
    Dynamic::of(file, segments)?.names(segments)
}

/// What the dynamic loader is told of the file (elf(5)).
struct Dynamic {
    names_address: u64,
    names_length: u64,
    /// It has a name of its own (DT_SONAME).
    is_library: bool,
}

impl Dynamic {
    #[inline(never)] // As above.
    fn of(file: c_int, segments: &[libc::Elf64_Phdr]) -> Option<Self> {
        const NAMES_ADDRESS: u64 = 5;
        const NAMES_LENGTH: u64 = 10;
        const OWN_NAME: u64 = 14;
        /// Entries that are read at a time, and how often.
        const PIECE: usize = 16;
        const PIECES: u64 = 16;
        let dynamic = segments.iter().find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
        let mut found = Self { names_address: 0, names_length: 0, is_library: false };
        'entries: for piece in 0..PIECES {
            let mut entries = room::<[u64; 2], PIECE>();
            let offset = dynamic.p_offset.wrapping_add(piece * size_of_val(&entries) as u64);
            for entry in read(file, offset, &mut entries).unwrap_or_default() {
                match *entry {
                    [0, _] => break 'entries,
                    [NAMES_ADDRESS, value] => found.names_address = value,
                    [NAMES_LENGTH, value] => found.names_length = value,
                    [OWN_NAME, _] => found.is_library = true,
                    _ => {}
                }
            }
        }
        Some(found)
    }

    /// Where the file keeps the names that the loader needs, libraries and symbols: offset and length.
    fn names(&self, segments: &[libc::Elf64_Phdr]) -> Option<(u64, u64)> {
        let loaded = |segment: &&libc::Elf64_Phdr| {
            let end = segment.p_vaddr.saturating_add(segment.p_filesz);
            segment.p_type == libc::PT_LOAD && (segment.p_vaddr..end).contains(&self.names_address)
        };
        let segment = segments.iter().find(loaded)?;
        let offset = segment.p_offset.wrapping_add(self.names_address - segment.p_vaddr);
        Some((offset, self.names_length.min(NAMES)))
    }
}

/// Whether a piece of the names, from this offset on and so long, has what is looked for.
#[inline(never)] // Its buffer must not weigh on the stacks of others.
fn any_name(file: c_int, (start, length): (u64, u64), is_there: fn(&[u8]) -> bool) -> bool {
    /// The longest name looked for, with what is before and after.
    const OVERLAP: usize = 32;
    let mut buffer = [0u8; 1024];
    let (mut at, end) = (start, start.saturating_add(length));
    while at < end {
        let wanted = (end - at).min(buffer.len() as u64) as usize;
        let Some(piece) = buffer.get_mut(..wanted) else { return false };
        let Ok(got @ 1..) = sys::read_at(file, piece, at) else { return false };
        if is_there(piece.get(..got).unwrap_or_default()) {
            return true;
        }
        if got < wanted || got <= OVERLAP {
            break;
        }
        at += (got - OVERLAP) as u64;
    }
    false
}

/// `libasan.so.8`, `libclang_rt.tsan-x86_64.so`, `__msan_init` and their like, in the names of a program or in LD_PRELOAD.
#[inline(never)] // One copy is enough for all who call this.
pub fn has_runtime(names: &[u8]) -> bool {
    let at = (0..names.len().saturating_sub(3)).filter(|&at| names[at..].starts_with(b"san"));
    at.into_iter().any(|at| {
        let (before, after) = (&names[..at], &names[at + 3..]);
        let kind = [b"hwa".as_slice(), b"a", b"l", b"m", b"t"].into_iter().find_map(|kind| before.strip_suffix(kind));
        kind.is_some_and(|before| {
            let name = before.strip_suffix(b"clang_rt.").unwrap_or(before).strip_suffix(b"lib");
            name.is_some_and(|before| matches!(before.last(), None | Some(0 | b'/' | b':' | b' ')))
                && matches!(after.first(), Some(b'.' | b'-' | b'_'))
                || before.ends_with(b"\0__") && after.starts_with(b"_init\0")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_name() {
        for names in ["\0libasan.so.8\0", "\0libc.so.6\0libclang_rt.hwasan-x86_64.so\0", "\0puts\0__tsan_init\0"] {
            assert!(has_runtime(names.as_bytes()), "{names:?}");
        }
        for names in
            ["\0libc.so.6\0", "\0libubsan.so.1\0", "\0libasantiago.so\0", "\0libsane.so.1\0", "\0__ubsan_init\0", "san"]
        {
            assert!(!has_runtime(names.as_bytes()), "{names:?}");
        }
    }

    #[test]
    fn preloaded_runtimes_are_known() {
        for preloaded in
            ["/usr/lib/gcc/x86_64-linux-gnu/12/libasan.so", "libtsan.so.2", "/a.so:libhwasan.so", "/a.so liblsan.so"]
        {
            assert!(has_runtime(preloaded.as_bytes()), "{preloaded}");
        }
        for preloaded in ["/usr/lib/libasan/libc.so.6", "/lib/libeatmydata.so", ""] {
            assert!(!has_runtime(preloaded.as_bytes()), "{preloaded}");
        }
    }
}
