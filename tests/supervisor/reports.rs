//! Where the report goes, and that nothing is left unaccelerated without a word.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use precache_tests::storage::{flat_file, lacking};
use serde_json::Value;

use crate::stage::{finish, supervisor, with_own_var_cache};

/// What a report says of what was not done.
fn reasons(report: &[u8]) -> Vec<String> {
    let report: Value = serde_json::from_slice(report).unwrap();
    report["reasons"].as_array().unwrap().iter().map(|why| why.as_str().unwrap().to_owned()).collect()
}

/// Runs a command; returns the reasons of its report and the lines on stderr, which must be the same.
fn told(options: &[&str], command: &[&str]) -> Vec<String> {
    let report = tempfile::NamedTempFile::new().unwrap();
    let finished = finish(supervisor().arg("--report").arg(report.path()).args(options).args(command));
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
    let reasons = reasons(&fs::read(report.path()).unwrap());
    let lines = finished.stderr.lines().map(|line| line.strip_prefix("precache-run: ").unwrap());
    assert_eq!(lines.map(|line| line.strip_prefix("not accelerated: ").unwrap_or(line)).collect::<Vec<_>>(), reasons);
    reasons
}

/// Maps a file, and reads it.
fn map(file: &Path, protection: &str) -> String {
    format!("from mmap import *; f = open({file:?}, 'r+b'); m = mmap(f.fileno(), 0, prot={protection}); m[:4096]")
}

#[test]
fn what_was_not_accelerated_is_told_in_the_report_and_beside_it() {
    let nothing = told(&[], &["true"]);
    assert!(nothing.len() == 1 && nothing[0].contains("file that qualifies"), "{nothing:?}");
    let stripped = told(&[], &["env", "-u", "LD_PRELOAD", "true"]);
    assert!(stripped.len() == 1 && stripped[0].contains("no process with the library in it"), "{stripped:?}");
    let file = flat_file(64);
    let read_only = map(&file, "PROT_READ");
    assert_eq!(told(&[], &["python3", "-c", &read_only]), Vec::<String>::new());
    let range = format!("--range={}:0..4096", file.display());
    for option in ["--data=*.mdb", "--exclude=flat*", "--min-file=1G", &range] {
        let unwanted = told(&[option], &["python3", "-c", &read_only]);
        assert!(unwanted.len() == 1 && unwanted[0].contains("file that qualifies"), "{option}: {unwanted:?}");
    }
    let mistyped = told(&["--range=/nowhere/flat:0..1M"], &["python3", "-c", &read_only]);
    assert!(mistyped.len() == 1 && mistyped[0].contains("/nowhere/flat: no process mapped"), "{mistyped:?}");
    let refused = told(&[], &["python3", "-c", &map(&file, "PROT_READ | PROT_WRITE")]);
    assert!(refused.len() == 1 && refused[0].contains(": not accelerated: "), "{refused:?}");
    // As PyTorch's workers hand over each batch.
    let shared = "import mmap, os, tempfile; f = tempfile.TemporaryFile(dir='/dev/shm'); f.truncate(64 << 20); \
                  m = mmap.mmap(f.fileno(), 0); m[:4] = b'1234'";
    let memory = told(&[], &["python3", "-c", shared]);
    assert!(memory.len() == 1 && memory[0].contains("file that qualifies"), "{memory:?}");
}

/// File names are bytes, and the report is text.
#[test]
fn a_file_of_any_name_is_told_of() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = folder.path().join(OsStr::from_bytes(b"\xff.mdb"));
    fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let report = folder.path().join("report");
    let read = "import mmap, sys; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); m[:]";
    let mut command = supervisor();
    command.args(["-q", "--report"]).arg(&report).args(["python3", "-c", read]).arg(&file);
    let finished = finish(&mut command);
    assert!(finished.status.success(), "{finished:?}");
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let told = report["session"]["files"][0]["path"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    assert!(told.ends_with("/\u{fffd}.mdb"), "{told}");
}

/// More patterns than the library has room for.
#[test]
fn too_many_patterns_leave_the_program_alone() {
    let pattern = format!("--data={}", "x".repeat(200));
    let long: Vec<&str> = std::iter::repeat_n(&*pattern, 100).collect();
    let why = told(&long, &["true"]);
    assert!(why.len() == 1 && why[0].starts_with("--data, --exclude and --range"), "{why:?}");
}

