//! Exit statuses and deaths reach the supervisor's parent as the program's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use precache_tests::programs::executable;

use crate::stage::{finish, quietly, supervisor};

#[test]
fn exit_statuses_are_the_programs() {
    for status in [0, 1, 2, 7, 126, 127, 128, 143, 255] {
        let finished = finish(&mut quietly(["sh", "-c", &format!("exit {status}")]));
        assert_eq!(finished.status.code(), Some(status));
    }
}

#[test]
fn deaths_are_the_programs() {
    let real_time = libc::SIGRTMIN() + 3;
    let signals = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGABRT,
        libc::SIGKILL,
        libc::SIGSEGV,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGUSR1,
        real_time,
    ];
    for signal in signals {
        let finished = finish(&mut quietly(["sh", "-c", &format!("kill -{signal} $$")]));
        assert_eq!(finished.status.signal(), Some(signal), "{finished:?}");
        assert!(!finished.status.core_dumped(), "a core of the supervisor's own");
    }
}

#[test]
fn what_cannot_be_run_ends_as_in_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str, mode| {
        let path = folder.path().join(name);
        executable(&path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cases = [
        ("precache-no-such-program".to_owned(), 127, "No such file or directory"),
        (folder.path().join("absent").to_str().unwrap().to_owned(), 127, "No such file or directory"),
        (file("no-interpreter", "#!/no/such/interpreter\n", 0o755), 127, "No such file or directory"),
        (file("not-executable", "#!/bin/sh\n", 0o644), 126, "Permission denied"),
        (folder.path().to_str().unwrap().to_owned(), 126, "Permission denied"),
        (file("plain", "x", 0o644) + "/beneath", 126, "Not a directory"),
    ];
    for mode in ["on", "off"] {
        for (command, status, why) in &cases {
            let finished = finish(supervisor().args(["-q", "--mode", mode, command]));
            assert_eq!(finished.status.code(), Some(*status), "{finished:?}");
            assert_eq!(finished.stderr, format!("precache-run: {command}: {why}\n"));
        }
    }
}

#[test]
fn a_script_without_interpreter_is_the_shells() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    executable(&script, "echo \"$0\" \"$@\"; exit 9\n");
    let finished = finish(&mut quietly([script.to_str().unwrap(), "a b", "c"]));
    assert_eq!(finished.status.code(), Some(9));
    assert_eq!(finished.stdout, format!("{} a b c\n", script.display()));
}

#[test]
fn off_is_a_plain_exec() {
    for with in [&[("PRECACHE", "off")][..], &[("PRECACHE_MODE", "off")]] {
        let mut command = supervisor();
        let child = command
            .args(["sh", "-c", "echo $$"])
            .envs(with.iter().copied())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let supervisor = child.id();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), supervisor.to_string());
    }
}

#[test]
fn the_two_names_are_one_program() {
    let mut precache = Command::new(precache_tests::programs::program("precache"));
    let finished = finish(precache.args(["run", "-q", "--", "sh", "-c", "exit 5"]));
    assert_eq!(finished.status.code(), Some(5));
}
