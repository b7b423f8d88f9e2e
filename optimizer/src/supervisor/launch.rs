//! Starting the program: fork, what the parent left to it, exec.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::ptr;

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, fork, getpid};

use super::inherited::Inherited;

/// What a shell says for these two.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("{program}: {}", .why.desc())]
    Exec { program: String, why: Errno },
    #[error("cannot start {program} as a process of its own: {why}; it runs in our place")]
    Start { program: String, why: io::Error },
}

impl LaunchError {
    pub fn status(&self) -> u8 {
        match self {
            Self::Exec { why: Errno::ENOENT, .. } => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        }
    }
}

/// All that execve(2) wants, made before the fork: the child allocates nothing.
pub struct Program {
    name: String,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// Arguments and environment come from another exec, which has ended them with the only zero bytes they have.
    pub fn new(command: &[OsString], environment: Vec<CString>) -> Self {
        let arguments = command.iter().filter_map(|argument| CString::new(argument.as_bytes()).ok()).collect();
        Self {
            name: command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            arguments,
            environment,
        }
    }

    /// Becomes the program. Returns only if that fails.
    pub fn replace_us(&self) -> LaunchError {
        let why = self.exec(&null_terminated(&self.arguments), &null_terminated(&self.environment));
        self.failed(why)
    }

    /// Starts a child that becomes the program when it is told to, and dies with us.
    pub fn start(&self) -> Result<Started, LaunchError> {
        let arguments = null_terminated(&self.arguments);
        let environment = null_terminated(&self.environment);
        let (line, far_end) = UnixStream::pair().map_err(|error| self.cannot_start(error))?;
        let supervisor = getpid();
        // SAFETY: the child makes system calls on what was prepared above and takes no lock; glibc's execvpe(3), too,
        // does without.
        match unsafe { fork() }.map_err(|errno| self.cannot_start(errno.into()))? {
            ForkResult::Parent { child } => Ok(Started { pid: child, name: self.name.clone(), line }),
            ForkResult::Child => {
                if die_with(supervisor) && (&far_end).read_exact(&mut [0]).is_ok() {
                    let why = self.exec(&arguments, &environment);
                    // Who does not read it has died.
                    let _ = (&far_end).write_all(&(why as i32).to_ne_bytes());
                }
                // SAFETY: _exit(2) runs none of the supervisor's exit handlers.
                unsafe { libc::_exit(NOT_FOUND.into()) }
            }
        }
    }

    fn exec(&self, arguments: &[*const c_char], environment: &[*const c_char]) -> Errno {
        Inherited::at_start().restore();
        // SAFETY: both arrays end with a null pointer, and their strings live in `self`. execvpe(3) looks the program
        // up in PATH, and gives a script without interpreter to /bin/sh.
        unsafe { libc::execvpe(arguments[0], arguments.as_ptr(), environment.as_ptr()) };
        Errno::last()
    }

    pub fn cannot_start(&self, why: io::Error) -> LaunchError {
        LaunchError::Start { program: self.name.clone(), why }
    }

    fn failed(&self, why: Errno) -> LaunchError {
        LaunchError::Exec { program: self.name.clone(), why }
    }
}

/// The program, or the child that will become it or could not.
#[derive(Debug)]
pub struct Started {
    pub pid: Pid,
    name: String,
    line: UnixStream,
}

impl Started {
    /// Lets the child become the program.
    pub fn go(&mut self) {
        // A child that was killed before does not read it; waitpid will tell.
        let _ = self.line.write_all(&[0]);
    }

    /// To be asked when the child has ended, not before: one that is stopped short of its exec says nothing.
    pub fn exec_error(mut self) -> Option<LaunchError> {
        let mut errno = [0; 4];
        // The child's end closes on exec; what comes before that is why there was none.
        self.line.read_exact(&mut errno).ok()?;
        Some(LaunchError::Exec { program: self.name, why: Errno::from_raw(i32::from_ne_bytes(errno)) })
    }
}

fn null_terminated(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Whether the supervisor still lived when its death began to count.
fn die_with(supervisor: Pid) -> bool {
    // A filter that we inherited may forbid it; the sentry sees to it, too.
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    nix::unistd::getppid() == supervisor
}

/// Our environment as we got it, also the entries that are not NAME=VALUE, in their order.
pub fn environment() -> Vec<CString> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut entries = Vec::new();
    // SAFETY: environ(7) is null or an array of strings that ends with a null pointer, and nothing here changes it.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            entries.push(std::ffi::CStr::from_ptr(*entry).to_owned());
            entry = entry.add(1);
        }
    }
    entries
}

/// Sets a variable in its place, or at the end.
pub fn set_variable(environment: &mut Vec<CString>, name: &str, value: &OsStr) {
    let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
    // No value of ours has a zero byte: paths and options come from the kernel without.
    let Ok(entry) = CString::new(entry) else { return };
    match environment.iter_mut().find(|old| value_of(old, name).is_some()) {
        Some(old) => *old = entry,
        None => environment.push(entry),
    }
}

pub fn variable<'e>(environment: &'e [CString], name: &str) -> Option<&'e OsStr> {
    environment.iter().find_map(|entry| value_of(entry, name))
}

fn value_of<'e>(entry: &'e CString, name: &str) -> Option<&'e OsStr> {
    let value = entry.as_bytes().strip_prefix(name.as_bytes())?;
    value.strip_prefix(b"=").map(OsStr::from_bytes)
}
