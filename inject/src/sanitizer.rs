//! Whether a program that is about to be executed is a sanitizer build: its runtime refuses to start behind another
//! library, so it is not given ours. In a child of vfork, too: nothing but system calls and the stack.

use crate::{settings, sys};
use core::ffi::{CStr, c_char, c_int};
use core::mem::{MaybeUninit, size_of, size_of_val};

/// What names a program: as execve(2), execvp(3), execveat(2) or fexecve(3) take it.
#[derive(Clone, Copy)]
pub enum Target {
    At(c_int, *const c_char),
    Named(*const c_char),
    File(c_int),
}

impl Target {
    /// As execveat(2) takes it: with AT_EMPTY_PATH, and an empty path, the descriptor itself is meant.
    ///
    /// # Safety
    /// As for that call.
    pub unsafe fn at(folder: c_int, path: *const c_char, flags: c_int) -> Self {
        if flags & libc::AT_EMPTY_PATH == 0 {
            return Self::At(folder, path);
        }
        // SAFETY: the caller's promise.
        match unsafe { sys::open_to_look(folder, path) } {
            Err(sys::Error::ENOENT) => Self::File(folder),
            _ => Self::At(folder, path),
        }
    }
}

pub type List = *const *const c_char;

/// Entries of an environment that is changed, and bytes of LD_PRELOAD; a longer one is left as it is.
const ENTRIES: usize = 2048;
const PRELOAD: usize = 4096;

/// Scripts whose interpreters are scripts: as many as the kernel follows (`exec_binprm`), and the length of their first
/// lines (`BINPRM_BUF_SIZE`).
const INTERPRETERS: usize = 5;
const FIRST_LINE: usize = 256;

/// Of the names in a program, so many bytes are looked through.
const NAMES: u64 = 4 << 20;

const VARIABLE: &[u8] = b"LD_PRELOAD=";

/// Calls `execute` with the environment that the program is to get.
///
/// # Safety
/// `environment` must be null or a list of C strings that ends with null, and `target` what the call of its kind takes.
pub unsafe fn with_environment(target: Target, environment: List, execute: &dyn Fn(List) -> c_int) -> c_int {
    if cfg!(feature = "sabotage-sanitizers-unrecognized") {
        return execute(environment);
    }
    // SAFETY: the caller's promise.
    match unsafe { entry(environment) } {
        // SAFETY: as above.
        Some((at, preload)) if has_runtime(preload) || unsafe { is_sanitizer_build(target) } => unsafe {
            without_library(environment, at, preload, execute)
        },
        _ => execute(environment),
    }
}

/// The entry that preloads our library: its place and its value.
unsafe fn entry<'a>(environment: List) -> Option<(usize, &'a [u8])> {
    settings::get()?;
    if environment.is_null() {
        return None;
    }
    (0..)
        // SAFETY: the caller's promise: before the end.
        .map(|at| (at, unsafe { *environment.add(at) }))
        .take_while(|(_, entry)| !entry.is_null())
        // SAFETY: the caller's promise: C strings.
        .filter_map(|(at, entry)| Some((at, unsafe { CStr::from_ptr(entry) }.to_bytes().strip_prefix(VARIABLE)?)))
        .find(|(_, value)| parts(value).any(|part| part == settings::library()))
}

fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| b": ".contains(byte)).filter(|part| !part.is_empty())
}

