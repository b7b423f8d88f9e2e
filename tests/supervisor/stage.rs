//! What the tests play on: programs started under the supervisor, and what they say.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use precache_tests::programs::{compile, precache_run};
use tempfile::TempDir;

/// `precache-run` without the settings of whoever runs the tests.
pub fn supervisor() -> Command {
    static HOME: OnceLock<TempDir> = OnceLock::new();
    let home = HOME.get_or_init(|| tempfile::tempdir().expect("a folder"));
    let mut command = Command::new(precache_run());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PRECACHE") || name == "LD_PRELOAD" {
            command.env_remove(name);
        }
    }
    command.env("HOME", home.path()).env("XDG_CACHE_HOME", home.path().join(".cache"));
    command
}

/// The victim of that name, compiled once.
pub fn victim(name: &str) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["announce", "state"] {
            compile(&source(name), &folder.path().join(name), &[]).expect("cc compiles a victim");
        }
        folder
    });
    folder.path().join(name)
}

pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("supervisor/victims").join(name).with_extension("c")
}

/// What a command leaves behind.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

pub fn finish(command: &mut Command) -> Finished {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    Finished {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// `precache-run -q` with a program and its arguments.
pub fn quietly<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = supervisor();
    command.arg("-q").arg("--").args(words);
    command
}

/// The same command where caches of the whole machine are kept on a file system of its own, mounted so.
pub fn with_own_var_cache(command: &Command, how: &str) -> Command {
    let script = format!("mount -t tmpfs -o mode=755,{how} tmpfs /var/cache && umask 077 && exec \"$@\"");
    by(&["unshare", "--mount", "sh", "-c", &script, "sh"], command)
}

/// The same command, executed by another one.
pub fn by(other: &[&str], command: &Command) -> Command {
    let mut whole = Command::new(other[0]);
    whole.args(&other[1..]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(name, value),
            None => whole.env_remove(name),
        };
    }
    whole
}

/// A running program under the supervisor, in a process group of its own.
pub struct Running {
    pub child: Child,
    pub stdout: BufReader<ChildStdout>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, stdout }
    }

    /// Starts the victim that announces its signals. Returns its pid too.
    pub fn announce(arguments: &[&str]) -> (Self, i32) {
        let victim = victim("announce");
        let words = [victim.to_str().expect("UTF-8")].into_iter().chain(arguments.iter().copied());
        let mut running = Self::start(&mut quietly(words));
        let ready = running.line();
        let pid = ready.split(' ').nth(1).and_then(|pid| pid.parse().ok());
        (running, pid.unwrap_or_else(|| panic!("not ready: {ready:?}")))
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        if self.stdout.buffer().is_empty() {
            let mut ready = [PollFd::new(self.stdout.get_ref().as_fd(), PollFlags::POLLIN)];
            let polled = poll(&mut ready, PollTimeout::from(20_000u16)).expect("poll works");
            assert!(polled > 0, "no line came");
        }
        self.stdout.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    pub fn rest(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends"), rest)
    }
}

/// A test that fails must not leave processes behind; one that passes has none left.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The pids below one, with their names.
pub fn children(pid: i32) -> Vec<(i32, String)> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(|pid| (pid, name(pid))).collect()
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// The letter of proc(5), or none for a process that is no more, or only waits to be reaped.
pub fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit(") ").next()?.chars().next()?;
    (state != 'Z').then_some(state)
}

/// Waits for what other processes bring about, without a message that could be waited for.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..4000 {
        if condition() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("it never came about that {what}");
}

/// For a child before its exec: blocks these signals and no others.
pub fn block(signals: SigSet) -> nix::Result<()> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&signals), None)
}
