//! Each signal reaches the program once: sent to the supervisor, to the group, or by the program itself.

use std::process::Command;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::stage::{Running, until};

const FORWARDED: [Signal; 12] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGTERM,
    Signal::SIGCONT,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
    Signal::SIGURG,
    Signal::SIGABRT,
];

/// Sends the signal that ends the announcing program, and returns all that it got before.
fn end(running: Running) -> Vec<String> {
    let marker = libc::SIGRTMIN() + 5;
    // SAFETY: kill(2) only sends.
    assert_eq!(unsafe { libc::kill(running.pid(), marker) }, 0);
    let (status, rest) = running.rest();
    assert_eq!(status.code(), Some(0), "{rest}");
    let mut lines: Vec<_> = rest.lines().map(str::to_owned).collect();
    assert_eq!(lines.pop(), Some(format!("got {marker}")));
    lines
}

fn got(signal: Signal) -> String {
    format!("got {}", signal as i32)
}

#[test]
fn a_signal_to_the_supervisor_arrives_once() {
    for signal in FORWARDED {
        let (running, _) = Running::announce(&[]);
        kill(Pid::from_raw(running.pid()), signal).unwrap();
        assert_eq!(end(running), [got(signal)]);
    }
}

#[test]
fn a_signal_to_the_group_arrives_once() {
    for signal in FORWARDED {
        let (running, _) = Running::announce(&[]);
        killpg(Pid::from_raw(running.pid()), signal).unwrap();
        assert_eq!(end(running), [got(signal)]);
    }
}

#[test]
fn signals_to_both_arrive_as_often_as_without_us() {
    let (mut running, _) = Running::announce(&[]);
    let supervisor = Pid::from_raw(running.pid());
    // Each waits until the one before is through, here and there, so that none merge.
    for round in 0..200 {
        match round % 2 {
            0 => kill(supervisor, Signal::SIGUSR1).unwrap(),
            _ => killpg(supervisor, Signal::SIGUSR1).unwrap(),
        }
        assert_eq!(running.line(), got(Signal::SIGUSR1));
        until("the supervisor is done with it", || is_idle(running.pid()));
    }
    assert_eq!(end(running), Vec::<String>::new());
}

/// Whether the supervisor has read all its signals and waits in poll(2) again, where it has nothing left to do.
fn is_idle(pid: i32) -> bool {
    let read = |name| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    // In this order: what is not pending any more is on its way until the supervisor waits again.
    read("status").contains("ShdPnd:\t0000000000000000") && {
        let number = read("syscall").split(' ').next().and_then(|number| number.parse().ok());
        number == Some(POLL)
    }
}

#[cfg(target_arch = "x86_64")]
const POLL: libc::c_long = libc::SYS_poll;
#[cfg(not(target_arch = "x86_64"))]
const POLL: libc::c_long = libc::SYS_ppoll;

#[test]
fn a_storm_on_the_group_arrives_once_each() {
    // Different signals, so that they do not merge, sent while the supervisor is at work on the ones before.
    for _ in 0..50 {
        let (running, _) = Running::announce(&[]);
        let group = Pid::from_raw(running.pid());
        for signal in [Signal::SIGUSR1, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR2, Signal::SIGINT] {
            killpg(group, signal).unwrap();
        }
        let mut lines = end(running);
        lines.sort();
        let mut expected = [1, 2, 10, 12, 15].map(|signal| format!("got {signal}"));
        expected.sort();
        assert_eq!(lines, expected);
    }
}

#[test]
fn queued_signals_all_arrive() {
    let (running, _) = Running::announce(&[]);
    let signal = libc::SIGRTMIN() + 1;
    for round in 0..20 {
        let receiver = if round % 2 == 0 { running.pid() } else { -running.pid() };
        // SAFETY: kill(2) only sends.
        assert_eq!(unsafe { libc::kill(receiver, signal) }, 0);
    }
    assert_eq!(end(running), vec![format!("got {signal}"); 20]);
}

#[test]
fn the_group_is_known_by_a_sentry_and_not_by_luck() {
    // Without it the program gets a signal to the group twice, and the other tests could see that: real-time signals
    // do not merge.
    let (running, _) = Running::announce(&[]);
    let sentry = sentry_of(running.pid());
    kill(Pid::from_raw(sentry), Signal::SIGKILL).unwrap();
    until("the sentry is gone", || crate::stage::state(sentry).is_none());
    let signal = libc::SIGRTMIN() + 1;
    // SAFETY: kill(2) only sends.
    assert_eq!(unsafe { libc::kill(-running.pid(), signal) }, 0);
    assert_eq!(end(running), vec![format!("got {signal}"); 2]);
}

#[test]
fn a_stopped_sentry_is_continued() {
    let (mut running, _) = Running::announce(&[]);
    let sentry = sentry_of(running.pid());
    kill(Pid::from_raw(sentry), Signal::SIGSTOP).unwrap();
    until("the sentry has stopped", || crate::stage::state(sentry) == Some('T'));
    for _ in 0..2 {
        killpg(Pid::from_raw(running.pid()), Signal::SIGUSR1).unwrap();
        assert_eq!(running.line(), got(Signal::SIGUSR1));
        until("the supervisor is done with it", || is_idle(running.pid()));
    }
    assert_eq!(end(running), Vec::<String>::new());
}

fn sentry_of(supervisor: i32) -> i32 {
    let find = || {
        let children = crate::stage::children(supervisor);
        children.into_iter().find(|(_, name)| name == "precache-sentry")
    };
    until("there is a sentry", || find().is_some());
    find().unwrap().0
}

#[test]
fn timeout_ends_a_program_as_without_us() {
    // It signals the supervisor and then the group.
    let victim = crate::stage::victim("announce");
    let mut command = Command::new("timeout");
    command
        .args(["--signal=USR1", "--kill-after=1", "0.3"])
        .arg(precache_tests::programs::precache_run())
        .arg("-q")
        .arg(victim);
    let (_, lines) = Running::start(&mut command).rest();
    let times = lines.matches("got 10\n").count();
    // Alone it is once or twice, according to whether they merge.
    assert!((1..=2).contains(&times), "{lines}");
}

#[test]
fn what_the_program_sends_its_parent_passes_us() {
    // The test's shell is the parent that the program would have had.
    let script = format!(
        "trap 'echo parent' USR1; {} -q -- sh -c 'kill -USR1 $PPID; exit 3' & wait $!; wait $!; echo $?",
        precache_tests::programs::precache_run().display()
    );
    let (_, lines) = Running::start(Command::new("sh").args(["-c", &script])).rest();
    assert!(lines.contains("parent\n") && lines.ends_with("3\n"), "{lines}");
}
