//! The supervisor and the program live, stop and die together.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use precache_tests::storage::lacking;

use crate::stage::{Running, by, children, quietly, state, until};

#[test]
fn the_program_dies_with_a_killed_supervisor() {
    let (mut running, program) = Running::announce(&[]);
    let family = children(running.pid());
    assert!(family.iter().any(|(pid, _)| *pid == program), "{family:?}");
    kill(Pid::from_raw(running.pid()), Signal::SIGKILL).unwrap();
    running.child.wait().unwrap();
    for (pid, name) in family {
        until(&format!("{name} dies too"), || state(pid).is_none());
    }
}

/// The kernel takes the wish to die with the parent from who changes its user (PR_SET_PDEATHSIG(2const)). In a session of its
/// own, where nobody is hung up on when a process of a stopped group ends (setpgid(2)).
#[test]
fn a_program_that_has_changed_its_user_dies_too() {
    if !nix::unistd::geteuid().is_root() {
        return lacking("right to change the user");
    }
    let script = "import os, time; os.setuid(65534); print(os.getpid(), flush=True); time.sleep(1000)";
    for is_sentry_stopped in [false, true] {
        let mut running = Running::start(&mut by(&["setsid", "--wait"], &quietly(["/usr/bin/python3", "-c", script])));
        let program = running.line().trim().parse().expect("its pid");
        let [(supervisor, _)] = children(running.pid())[..] else { panic!("setsid has one child") };
        let others: Vec<_> = children(supervisor).into_iter().filter(|(pid, _)| *pid != program).collect();
        let [(sentry, _)] = others[..] else { panic!("one sentry, not {others:?}") };
        if is_sentry_stopped {
            kill(Pid::from_raw(sentry), Signal::SIGSTOP).unwrap();
            until("the sentry has stopped", || state(sentry) == Some('T'));
        }
        kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
        running.child.wait().unwrap();
        until("the program dies too", || state(program).is_none());
        until("the sentry ends", || state(sentry).is_none());
    }
}

#[test]
fn nothing_is_left_after_the_program() {
    let (running, program) = Running::announce(&[]);
    let family = children(running.pid());
    kill(Pid::from_raw(program), Signal::SIGKILL).unwrap();
    let (status, _) = running.rest();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    for (pid, _) in family {
        assert_eq!(state(pid), None, "it was reaped before the supervisor ended");
    }
}

#[test]
fn group_and_session_are_shared() {
    let (running, program) = Running::announce(&[]);
    let place = |pid| {
        let pid = Some(Pid::from_raw(pid));
        (nix::unistd::getpgid(pid).unwrap(), nix::unistd::getsid(pid).unwrap())
    };
    assert_eq!(place(program), place(running.pid()));
    assert_eq!(place(program).0.as_raw(), running.pid());
}

/// Waits for the stop of a child, as a shell does for its job's; without a sleep, so that what follows comes at once.
fn await_stop(child: Pid, signal: Signal) {
    let flags = Some(WaitPidFlag::WUNTRACED | WaitPidFlag::WNOHANG);
    let end = Instant::now() + Duration::from_secs(20);
    let mut status = WaitStatus::StillAlive;
    while status == WaitStatus::StillAlive && Instant::now() < end {
        std::thread::yield_now();
        status = waitpid(child, flags).unwrap();
    }
    assert_eq!(status, WaitStatus::Stopped(child, signal));
}

