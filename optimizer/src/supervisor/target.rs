//! Looks at the program before it runs: can a library be injected into it at all?

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::{AccessFlags, SysconfVar, access, getgid, getuid, sysconf};
use precache_contract::PAGE;

use super::elf::{self, Elf};
use super::script::{self, Interpreter};

/// Why a program runs without our library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotInjected {
    #[error("{0:?} is statically linked and takes no library; accelerate a dynamically linked build")]
    Static(PathBuf),
    #[error("{0:?} is built for another machine or word size than precache-run; accelerate a native build")]
    OtherMachine(PathBuf),
    #[error("{0:?} is not built for the GNU C library, 2.34 or later, as precache-run is; accelerate a build that is")]
    OtherLibc(PathBuf),
    #[error(
        "{0:?} changes its user, group or capabilities at its start, and the loader then drops LD_PRELOAD; \
         accelerate a copy without these rights"
    )]
    Privileged(PathBuf),
    #[error("{0:?} is a sanitizer build, whose runtime insists on being the first library; accelerate a build without")]
    Sanitizer(PathBuf),
    #[error(
        "LD_PRELOAD has {0:?}, the runtime of a sanitizer, which insists on being the first library; leave it out to \
         accelerate the program"
    )]
    SanitizerPreloaded(String),
    #[error("{0:?} is run by an env that clears the environment, and LD_PRELOAD with it; remove its -i")]
    ClearedEnvironment(PathBuf),
    #[error(
        "{0:?} may be executed and not read, and nobody can tell whether it would start with a library; accelerate a readable copy"
    )]
    Unseen(PathBuf),
    #[error("the kernel's pages are {0} bytes long, and only those of {PAGE} are served; use a kernel with such pages")]
    OtherPages(u64),
}

/// As deep as execve(2) follows interpreters.
const DEEPEST: usize = 5;

/// The reason against injecting into the program that `command` names, or into the one that interprets it. What
/// cannot be found or executed has none: exec says what is wrong with it.
pub fn reason_against(command: &OsStr) -> Option<NotInjected> {
    let mut path = find(command)?;
    for _ in 0..DEEPEST {
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied && access(&path, AccessFlags::X_OK).is_ok() => {
                return Some(reason_against_unseen(path));
            }
            opened => opened.ok()?,
        };
        let mut start = [0; script::LONGEST_LINE];
        let length = (&file).read(&mut start).ok()?;
        let start = start.get(..length)?;
        if start.starts_with(&elf::MAGIC) {
            return reason_against_elf(path, &file);
        }
        path = match script::interpreter(start) {
            Interpreter::At(interpreter) => interpreter,
            Interpreter::Named(name) => find(&name)?,
            Interpreter::WithoutEnvironment => {
                return Some(NotInjected::ClearedEnvironment(path));
            }
        };
    }
    None
}

/// What may not be read is looked at from outside.
fn reason_against_unseen(path: PathBuf) -> NotInjected {
    let file = File::options().read(true).custom_flags(libc::O_PATH).open(&path);
    let is_privileged = file.is_ok_and(|file| file.metadata().is_ok_and(|metadata| gains_rights(&file, &metadata)));
    if is_privileged { NotInjected::Privileged(path) } else { NotInjected::Unseen(path) }
}

/// The reason against injecting on this kernel at all.
pub fn other_pages() -> Option<NotInjected> {
    let length = sysconf(SysconfVar::PAGE_SIZE).ok()??;
    Some(length as u64).filter(|&length| length != PAGE).map(NotInjected::OtherPages)
}

/// The reason against injecting beside what is preloaded already.
pub fn preloaded_sanitizer() -> Option<NotInjected> {
    let preloaded = std::env::var_os("LD_PRELOAD")?;
    let name = |part: &[u8]| part.rsplit(|byte| *byte == b'/').next().unwrap_or(part).to_owned();
    let mut names = preloaded.as_bytes().split(|byte| b": ".contains(byte)).map(name);
    let runtime = names.find(|name| elf::is_runtime(name))?;
    Some(NotInjected::SanitizerPreloaded(String::from_utf8_lossy(&runtime).into_owned()))
}

fn reason_against_elf(path: PathBuf, file: &File) -> Option<NotInjected> {
    let metadata = file.metadata().ok()?;
    if gains_rights(file, &metadata) {
        return Some(NotInjected::Privileged(path));
    }
    // Neither reason nor hindrance to run: what the kernel cannot load either.
    match elf::inspect(file).ok()? {
        Elf::OtherMachine => Some(NotInjected::OtherMachine(path)),
        Elf::Static => Some(NotInjected::Static(path)),
        Elf::OtherLibc => Some(NotInjected::OtherLibc(path)),
        Elf::Sanitizer => Some(NotInjected::Sanitizer(path)),
        Elf::Ordinary => None,
    }
}

/// As execvp(3) looks a name up.
fn find(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(command));
    }
    // The default is that of glibc, which leaves out the current directory.
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    std::env::split_paths(&path)
        .map(|folder| folder.join(command))
        .find(|candidate| candidate.is_file() && access(candidate, AccessFlags::X_OK).is_ok())
}

/// Whether exec makes the process more (or other) than its caller, which is when the loader trusts no environment.
fn gains_rights(file: &File, metadata: &Metadata) -> bool {
    let mode = metadata.mode();
    let other_user = mode & libc::S_ISUID != 0 && metadata.uid() != getuid().as_raw();
    // Without the group's execute bit it would mean mandatory locking.
    let group_bits = libc::S_ISGID | libc::S_IXGRP;
    let other_group = mode & group_bits == group_bits && metadata.gid() != getgid().as_raw();
    // Root has all that capabilities could add.
    let capabilities = !getuid().is_root() && has_capabilities(file);

    (other_user || other_group || capabilities) && !is_kept_from_rights(file)
}

fn has_capabilities(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: the name ends with a zero byte, and for a size of zero no value is written.
    let length = unsafe { libc::fgetxattr(file.as_raw_fd(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    length > 0
}

fn is_kept_from_rights(file: &File) -> bool {
    let nosuid = fstatvfs(file).is_ok_and(|fs| fs.flags().contains(FsFlags::ST_NOSUID));
    nosuid || nix::sys::prctl::get_no_new_privs().unwrap_or(false)
}
