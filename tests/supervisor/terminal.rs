//! On a real terminal: keys, job control, hangup.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::unistd::setsid;

use crate::stage::{quietly, victim};

/// A program that leads a session on a terminal of its own.
struct Terminal {
    keyboard: Option<File>,
    child: Child,
    shown: String,
}

impl Terminal {
    fn run(command: &mut Command) -> Self {
        // The keyboard must not leak into other tests' programs: it would never be hung up.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let keyboard = posix_openpt(flags).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname_r(&keyboard).unwrap();
        let screen = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).unwrap();
        let end = || Stdio::from(screen.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: all are system calls; the new session takes the terminal at descriptor 0.
        unsafe {
            command.pre_exec(|| {
                // A shell's background job, as these tests may be, ignores what keys send, and a login shell's does not.
                for signal in [libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                setsid()?;
                nix::Error::result(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
                Ok(())
            });
        }
        // SAFETY: the number leaves its only owner.
        let keyboard = File::from(unsafe { OwnedFd::from_raw_fd(keyboard.into_raw_fd()) });
        let child = command.spawn().unwrap();
        // The command holds copies of our end, which would hide the hangup.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { keyboard: Some(keyboard), child, shown: String::new() }
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text, and returns what came before it.
    fn expect(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                let mut before = std::mem::replace(&mut self.shown, rest);
                before.truncate(at);
                return before;
            }
            let keyboard = self.keyboard.as_mut().unwrap();
            let mut ready = [PollFd::new(keyboard.as_fd(), PollFlags::POLLIN)];
            let polled = poll(&mut ready, PollTimeout::from(20_000u16)).unwrap();
            assert!(polled > 0, "{text:?} never came, but {:?}", self.shown);
            let mut buffer = [0; 4096];
            let length = keyboard.read(&mut buffer).unwrap_or(0);
            assert!(length > 0, "{text:?} never came, but {:?}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }

    fn resize(&self) {
        let size = Winsize { ws_row: 33, ws_col: 44, ws_xpixel: 0, ws_ypixel: 0 };
        let keyboard = std::os::fd::AsRawFd::as_raw_fd(self.keyboard.as_ref().unwrap());
        // SAFETY: TIOCSWINSZ reads one window size.
        assert_eq!(unsafe { libc::ioctl(keyboard, libc::TIOCSWINSZ, &size) }, 0);
    }

    /// Ends the announcing program, and returns what it wrote since the last expectation.
    fn end_announcing(&mut self) -> String {
        let marker = libc::SIGRTMIN() + 5;
        // SAFETY: kill(2) only sends.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, marker) }, 0);
        self.expect(&format!("got {marker}"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_arrive_once() {
    for (key, signal) in [("\x03", libc::SIGINT), ("\x1c", libc::SIGQUIT), ("\x1a", libc::SIGTSTP)] {
        let mut terminal = Terminal::run(&mut quietly([victim("announce")]));
        terminal.expect("ready");
        terminal.type_in(key);
        terminal.expect(&format!("got {signal}\r\n"));
        let more = terminal.end_announcing();
        assert!(!more.contains("got"), "{more:?}");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_new_window_size_arrives_once() {
    let mut terminal = Terminal::run(&mut quietly([victim("announce")]));
    terminal.expect("ready");
    terminal.resize();
    terminal.expect(&format!("got {}\r\n", libc::SIGWINCH));
    let more = terminal.end_announcing();
    assert!(!more.contains("got"), "{more:?}");
}

#[test]
fn an_interrupt_kills_as_without_us() {
    let mut terminal = Terminal::run(&mut quietly(["sh", "-c", "echo ready; exec sleep 1000"]));
    terminal.expect("ready\r\n");
    terminal.type_in("\x03");
    assert_eq!(terminal.child.wait().unwrap().signal(), Some(libc::SIGINT));
}

#[test]
fn a_hangup_of_the_session_leader_reaches_the_program() {
    // The kernel tells the leader alone, which the program would have been. (One that reads the terminal may see its end
    // a moment before the signal that we send on.)
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let script = format!(
        "trap 'kill $!; echo hangup >{}; exit 6' HUP; sleep 1000 <&- >&- 2>&- & echo ready; wait",
        trace.display()
    );
    let mut terminal = Terminal::run(&mut quietly(["sh", "-c", &script]));
    terminal.expect("ready");
    terminal.keyboard = None;
    assert_eq!(terminal.child.wait().unwrap().code(), Some(6));
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "hangup\n");
}

#[test]
fn a_shell_controls_the_job() {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "$ ").env_remove("PROMPT_COMMAND");
    let mut terminal = Terminal::run(&mut shell);
    let run = format!(
        "{} -q -- {} {}\n",
        precache_tests::programs::precache_run().display(),
        victim("announce").display(),
        libc::SIGTSTP
    );
    terminal.expect("$ ");
    terminal.type_in(&run);
    terminal.expect("ready");
    for _ in 0..3 {
        terminal.type_in("\x1a");
        terminal.expect("Stopped ");
        terminal.type_in("fg\n");
        terminal.expect(&format!("got {}\r\n", libc::SIGCONT));
        // The program has the keyboard back.
        terminal.type_in("\x03");
        let before = terminal.expect(&format!("got {}\r\n", libc::SIGINT));
        assert!(!before.contains("got"), "{before:?}");
    }
    terminal.type_in("\x1a");
    terminal.expect("Stopped ");
    terminal.type_in("bg\n");
    terminal.expect(&format!("got {}\r\n", libc::SIGCONT));
    terminal.type_in("kill -USR1 %1\n");
    terminal.expect(&format!("got {}\r\n", libc::SIGUSR1));
    terminal.type_in(&format!("kill -{} %1; wait %1; echo status $((40 + $?))\n", libc::SIGRTMIN() + 5));
    let rest = terminal.expect("status 40");
    let marker = format!("got {}", libc::SIGRTMIN() + 5);
    assert_eq!(rest.matches("got").count(), 1, "{rest:?}");
    assert!(rest.contains(&marker), "{rest:?}");
}

#[test]
fn a_background_job_that_reads_the_terminal_stops() {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "$ ");
    let mut terminal = Terminal::run(&mut shell);
    terminal.expect("$ ");
    let program = precache_tests::programs::precache_run();
    terminal.type_in(&format!("{} -q -- sh -c 'read line; echo \"<$line>\"' &\n", program.display()));
    terminal.expect("[1]");
    terminal.type_in("wait; jobs\n");
    terminal.expect("Stopped");
    terminal.type_in("fg\n");
    terminal.expect("read line");
    terminal.type_in("hello\n");
    terminal.expect("<hello>");
}