#[test]
fn a_stop_of_the_program_is_a_stop_of_ours() {
    for (signal, to_group) in [
        (Signal::SIGTSTP, false),
        (Signal::SIGTSTP, true),
        (Signal::SIGTTIN, false),
        (Signal::SIGTTOU, true),
        (Signal::SIGSTOP, true),
    ] {
        let ours = (signal as i32).to_string();
        let (mut running, program) = Running::announce(&[&ours]);
        let supervisor = Pid::from_raw(running.pid());
        // A stop may follow so soon that the supervisor reads what continued the group together with it. (A SIGSTOP it does not
        // read: docs/limitations.md.)
        let rounds = if signal == Signal::SIGSTOP { 3 } else { 50 };
        for _ in 0..rounds {
            match to_group {
                true => killpg(supervisor, signal).unwrap(),
                false => kill(supervisor, signal).unwrap(),
            }
            await_stop(supervisor, signal);
            until("the program has stopped", || state(program) == Some('T'));
            match to_group {
                true => killpg(supervisor, Signal::SIGCONT).unwrap(),
                false => kill(supervisor, Signal::SIGCONT).unwrap(),
            }
            assert_eq!(running.line(), format!("got {}", libc::SIGCONT), "{signal}, group: {to_group}");
        }
        kill(supervisor, Signal::SIGUSR1).unwrap();
        assert_eq!(running.line(), format!("got {}", libc::SIGUSR1), "both go on");
    }
}

/// As cpulimit does it.
#[test]
fn a_stop_of_the_program_alone_ends_with_it() {
    let (mut running, program) = Running::announce(&[&(Signal::SIGTSTP as i32).to_string()]);
    let (supervisor, program) = (Pid::from_raw(running.pid()), Pid::from_raw(program));
    for signal in [Signal::SIGSTOP, Signal::SIGTSTP] {
        kill(program, signal).unwrap();
        await_stop(supervisor, signal);
        kill(program, Signal::SIGCONT).unwrap();
        assert_eq!(running.line(), format!("got {}", libc::SIGCONT));
        until("the supervisor goes on", || state(supervisor.as_raw()) != Some('T'));
        kill(supervisor, Signal::SIGUSR1).unwrap();
        assert_eq!(running.line(), format!("got {}", libc::SIGUSR1), "SIGCONT came once");
    }
    kill(program, Signal::SIGSTOP).unwrap();
    until("the supervisor has stopped", || state(supervisor.as_raw()) == Some('T'));
    kill(program, Signal::SIGKILL).unwrap();
    until("the supervisor goes on", || state(supervisor.as_raw()) != Some('T'));
    assert_eq!(running.child.wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn a_stop_that_the_program_handles_stops_nobody() {
    let (mut running, _) = Running::announce(&[]);
    let supervisor = Pid::from_raw(running.pid());
    for to_group in [false, true] {
        match to_group {
            true => killpg(supervisor, Signal::SIGTSTP).unwrap(),
            false => kill(supervisor, Signal::SIGTSTP).unwrap(),
        }
        assert_eq!(running.line(), format!("got {}", libc::SIGTSTP));
        kill(supervisor, Signal::SIGUSR1).unwrap();
        assert_eq!(running.line(), format!("got {}", libc::SIGUSR1), "the supervisor is awake");
    }
}

#[test]
fn an_ignored_hangup_spares_both() {
    // As nohup starts it.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" -q -- sh -c 'echo ready; read line; echo $line'"]);
    command.arg(precache_tests::programs::precache_run());
    let mut running = Running::start(&mut command);
    assert_eq!(running.line(), "ready");
    let supervisor = Pid::from_raw(running.pid());
    kill(supervisor, Signal::SIGHUP).unwrap();
    killpg(supervisor, Signal::SIGHUP).unwrap();
    std::io::Write::write_all(&mut running.child.stdin.take().unwrap(), b"alive\n").unwrap();
    let (status, rest) = running.rest();
    assert_eq!((status.code(), rest.as_str()), (Some(0), "alive\n"));
}

#[test]
fn children_that_outlive_the_program_outlive_us() {
    let mut command = quietly(["sh", "-c", "sleep 1000 >&- 2>&- <&- & echo $!"]);
    let mut running = Running::start(&mut command);
    let orphan: i32 = running.line().parse().unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    assert!(state(orphan).is_some());
    kill(Pid::from_raw(orphan), Signal::SIGKILL).unwrap();
}
