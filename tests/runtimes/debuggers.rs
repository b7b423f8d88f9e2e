//! gdb, strace and perf, from the start or attached later; cores; valgrind.

use crate::{MIB, compiled, data, has};
use precache_tests::methods::METHODS;
use precache_tests::runs::{Program, finish};
use precache_tests::storage::{flat_file, lacking};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Compiled once: tests run at the same time, and gdb reads what another would write.
fn plain() -> OsString {
    static MADE: OnceLock<OsString> = OnceLock::new();
    MADE.get_or_init(|| compiled("plain.c", &["-g", "-pthread"]).into_os_string()).clone()
}

/// What gdb's users type first, as the documentation says: checkpoints are SIGSEGVs to a debugger.
const GDB: [&str; 7] =
    ["gdb", "-q", "-batch", "-ex", "set print inferior-events off", "-ex", "handle SIGSEGV nostop noprint pass"];

fn in_gdb(commands: &[&str], arguments: &[OsString]) {
    if !has("gdb", &["--version"]) {
        return;
    }
    let words = GDB.into_iter().chain(commands.iter().flat_map(|command| ["-ex", command])).chain(["--args"]);
    // The number of the process is another in every run.
    let pipe = "\"$@\" | sed 's/(process [0-9]*)//'";
    let words = ["sh", "-c", pipe, "sh"].into_iter().chain(words).map(OsString::from);
    crate::unnoticed(words.chain(arguments.iter().cloned()));
}

#[test]
fn run_in_gdb() {
    in_gdb(&["break half_way", "run", "printf \"%s\\n\", heap", "continue", "print $_exitcode"], &[plain(), data()]);
}

#[test]
fn a_crash_in_gdb() {
    in_gdb(&["run", "bt", "print $_siginfo.si_signo"], &[plain(), data(), "crash".into()]);
}

#[test]
fn run_in_strace() {
    if has("strace", &["-V"]) {
        crate::unnoticed(["strace".into(), "-f".into(), "-o".into(), "/dev/null".into(), plain(), data()]);
        crate::unnoticed(["strace".into(), "-fo".into(), "/dev/null".into(), plain(), data(), "crash".into()]);
    }
}

/// Its samples are taken in the handler, too, and the trips are faults that it counts.
#[test]
fn run_in_perf() {
    if has("perf", &["--version"]) {
        let record = ["perf", "record", "-q", "-e", "cpu-clock", "--call-graph", "fp", "-o", "/dev/null", "--"];
        crate::unnoticed(record.into_iter().map(OsString::from).chain([plain(), data()]));
        // Dies as the program does. `perf stat` does not: of a program that ends before it waits it tells no signal.
        let faults = ["perf", "record", "-q", "-e", "page-faults", "-o", "/dev/null", "--"];
        crate::unnoticed(faults.into_iter().map(OsString::from).chain([plain(), data(), "crash".into()]));
    }
}

/// There a program would go on after a fault with registers from before it, and read other data.
#[test]
fn nothing_is_armed_under_valgrind() {
    if !has("valgrind", &["--version"]) {
        return;
    }
    let program = Program::new(["valgrind".into(), "-q".into(), plain(), data()]);
    let alone = program.alone();
    for method in METHODS {
        let (under, report) = program.under(&[method, "--distance=1M"]);
        assert_eq!((under.status, under.stdout), (alone.status, alone.stdout.clone()), "{:#}", report.0);
        assert!(report.trips() == 0 && report.text().contains("the program runs under valgrind"), "{:#}", report.0);
    }
}

