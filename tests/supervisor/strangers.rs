//! Other users: they can neither speak to an optimizer, nor look into it or its readers, nor take its place.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use nix::unistd::{Pid, getuid};
use precache_tests::optimizer::must_end;

use crate::stage::{Running, finish, supervisor};

const NOBODY: &str = "65534";

/// Asks the optimizer behind the socket for something, tells whether it answers, and what can be seen of two processes.
const ASK_AND_LOOK: &str = r#"
import os, socket, sys
name, *pids = sys.argv[1:]
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect('\0' + name)
try:
    asking.send(b'"Finish"\n')
    answer = asking.recv(4096)
except (BrokenPipeError, ConnectionResetError):
    answer = b''
print('answers' if b'Refused' in answer else 'hangs up')
for pid in pids:
    for what in ['maps', 'mem', 'environ', 'fd', 'map_files']:
        path = '/proc/%s/%s' % (pid, what)
        try:
            os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(0)
            print(what, 'open')
        except PermissionError:
            print(what, 'closed')
"#;

/// Python, as nobody if this is root.
fn python(script: &str, as_nobody: bool) -> Command {
    let mut command = Command::new("setpriv");
    if as_nobody {
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
    }
    command.args(["--", "/usr/bin/python3", "-c", script]);
    command
}

/// What the program was told of its optimizer: the name of the socket.
fn socket_of(program: i32) -> String {
    let environment = fs::read(format!("/proc/{program}/environ")).expect("it lives");
    let environment = String::from_utf8(environment).expect("text");
    let told =
        environment.split('\0').find_map(|entry| entry.strip_prefix("PRECACHE_READER=")).expect("it is injected");
    told.split('\u{1e}').find_map(|line| line.strip_prefix("socket=")).expect("it is told").to_owned()
}

/// Who listens there.
fn listener_of(name: &str) -> i32 {
    let asks = r#"
import socket, struct, sys
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect('\0' + sys.argv[1])
print(struct.unpack('iii', asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
"#;
    let told = finish(python(asks, false).arg(name));
    told.stdout.trim().parse().unwrap_or_else(|_| panic!("nobody listens: {told:?}"))
}

fn may_test() -> bool {
    if !getuid().is_root() {
        precache_tests::storage::lacking("root, who can become another user");
    }
    getuid().is_root()
}

#[test]
fn strangers_are_not_answered_and_see_nothing() {
    if !may_test() {
        return;
    }
    let (mut running, program) = Running::announce(&[]);
    let name = socket_of(program);
    let optimizer = listener_of(&name);
    let pids = [optimizer.to_string(), program.to_string()];
    let ask = |as_nobody| finish(python(ASK_AND_LOOK, as_nobody).arg(&name).args(&pids)).stdout;
    let (ours, theirs) = (ask(false), ask(true));
    // The same questions of its own user show that they are the right ones.
    let expected = |answer: &str, door: &str| {
        let looks = ["maps", "mem", "environ", "fd", "map_files"].map(|what| format!("{what} {door}\n")).concat();
        format!("{answer}\n{looks}{looks}")
    };
    assert_eq!(ours, expected("answers", "open"));
    assert_eq!(theirs, expected("hangs up", "closed"));
    // It still serves.
    assert_eq!(listener_of(&name), optimizer);
    nix::sys::signal::kill(Pid::from_raw(program), nix::sys::signal::Signal::SIGUSR1).unwrap();
    assert_eq!(running.line(), format!("got {}", libc::SIGUSR1));
}

/// A process of nobody's that has taken the name; gone when this drops.
struct Squatter(Child);

impl Squatter {
    fn on(name: &str) -> Self {
        let takes = r#"
import socket, sys
place = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
place.bind('\0' + sys.argv[1])
place.listen()
print('taken', flush=True)
sys.stdin.read()
"#;
        let mut command = python(takes, true);
        let mut child = command.arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it speaks");
        assert_eq!(line, "taken\n");
        Self(child)
    }
}

impl Drop for Squatter {
    fn drop(&mut self) {
        // Its standard input ends with this.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The second of two runs finds that somebody else listens where its optimizer should.
#[test]
fn a_stranger_in_the_optimizers_place_gets_nothing() {
    if !may_test() {
        return;
    }
    let script = r#"printf %s "$PRECACHE_READER" | tr '\036' '\n' | grep ^socket=; echo runs; read line"#;
    let mut command = supervisor();
    command.args(["--", "sh", "-c", script]);
    // In a mount namespace of its own: no other optimizer has the name.
    let mut apart = Command::new("unshare");
    apart.args(["--mount", "sh", "-c", "\"$@\"; read line; exec \"$@\"", "sh"]);
    apart.arg(command.get_program()).args(command.get_args()).stderr(Stdio::piped());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => apart.env(name, value),
            None => apart.env_remove(name),
        };
    }
    let mut running = Running::start(&mut apart);
    let mut stderr = running.child.stderr.take().expect("a pipe");
    let go_on = |running: &mut Running| running.child.stdin.as_mut().expect("a pipe").write_all(b"\n").unwrap();
    let socket = running.line();
    let name = socket.strip_prefix("socket=").unwrap_or_else(|| panic!("{socket:?}"));
    assert_eq!(running.line(), "runs");
    let optimizer = listener_of(name);
    go_on(&mut running);
    must_end(Pid::from_raw(optimizer));
    let _squatter = Squatter::on(name);
    go_on(&mut running);
    assert_eq!(running.line(), "runs", "it is not injected");
    go_on(&mut running);
    let (status, rest) = running.rest();
    assert!(status.success() && rest.is_empty(), "{status} {rest:?}");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("text");
    let told = format!("the optimizer's socket is held by user {NOBODY}: another user took its name");
    assert!(said.contains(&told), "{said}");
}