/// # Safety
/// As [`with_environment`]; the entry `at` is LD_PRELOAD with the value `preload`.
#[inline(never)] // Its buffers must not weigh on the stacks of others.
unsafe fn without_library(environment: List, at: usize, preload: &[u8], execute: &dyn Fn(List) -> c_int) -> c_int {
    let mut value = [0u8; PRELOAD];
    let mut length = VARIABLE.len();
    value[..length].copy_from_slice(VARIABLE);
    for part in parts(preload).filter(|part| *part != settings::library()) {
        let separator = usize::from(length > VARIABLE.len());
        // One byte stays for the end.
        let Some(to) = value[..PRELOAD - 1].get_mut(length..length + separator + part.len()) else {
            return execute(environment);
        };
        to[..separator].fill(b':');
        to[separator..].copy_from_slice(part);
        length += to.len();
    }
    let mut list = [core::ptr::null(); ENTRIES];
    let mut count = 0;
    for old in 0.. {
        // SAFETY: the caller's promise: up to the end of the list.
        let mut entry = unsafe { *environment.add(old) };
        if entry.is_null() {
            break;
        }
        if old == at && length == VARIABLE.len() {
            continue;
        }
        if old == at {
            entry = value.as_ptr().cast();
        }
        match list[..ENTRIES - 1].get_mut(count) {
            Some(place) => *place = entry,
            None => return execute(environment),
        }
        count += 1;
    }
    execute(list.as_ptr())
}

/// # Safety
/// `target` must be what the call of its kind takes.
unsafe fn is_sanitizer_build(target: Target) -> bool {
    // SAFETY: the caller's promise.
    let opened = unsafe { open(target) };
    let file = match (&opened, target) {
        (Some(file), _) => file.0,
        (None, Target::File(file)) => file,
        _ => return false,
    };
    let mut interpreter;
    let mut program = file;
    for _ in 0..INTERPRETERS {
        let Some(next) = interpreter_of(program) else { break };
        interpreter = next;
        program = interpreter.0;
    }
    names_of(program).is_some_and(|(start, length)| names_sanitizer(program, start, length))
}

/// The program that runs this one, if it is a script (execve(2), "Interpreter scripts").
fn interpreter_of(file: c_int) -> Option<sys::Descriptor> {
    // One byte more, which stays zero, ends the path.
    let mut line = [0u8; FIRST_LINE + 1];
    let length = sys::read_at(file, line.get_mut(..FIRST_LINE)?, 0).ok()?;
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = 2 + line.get(..length)?.strip_prefix(b"#!")?.iter().position(|byte| !is_space(byte))?;
    let end = start + line.get(start..)?.iter().position(|byte| is_space(byte) || matches!(byte, b'\n' | 0))?;
    *line.get_mut(end)? = 0;
    // SAFETY: a path that ends in a zero byte.
    unsafe { sys::open_to_look(libc::AT_FDCWD, line.get(start..)?.as_ptr().cast()) }.ok()
}

/// # Safety
/// As [`is_sanitizer_build`].
unsafe fn open(target: Target) -> Option<sys::Descriptor> {
    match target {
        // SAFETY: the kernel refuses what is no address.
        Target::At(folder, path) => unsafe { sys::open_to_look(folder, path) }.ok(),
        // SAFETY: execvp(3) takes a C string.
        Target::Named(name) => unsafe { find(CStr::from_ptr(name)) },
        Target::File(_) => None,
    }
}

/// As execvp(3) looks a name up in PATH.
#[inline(never)] // As above.
fn find(name: &CStr) -> Option<sys::Descriptor> {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
    }
    if name.to_bytes().contains(&b'/') {
        // SAFETY: a C string.
        return unsafe { sys::open_to_look(libc::AT_FDCWD, name.as_ptr()) }.ok();
    }
    // SAFETY: a C string; the answer is null or one.
    let folders = unsafe {
        let value = getenv(c"PATH".as_ptr());
        if value.is_null() { c"/bin:/usr/bin" } else { CStr::from_ptr(value) }
    };
    folders.to_bytes().split(|&byte| byte == b':').find_map(|folder| {
        let mut path = [0u8; PRELOAD];
        let mut rest = path.get_mut(..PRELOAD - 1)?;
        for part in [if folder.is_empty() { b"." } else { folder }, b"/", name.to_bytes()] {
            let (to, after) = core::mem::take(&mut rest).split_at_mut_checked(part.len())?;
            to.copy_from_slice(part);
            rest = after;
        }
        // SAFETY: the last byte of the buffer is zero.
        unsafe { sys::open_to_look(libc::AT_FDCWD, path.as_ptr().cast()) }.ok()
    })
}

