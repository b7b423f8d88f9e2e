//! Whether a program that is about to be executed takes a library that is not its own. In a child of vfork, too: nothing but
//! system calls and the stack.

mod elf;

pub use self::elf::{has_runtime, reason_against};

use crate::buffers::PATH_MAX;
use crate::sys;
use core::ffi::{CStr, c_char, c_int};

/// Scripts whose interpreters are scripts: as many as the kernel follows (`exec_binprm`), and the length of their first
/// lines (`BINPRM_BUF_SIZE`).
const INTERPRETERS: usize = 5;
const FIRST_LINE: usize = 256;

/// The longest path that is looked at in a folder of PATH: stacks may be small.
const PATH: usize = 1024;

/// By anybody.
const EXECUTABLE: u32 = 0o111;

/// What names a program: as execve(2), execvp(3), execveat(2) or fexecve(3) take it.
#[derive(Clone, Copy)]
pub enum Target {
    At(c_int, *const c_char),
    Named(*const c_char),
    File(c_int),
    /// As posix_spawn(3) takes it: from where its actions go first.
    Spawned(*const c_char),
    /// At a path, or, if it is empty, the descriptor itself.
    AtOrFile(c_int, *const c_char),
}

impl Target {
    /// As execveat(2) takes it.
    pub fn at(folder: c_int, path: *const c_char, flags: c_int) -> Self {
        if flags & libc::AT_EMPTY_PATH == 0 { Self::At(folder, path) } else { Self::AtOrFile(folder, path) }
    }

    /// The path or name, or null.
    pub fn name(self) -> *const c_char {
        match self {
            Self::At(_, name) | Self::Named(name) | Self::Spawned(name) | Self::AtOrFile(_, name) => name,
            Self::File(_) => core::ptr::null(),
        }
    }
}

/// Calls `look` with what the kernel will load: the program, or the one that interprets it. Fails where nobody can tell what that
/// is; mostly exec says what is wrong with it, then.
///
/// # Safety
/// `target` must be what the call of its kind takes.
pub unsafe fn with_program<T>(target: Target, look: impl FnOnce(c_int) -> T) -> sys::Result<T> {
    // SAFETY: the caller's promise.
    let opened = unsafe { open(target) };
    let file = match (&opened, target) {
        (Ok(file), _) => file.0,
        (Err(_), Target::File(file)) => file,
        // No file has an empty name: path_resolution(7).
        (Err(sys::Error::ENOENT), Target::AtOrFile(file, _)) => file,
        (Err(why), _) => return Err(*why),
    };
    let mut interpreter;
    let mut program = file;
    for _ in 0..INTERPRETERS {
        let Some(next) = interpreter_of(program)? else { break };
        interpreter = next;
        program = interpreter.0;
    }
    Ok(look(program))
}

/// The program that runs this one, if it is a script (execve(2), "Interpreter scripts").
#[inline(never)] // Its buffer must not weigh on the stacks of others.
fn interpreter_of(file: c_int) -> sys::Result<Option<sys::Descriptor>> {
    // One byte more, which stays zero, ends the path.
    let mut line = [0u8; FIRST_LINE + 1];
    let Some(start) = place_of_interpreter(file, &mut line) else { return Ok(None) };
    // SAFETY: a path that ends in a zero byte.
    unsafe { open_at(libc::AT_FDCWD, line.as_ptr().wrapping_add(start).cast()) }.map(Some)
}

/// Where its path begins in the first line, which is read to there; the path ends in a zero byte.
fn place_of_interpreter(file: c_int, line: &mut [u8; FIRST_LINE + 1]) -> Option<usize> {
    let length = sys::read_at(file, line.get_mut(..FIRST_LINE)?, 0).ok()?;
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = 2 + line.get(..length)?.strip_prefix(b"#!")?.iter().position(|byte| !is_space(byte))?;
    let end = start + line.get(start..)?.iter().position(|byte| is_space(byte) || matches!(byte, b'\n' | 0))?;
    *line.get_mut(end)? = 0;
    Some(start)
}

/// What may be executed and not read is opened for its path alone.
///
/// # Safety
/// `path` must be a C string, or no address at all.
unsafe fn open_at(folder: c_int, path: *const c_char) -> sys::Result<sys::Descriptor> {
    // SAFETY: the caller's promise.
    unsafe {
        match sys::open_to_look(folder, path, 0) {
            Err(sys::Error::EACCES) => sys::open_to_look(folder, path, libc::O_PATH),
            other => other,
        }
    }
}

/// # Safety
/// As [`with_program`].
unsafe fn open(target: Target) -> sys::Result<sys::Descriptor> {
    match target {
        // SAFETY: the kernel refuses what is no address.
        Target::At(folder, path) | Target::AtOrFile(folder, path) => unsafe { open_at(folder, path) },
        // SAFETY: as above.
        Target::Spawned(path) => unsafe { open_at(libc::AT_FDCWD, path) },
        Target::Named(name) => {
            // What is longer than a path is looked for by nobody, and not read to its end. SAFETY: execvp(3) takes a C string.
            let end = (0..PATH_MAX).find(|&at| unsafe { *name.add(at) } == 0).ok_or(sys::Error::ENAMETOOLONG)?;
            // SAFETY: it ends there.
            find(unsafe { CStr::from_bytes_with_nul_unchecked(core::slice::from_raw_parts(name.cast(), end + 1)) })
        }
        Target::File(_) => Err(sys::Error::ENOENT),
    }
}

/// Whether somebody may execute it.
pub fn is_program(file: c_int) -> bool {
    sys::file_status(file)
        .is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFREG && status.st_mode & EXECUTABLE != 0)
}

/// As execvp(3) looks a name up in PATH.
#[inline(never)] // As above.
fn find(name: &CStr) -> sys::Result<sys::Descriptor> {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
    }
    if name.to_bytes().contains(&b'/') {
        // SAFETY: a C string.
        return unsafe { open_at(libc::AT_FDCWD, name.as_ptr()) };
    }
    // SAFETY: a C string; the answer is null or one.
    let folders = unsafe {
        let value = getenv(c"PATH".as_ptr());
        if value.is_null() { c"/bin:/usr/bin" } else { CStr::from_ptr(value) }
    };
    for folder in folders.to_bytes().split(|&byte| byte == b':') {
        let mut path = [0u8; PATH];
        let mut rest = &mut path[..PATH - 1];
        for part in [if folder.is_empty() { b"." } else { folder }, b"/", name.to_bytes()] {
            // What cannot be looked at may be what is executed.
            let parts = core::mem::take(&mut rest).split_at_mut_checked(part.len());
            let (to, after) = parts.ok_or(sys::Error::ENAMETOOLONG)?;
            to.copy_from_slice(part);
            rest = after;
        }
        // SAFETY: the last byte of the buffer is zero.
        let file = match unsafe { open_at(libc::AT_FDCWD, path.as_ptr().cast()) } {
            Err(sys::Error::ENOENT | sys::Error::ENOTDIR | sys::Error::EACCES) => continue,
            opened => opened?,
        };
        // A folder, or a file that is no program, is passed over.
        if is_program(file.0) {
            return Ok(file);
        }
    }
    Err(sys::Error::ENOENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn nothing_is_against_ordinary_programs() {
        // SAFETY: C strings.
        unsafe {
            for target in [Target::At(libc::AT_FDCWD, c"/proc/self/exe".as_ptr()), Target::Named(c"sh".as_ptr())] {
                assert_eq!(with_program(target, reason_against), Ok(None));
            }
        }
    }
}
