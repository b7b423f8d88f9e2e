//! Descriptors, dispositions, group and session: the program inherits what it would have had.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};

use crate::stage::{Running, block, quietly, victim};

/// What the parent does to a child before its exec.
type Preparation = fn() -> nix::Result<()>;

/// What the program that writes down its state says, with and without supervisor, after a preparation.
fn states(prepare: Preparation) -> [String; 2] {
    [Command::new(victim("state")), quietly([victim("state")])].map(|mut command| {
        // SAFETY: the preparations make system calls only.
        unsafe { command.pre_exec(move || prepare().map_err(io::Error::from)) };
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    })
}

#[test]
fn signals_and_descriptors_are_inherited() {
    let preparations: [(Preparation, &str); 8] = [
        (|| Ok(()), "session"),
        (|| ignore(Signal::SIGHUP), "ignored 1\n"),
        (|| ignore(Signal::SIGCHLD), "ignored 17\n"),
        (|| ignore(Signal::SIGPIPE), "ignored 13\n"),
        (|| ignore(Signal::SIGTSTP), "ignored 20\n"),
        (|| block(SigSet::from(Signal::SIGTERM)), "blocked 15\n"),
        // SAFETY: the child is about to exec, and uses no descriptor in between.
        (|| nix::Error::result(unsafe { libc::close(0) }).map(drop), "descriptor 1"),
        // SAFETY: as above.
        (|| nix::Error::result(unsafe { libc::dup2(1, 77) }).map(drop), "descriptor 77"),
    ];
    for (prepare, visible) in preparations {
        let [alone, supervised] = states(prepare);
        assert!(alone.contains(visible), "the preparation shows: {alone}");
        assert_eq!(alone, supervised);
    }
}

fn ignore(ignored: Signal) -> nix::Result<()> {
    // SAFETY: ignoring runs no code.
    unsafe { signal(ignored, SigHandler::SigIgn) }.map(drop)
}

#[test]
fn a_pending_signal_stays_pending() {
    // Sent after the start, for fork leaves pending signals behind; the program unblocks it and dies of it.
    let mut command = quietly([
        "python3",
        "-c",
        "import signal, sys; print('ready', flush=True); sys.stdin.read(); \
         signal.pthread_sigmask(signal.SIG_SETMASK, []); print('survived')",
    ]);
    // SAFETY: blocking signals is a system call.
    unsafe { command.pre_exec(|| block(SigSet::from(Signal::SIGTERM)).map_err(io::Error::from)) };
    let mut running = Running::start(&mut command);
    assert_eq!(running.line(), "ready");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(running.pid()), Signal::SIGTERM).unwrap();
    let pid = crate::stage::children(running.pid())[0].0;
    crate::stage::until("the program has it pending", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains("ShdPnd:\t0000000000004000")
    });
    drop(running.child.stdin.take());
    let (status, rest) = running.rest();
    assert_eq!(rest, "");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
}

#[test]
fn bytes_pass_through() {
    let mut child = quietly(["sh", "-c", "cat; echo done >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sent: Vec<u8> = (0..1 << 20).map(|i| (i * 7 % 251) as u8).collect();
    let mut stdin = child.stdin.take().unwrap();
    let to_send = sent.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&to_send));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.stdout == sent);
    assert_eq!(output.stderr, b"done\n");
}

#[test]
fn an_end_that_the_program_closes_is_closed() {
    // The program says good-bye on stdout and goes on; whoever reads its stdout must see the end at once.
    let mut running = Running::start(&mut quietly(["sh", "-c", "exec >&-; read line; exit 4"]));
    let mut rest = String::new();
    running.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert_eq!(running.child.try_wait().unwrap(), None);
    writeln!(running.child.stdin.take().unwrap(), "go").unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(4));
}

#[test]
fn a_reader_that_leaves_is_noticed_by_the_writer() {
    // A program that closes its stdin: its writer gets EPIPE, as it would without us.
    let mut running = Running::start(&mut quietly(["sh", "-c", "exec <&-; echo closed; exec sleep 60"]));
    assert_eq!(running.line(), "closed");
    let mut stdin = running.child.stdin.take().unwrap();
    let written = stdin.write_all(&vec![0; 1 << 20]);
    assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
