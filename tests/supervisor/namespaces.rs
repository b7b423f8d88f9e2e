//! Started in namespaces in which others are not what they seem, the program runs all the same.

use std::fs;
use std::process::{Command, Stdio};

use precache_tests::optimizer::apart;
use precache_tests::programs::precache_run;
use precache_tests::storage::{flat_file, lacking};
use serde_json::Value;

use crate::stage::{Finished, by, finish, quietly, supervisor};

/// The command by unshare(1) with these arguments, which nothing of it outlasts. `None`, said: there is no right to do so.
fn unshared(arguments: &[&str], command: &Command) -> Option<Command> {
    let can = Command::new("unshare").args(arguments).args(["--fork", "true"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        lacking(&format!("right to unshare {arguments:?}"));
        return None;
    }
    Some(by(&[&["timeout", "--signal=KILL", "120", "unshare"], arguments].concat(), command))
}

/// Also the report, if there is one.
fn reported(command: impl FnOnce(&str) -> Option<Command>) -> Option<(Finished, Value)> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let finished = finish(&mut command(file.to_str().expect("a plain path"))?);
    let report = fs::read(file).map_or(Value::Null, |text| serde_json::from_slice(&text).expect("JSON"));
    Some((finished, report))
}

/// The first child would be the init of a namespace in which no second one could be started.
#[test]
fn in_place_of_us_where_children_start_in_another_pid_namespace() {
    let inner = quietly(["sh", "-c", "echo $((1 + 1)); exit 3"]);
    let Some(mut command) = unshared(&["--user", "--map-root-user", "--pid"], &inner) else { return };
    let finished = finish(&mut command);
    assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(3), "2\n"), "{finished:?}");
    let mut told = supervisor();
    told.arg("true");
    let told = finish(&mut unshared(&["--user", "--map-root-user", "--pid"], &told).expect("as before"));
    assert!(told.status.success() && told.stderr.contains("in another PID namespace than itself"), "{told:?}");
}

/// As a container's first process it is given whoever loses its parent; a shell in its place would see to them.
#[test]
fn who_loses_its_parent_leaves_the_process_table() {
    let script = "orphan=$(sh -c 'true & echo $!'); while [ -e /proc/$orphan ]; do :; done; echo gone";
    let inner = quietly(["sh", "-c", script]);
    let arguments = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let Some(mut command) = unshared(&arguments, &inner) else { return };
    let finished = finish(&mut command);
    assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(0), "gone\n"), "{finished:?}");
}

/// Everybody whom the namespace does not map would pass for us.
#[test]
fn nothing_is_shared_where_our_user_may_be_anybody() {
    let ran = reported(|file| {
        let mut inner = supervisor();
        unshared(&["--user"], inner.args(["--report", file, "true"]))
    });
    // Nor can it write a report where it is nobody's user.
    let Some((finished, _)) = ran else { return };
    assert!(finished.status.success() && finished.stderr.contains("may be anybody"), "{finished:?}");
}

/// By the number that we have in another PID namespace, the loader would find somebody else's descriptor.
#[test]
fn the_library_in_memory_where_proc_is_of_another_pid_namespace() {
    let ran = reported(|file| {
        let mut inner = supervisor();
        let inner = by(&["env", "XDG_CACHE_HOME=/dev/null/none"], inner.args(["--report", file, "true"]));
        unshared(&["--user", "--map-root-user", "--pid", "--fork"], &inner)
    });
    let Some((finished, report)) = ran else { return };
    assert!(finished.status.success() && !finished.stderr.contains("ld.so"), "{finished:?}");
    assert_eq!(report["session"]["loaded"], true, "{report:#}");
}

/// An optimizer that was started in another one has no number for those outside, by which it could watch them.
#[test]
fn beside_an_optimizer_of_another_pid_namespace() {
    const SCRIPT: &str = r#"
        mkfifo "$2/up" "$2/down"
        unshare --pid --fork "$0" -q -- sh -c 'echo > "$0/up"; read over < "$0/down"' "$2" & read up < "$2/up"
        "$0" --report "$1" python3 -c 'import mmap, sys
file = open(sys.argv[1])
m = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(m[at] for at in range(0, len(m), 4096))' "$3"
        echo > "$2/down"; wait"#;
    let folder = tempfile::tempdir().expect("a folder");
    let ran = reported(|report| {
        let mut script = Command::new("sh");
        script.args(["-c", SCRIPT]).arg(precache_run()).arg(report).arg(folder.path()).arg(flat_file(64));
        unshared(&["--user", "--map-root-user", "--mount"], &script)
    });
    let Some((finished, report)) = ran else { return };
    assert_eq!(report["reasons"], Value::from(Vec::<String>::new()), "{finished:?}");
    assert!(report["session"]["readers"][0]["trips"].as_u64() > Some(0), "{report:#}");
}

/// The parent ignores SIGCHLD: then the kernel reaps what we start.
#[test]
fn an_optimizer_is_started_where_children_are_not_waited_for() {
    const IGNORE: &str =
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])";
    let ran = reported(|file| {
        let mut inner = supervisor();
        apart(&by(&["python3", "-c", IGNORE], inner.args(["--report", file, "true"])))
    });
    let Some((finished, report)) = ran else { return };
    assert!(finished.status.success() && report["session"]["loaded"] == true, "{finished:?} {report:#}");
}