/// Attaches to the program, which has read half of its file, by `tracer`, and lets it go on. In a script: `$child` is the
/// program's number, `$go` the pipe that it reads from.
fn attached(tracer: &str) {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if !nix::unistd::geteuid().is_root() && !matches!(scope.trim(), "" | "0") {
        return lacking("the right to attach to a process (kernel.yama.ptrace_scope)");
    }
    let script = format!(
        "go=$0/go-$$; mkfifo $go; \"$@\" $go & child=$!; exec 3> $go; {tracer} > /dev/null 2>&1 & tracer=$!; \
         wait $child; status=$?; wait $tracer && rm $go && exit $status"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["sh".into(), "-c".into(), OsString::from(script), folder.path().into(), plain(), data()];
    crate::unnoticed(words);
}

#[test]
fn attached_gdb() {
    if has("gdb", &["--version"]) {
        attached(
            "gdb -q -batch -ex 'handle SIGSEGV nostop noprint pass' -ex \"shell echo > $go\" -ex continue -p $child",
        );
    }
}

#[test]
fn attached_strace() {
    if has("strace", &["-V"]) {
        // It says nothing when it is there.
        let is_traced = "until grep -q 'TracerPid:.*[1-9]' /proc/$child/status; do :; done";
        attached(&format!("{{ ({is_traced}; echo > $go) & exec strace -f -o /dev/null -p $child; }}"));
    }
}

/// What gdb finds in a core: the program's own memory, and the mapped file, on both sides of where reading stopped.
fn found_in(core: &Path) -> String {
    let mut command = Command::new("gdb");
    command.args(["-q", "-batch", "-ex", "print heap", "-ex", "print/x *(unsigned *)(base + 4096 * 1000)"]);
    command.args(["-ex", "print/x *(unsigned *)(base + 4096 * 12000)"]).arg(plain()).arg(core);
    let left = finish(&mut command);
    let text = String::from_utf8_lossy(&left.stdout).into_owned();
    let values: Vec<_> = text.lines().filter(|line| line.starts_with('$')).collect();
    values.join("\n")
}

/// The core that a crash leaves has everything that it has without us: all is opened before the program dies.
#[test]
fn the_core_of_a_crash() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !has("gdb", &["--version"]) || pattern.trim() != "core" {
        lacking("core_pattern that leaves cores in the working folder");
        return;
    }
    let core_of = |command: &mut Command| {
        let folder = tempfile::tempdir().expect("a folder");
        finish(command.current_dir(&folder));
        let core = std::fs::read_dir(&folder)
            .expect("the folder is there")
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("core"));
        found_in(&core.expect("a core was left").path())
    };
    let words: [OsString; 6] =
        ["sh".into(), "-c".into(), "ulimit -c unlimited; exec \"$@\"".into(), "sh".into(), plain(), data()];
    let program = Program::new(words.into_iter().chain(["crash".into()]));
    let alone = core_of(Command::new(&program.0[0]).args(&program.0[1..]));
    assert!(alone.contains("made at run time"), "{alone}");
    for method in METHODS {
        let (mut command, _report) = program.command(&[method, "--distance=1M", "--size=8M"]);
        assert_eq!(without_heap_address(&core_of(&mut command)), without_heap_address(&alone), "{method}");
    }
}

/// gcore of a program that stands half-way: its own memory is there, and it goes on.
#[test]
fn gcore() {
    let folder = tempfile::tempdir().expect("a folder");
    let core = folder.path().join("core");
    let take = format!("gcore {}", core.display());
    if !has("gdb", &["--version"]) {
        return;
    }
    let words =
        GDB.into_iter().chain(["-ex", "break half_way", "-ex", "run", "-ex", &take, "-ex", "continue", "--args"]);
    let program = Program::new(words.map(OsString::from).chain([plain(), flat_file(MIB).into()]));
    for method in METHODS {
        let (left, report) = program.under(&[method, "--distance=1M", "--size=8M"]);
        let said = String::from_utf8_lossy(&left.stdout);
        assert!(said.contains("Saved corefile"), "{left:?}");
        assert!(report.trips() > 0, "{:#}", report.0);
        assert!(found_in(&core).contains("made at run time"), "{method}: {}", found_in(&core));
    }
}

/// Only the value of the pointer may differ from run to run.
fn without_heap_address(found: &str) -> Vec<&str> {
    found.lines().filter(|line| !line.contains("made at run time")).collect()
}
