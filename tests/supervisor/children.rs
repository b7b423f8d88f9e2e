//! Programs that an injected one executes, and that cannot have the library: they run as they do alone, and are told of.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use precache_tests::programs::compile;
use precache_tests::storage::lacking;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{finish, source, supervisor};

/// The program that says hello, built with these flags. A machine that cannot build it skips the test, and says so.
fn hello(folder: &TempDir, flags: &[&str]) -> Option<PathBuf> {
    let program = folder.path().join("hello");
    let built = compile(&source("hello"), &program, flags);
    built.map_err(|why| lacking(&format!("compiler that builds with {flags:?}: {why}"))).ok().map(|()| program)
}

/// What the report of a shell says of programs without the library: the shell runs `command` twice, with `program` as its
/// argument, and both say hello, and nothing else.
fn told(command: &str, program: &Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let script = format!("{command}; {command}; exit");
    let finished = finish(supervisor().arg("--report").arg(&file).args(["sh", "-c", &script]).arg(program));
    assert_eq!((finished.status.code(), &*finished.stdout), (Some(0), "hello\nhello\n"), "{finished:?}");
    let others = finished.stderr.lines().filter(|line| !line.starts_with("precache-run: "));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&str>::new(), "{finished:?}");
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for told in report["session"]["uninjected"].as_array().unwrap() {
        let line = format!(
            "precache-run: {}: not accelerated: {}\n",
            told["file"].as_str().unwrap(),
            told["reason"].as_str().unwrap()
        );
        assert_eq!(finished.stderr.matches(&line).count(), 1, "{finished:?}");
    }
    report["session"]["uninjected"].clone()
}

fn expect(command: &str, program: &Path, reason: &str) {
    let told = told(command, program);
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told}");
    assert_eq!(told[0]["file"], program.to_str().unwrap());
    assert!(told[0]["reason"].as_str().unwrap().contains(reason), "{told}");
}

#[test]
fn ordinary_ones_are_not_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let program = hello(&folder, &[]).expect("cc compiles");
    assert_eq!(told("\"$0\"", &program), json!([]));
    // By another, and by the loader, which has no loader itself.
    assert_eq!(told("/usr/bin/env \"$0\"", &program), json!([]));
    let listed = Command::new("ldd").arg(&program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let loader = listed.split_whitespace().find(|word| word.starts_with('/') && word.contains("/ld-")).unwrap();
    assert_eq!(told(&format!("{loader} \"$0\""), &program), json!([]));
}

#[test]
fn static_ones_run() {
    for flags in [["-static"], ["-static-pie"]] {
        let folder = tempfile::tempdir().unwrap();
        if let Some(program) = hello(&folder, &flags) {
            expect("\"$0\"", &program, "statically linked");
        }
    }
}

/// musl's loader would end the program for the symbols that our library misses.
#[test]
fn those_for_another_c_library_run() {
    let folder = tempfile::tempdir().unwrap();
    let specs = format!("-specs=/usr/lib/{}-linux-musl/musl-gcc.specs", std::env::consts::ARCH);
    if let Some(program) = hello(&folder, &[&specs]) {
        expect("\"$0\"", &program, "not built for the GNU C library");
    }
}

/// As execvp(3) finds them: what is no program is passed over.
#[test]
fn those_behind_a_folder_of_their_name_run() {
    let folder = tempfile::tempdir().unwrap();
    let specs = format!("-specs=/usr/lib/{}-linux-musl/musl-gcc.specs", std::env::consts::ARCH);
    if let Some(program) = hello(&folder, &[&specs]) {
        fs::create_dir_all(folder.path().join("first/hello")).unwrap();
        expect("PATH=${0%/*}/first:${0%/*}:$PATH /usr/bin/env hello", &program, "not built for the GNU C library");
    }
}

/// Their loader would write to stderr that it ignores the library.
#[test]
fn those_for_another_word_size_run() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(program) = hello(&folder, &["-m32"]) {
        expect("\"$0\"", &program, "another machine or word size");
    }
}

#[test]
fn sanitizer_builds_run() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(program) = hello(&folder, &["-fsanitize=address"]) {
        expect("ASAN_OPTIONS=detect_leaks=0 \"$0\"", &program, "is a sanitizer build");
    }
}

#[test]
fn setuid_and_setgid_ones_run() {
    if !nix::unistd::getuid().is_root() {
        return lacking("root user, who alone can give a file away");
    }
    let nobody = 65534;
    for (user, group, mode) in [(Some(nobody), None, 0o4755), (None, Some(nobody), 0o2755)] {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = hello(&folder, &[]).expect("cc compiles");
        chown(&program, user, group).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        expect("\"$0\"", &program, "changes its user, group or capabilities");
        // Where rights are not gained, the library is.
        assert_eq!(told("setpriv --no-new-privs \"$0\"", &program), json!([]));
    }
}

#[test]
fn those_that_cannot_be_read_run() {
    let folder = tempfile::tempdir().unwrap();
    let program = hello(&folder, &[]).expect("cc compiles");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o111)).unwrap();
    // Root may read everything, unless it gives that up.
    let command = match nix::unistd::getuid().is_root() {
        true => "setpriv --bounding-set=-dac_override,-dac_read_search sh -c '\"$0\"; exit' \"$0\"",
        false => "\"$0\"",
    };
    expect(command, &program, "it may be executed and not read");
}

/// Their loader would write to stderr that there is no such library.
#[test]
fn those_under_another_root_run() {
    if !nix::unistd::getuid().is_root() {
        return lacking("root user, who alone can change the root");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = hello(&folder, &[]).expect("cc compiles");
    let listed = Command::new("ldd").arg(&program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let place = folder.path().join(library.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(library, place).unwrap();
    }
    expect("chroot \"${0%/*}\" /hello", &program, "cannot be opened where it runs");
}