/// The supervisor's own standard output is the program's once that runs.
#[test]
fn a_report_may_go_to_standard_output_or_a_pipe() {
    let finished = finish(supervisor().args(["-q", "--report", "/dev/stdout", "echo", "hello"]));
    let report = finished.stdout.strip_prefix("hello\n").unwrap();
    assert_eq!(reasons(report.as_bytes()).len(), 1, "{finished:?}");
    let script = "\"$0\" -q --report >(cat >&2) echo hello; wait";
    let mut shell = std::process::Command::new("bash");
    let finished = finish(shell.args(["-c", script]).arg(precache_tests::programs::precache_run()));
    assert_eq!((&*finished.stdout, reasons(finished.stderr.as_bytes()).len()), ("hello\n", 1));
}

/// What is there already is the program's, or other programs'.
#[test]
fn a_report_may_go_to_a_file_that_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    for (options, redirection) in [
        ("--report /dev/stdout", ">> log 2>&-"),
        ("--report /dev/stderr", "2>> log 1>&2"),
        ("--report /proc/self/fd/5", "5>> log 1>&5"),
    ] {
        fs::write(&log, "before\n").unwrap();
        let script = format!("\"$0\" -q {options} echo hello {redirection}");
        let mut shell = std::process::Command::new("sh");
        let finished = finish(
            shell.args(["-c", &script]).arg(precache_tests::programs::precache_run()).current_dir(folder.path()),
        );
        assert_eq!(finished.status.code(), Some(0), "{finished:?}");
        let text = fs::read_to_string(&log).unwrap();
        let report = text.strip_prefix("before\nhello\n").unwrap_or_else(|| panic!("{options}: {text:?}"));
        assert_eq!(reasons(report.as_bytes()).len(), 1);
    }
}

/// Silence does not mean that the report may be missing.
#[test]
fn a_report_that_cannot_be_written_is_told_of_quietly_too() {
    let finished = finish(supervisor().args(["-q", "--report", "/proc/absent/report", "true"]));
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
}

#[test]
fn a_report_in_place_of_another_is_as_accessible() {
    use std::os::unix::fs::PermissionsExt;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
    finish(supervisor().args(["-q", "--report"]).arg(file.path()).arg("true"));
    assert_eq!(reasons(&fs::read(file.path()).unwrap()).len(), 1);
    assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o640);
}

/// A link is followed: what it points to is meant.
#[test]
fn a_report_goes_where_a_link_points() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    finish(supervisor().args(["-q", "--report"]).arg(&link).arg("true"));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(reasons(&fs::read(&file).unwrap()).len(), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left there");
}

#[test]
fn a_report_that_cannot_be_written_is_told() {
    let finished = finish(supervisor().args(["--report", "/proc/absent/report", "sh", "-c", "exit 3"]));
    assert_eq!(finished.status.code(), Some(3));
    assert!(finished.stderr.contains("cannot write the report to \"/proc/absent/report\""), "{finished:?}");
}

/// What was there stays, and nothing else is left beside it.
#[test]
fn a_report_for_a_full_file_system_is_told() {
    if !nix::unistd::getuid().is_root() {
        return lacking("root's rights, to mount file systems");
    }
    let script = "cd /var/cache; echo before > report; head -c 1M /dev/zero > zeros 2> /dev/null; \
                  trap 'cat report; ls; exit $status' EXIT; \
                  \"$0\" --report /var/cache/report sh -c 'exit 3'; status=$?";
    let mut shell = std::process::Command::new("sh");
    // The library stays in memory.
    shell.args(["-c", script]).arg(precache_tests::programs::precache_run()).env("XDG_CACHE_HOME", "/proc");
    let finished = finish(&mut with_own_var_cache(&shell, "size=64k"));
    assert_eq!(finished.status.code(), Some(3), "{finished:?}");
    assert_eq!(finished.stdout, "before\nreport\nzeros\n");
    assert!(
        finished.stderr.contains("cannot write the report to \"/var/cache/report\": No space left"),
        "{finished:?}"
    );
}