/// Structures of the ELF format from this offset on: as many as there are, and as there is room for.
fn read<T: Copy>(file: c_int, offset: u64, room: &mut [MaybeUninit<T>]) -> &[T] {
    // SAFETY: as many bytes as the room has, all of them zero so far.
    let bytes = unsafe { core::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<u8>(), size_of_val(room)) };
    let length = sys::read_at(file, bytes, offset).unwrap_or(0);
    // SAFETY: callers ask for structures of integers, for which all bytes are values.
    unsafe { core::slice::from_raw_parts(room.as_ptr().cast::<T>(), length.min(size_of_val(room)) / size_of::<T>()) }
}

/// Room for so many.
const fn room<T, const COUNT: usize>() -> [MaybeUninit<T>; COUNT] {
    [const { MaybeUninit::zeroed() }; COUNT]
}

/// Where the file keeps the names that the dynamic loader needs, libraries and symbols: offset and length (elf(5)).
fn names_of(file: c_int) -> Option<(u64, u64)> {
    const NAMES_ADDRESS: u64 = 5;
    const NAMES_LENGTH: u64 = 10;
    /// Entries of the dynamic section that are read at a time, and how often.
    const PIECE: usize = 64;
    const PIECES: u64 = 4;
    let mut header = room::<libc::Elf64_Ehdr, 1>();
    let header = read(file, 0, &mut header).first().filter(|header| header.e_ident.starts_with(b"\x7fELF\x02"))?;
    let mut segments = room::<libc::Elf64_Phdr, 64>();
    let segments = read(file, header.e_phoff, segments.get_mut(..usize::from(header.e_phnum.min(64)))?);
    let dynamic = segments.iter().find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
    let (mut address, mut length) = (None, None);
    'entries: for piece in 0..PIECES {
        let mut entries = room::<[u64; 2], PIECE>();
        let offset = dynamic.p_offset + piece * size_of_val(&entries) as u64;
        for entry in read(file, offset, &mut entries) {
            match *entry {
                [0, _] => break 'entries,
                [NAMES_ADDRESS, value] => address = Some(value),
                [NAMES_LENGTH, value] => length = Some(value),
                _ => {}
            }
        }
    }
    let address = address?;
    let loaded = |segment: &&libc::Elf64_Phdr| {
        segment.p_type == libc::PT_LOAD && (segment.p_vaddr..segment.p_vaddr + segment.p_filesz).contains(&address)
    };
    let segment = segments.iter().find(loaded)?;
    Some((segment.p_offset + (address - segment.p_vaddr), length?.min(NAMES)))
}

/// Whether a sanitizer's runtime is among the names.
fn names_sanitizer(file: c_int, start: u64, length: u64) -> bool {
    /// The longest name looked for, with what is before and after.
    const OVERLAP: usize = 32;
    let mut buffer = [0u8; 4096];
    let mut at = start;
    while at < start + length {
        let wanted = (start + length - at).min(buffer.len() as u64) as usize;
        let Some(piece) = buffer.get_mut(..wanted) else { return false };
        let Ok(got @ 1..) = sys::read_at(file, piece, at) else { return false };
        if has_runtime(piece.get(..got).unwrap_or_default()) {
            return true;
        }
        at += if got > OVERLAP { got - OVERLAP } else { got } as u64;
        if got < wanted {
            break;
        }
        if got <= OVERLAP {
            break;
        }
    }
    false
}

/// `libasan.so.8`, `libclang_rt.tsan-x86_64.so`, `__msan_init` and their like, in the names of a program or in LD_PRELOAD.
#[inline(never)] // One copy is enough for all who call this.
fn has_runtime(names: &[u8]) -> bool {
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

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn this_program_is_none() {
        // SAFETY: C strings.
        unsafe {
            assert!(!is_sanitizer_build(Target::At(libc::AT_FDCWD, c"/proc/self/exe".as_ptr())));
            assert!(!is_sanitizer_build(Target::Named(c"sh".as_ptr())));
            assert!(open(Target::Named(c"sh".as_ptr())).is_some());
        }
    }
}
