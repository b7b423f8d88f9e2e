//! Programs that cannot be injected run all the same, and the reason is told and reported.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use precache_tests::programs::{compile, executable};
use precache_tests::storage::lacking;
use serde_json::Value;
use tempfile::TempDir;

use crate::stage::{Finished, finish, source, supervisor};

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program that says hello, built with these flags. A machine that cannot build it skips the test, and says so.
    fn hello(&self, flags: &[&str]) -> Option<PathBuf> {
        let program = self.path("hello");
        match compile(&source("hello"), &program, flags) {
            Ok(()) => Some(program),
            Err(why) => {
                lacking(&format!("compiler that builds with {flags:?}: {why}"));
                None
            }
        }
    }

    fn script(&self, content: &str) -> PathBuf {
        let script = self.path("script");
        executable(&script, content);
        script
    }

    /// Runs a program with a report, which is returned too.
    fn run(&self, program: &Path) -> (Finished, Value) {
        let file = self.path("report.json");
        let finished = finish(supervisor().arg("--report").arg(&file).arg(program));
        let report = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        (finished, report)
    }

    fn expect_reason(&self, program: &Path, reason: &str) {
        let (finished, report) = self.run(program);
        assert_eq!(finished.status.code(), Some(0), "{finished:?}");
        assert_eq!(finished.stdout, "hello\n");
        let told = finished.stderr.strip_prefix("precache-run: not accelerated: ").unwrap_or_default();
        assert!(told.contains(reason) && told.matches('\n').count() == 1, "{finished:?}");
        assert_eq!(report["injected"], false);
        assert_eq!(report["reasons"], Value::from(vec![told.trim_end()]));

        let quiet = finish(supervisor().arg("-q").arg(program));
        assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("hello\n", ""));
    }
}

#[test]
fn an_ordinary_program_is_injected() {
    let bench = Bench::new();
    let program = bench.hello(&[]).expect("cc compiles");
    for program in [program.clone(), bench.script(&format!("#!/usr/bin/env {}\n", program.display()))] {
        let (finished, report) = bench.run(&program);
        assert_eq!(finished.stdout, "hello\n");
        assert_eq!(report["injected"], true, "{report}");
        assert_eq!(report["session"]["loaded"], true, "{report}");
        assert_eq!((&report["exit"], &report["signal"]), (&Value::from(0), &Value::Null));
        assert_eq!(report["command"], Value::from(vec![program.to_str().unwrap()]));
    }
}

#[test]
fn programs_for_another_c_library_are_not() {
    let bench = Bench::new();
    let specs = format!("-specs=/usr/lib/{}-linux-musl/musl-gcc.specs", std::env::consts::ARCH);
    if let Some(program) = bench.hello(&[&specs]) {
        bench.expect_reason(&program, "is not built for the GNU C library");
    }
}

#[test]
fn static_programs_are_not() {
    let bench = Bench::new();
    let Some(program) = bench.hello(&["-static"]) else { return };
    bench.expect_reason(&program, "is statically linked");
    // Nor what such a program interprets.
    let script = bench.script(&format!("#!{}\n", program.display()));
    bench.expect_reason(&script, "is statically linked");
}

#[test]
fn static_position_independent_programs_are_not() {
    let bench = Bench::new();
    if let Some(program) = bench.hello(&["-static-pie"]) {
        bench.expect_reason(&program, "is statically linked");
    }
}

#[test]
fn sanitizer_builds_are_not() {
    let builds: [&[&str]; 4] = [
        &["-fsanitize=address"],
        &["-fsanitize=address", "-static-libasan"],
        &["-fsanitize=thread"],
        &["-fsanitize=thread", "-static-libtsan"],
    ];
    for flags in builds {
        let bench = Bench::new();
        if let Some(program) = bench.hello(flags) {
            bench.expect_reason(&program, "is a sanitizer build");
        }
    }
}

/// Its runtime insists on being the first library as much when it is preloaded.
#[test]
fn programs_beside_a_preloaded_sanitizer_are_not() {
    let asked = std::process::Command::new("cc").arg("-print-file-name=libasan.so").output().expect("cc runs");
    let runtime = String::from_utf8(asked.stdout).expect("a path").trim().to_owned();
    if !runtime.starts_with('/') {
        return lacking("libasan.so");
    }
    let run = |command: &mut std::process::Command| {
        let finished = finish(command.env("ASAN_OPTIONS", "detect_leaks=0"));
        assert_eq!((finished.status.code(), &*finished.stdout), (Some(0), "hi\n"), "{finished:?}");
        finished
    };
    let finished = run(supervisor().env("LD_PRELOAD", &runtime).args(["sh", "-c", "echo hi"]));
    assert!(finished.stderr.contains("the runtime of a sanitizer"), "{finished:?}");
    run(supervisor().args(["-q", "sh", "-c", r#"LD_PRELOAD="$LD_PRELOAD:$0" /bin/echo hi"#, &runtime]));
}

#[test]
fn setuid_and_setgid_programs_are_not() {
    if !nix::unistd::getuid().is_root() {
        return lacking("root user, who alone can give a file away");
    }
    let bench = Bench::new();
    fs::set_permissions(bench.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let nobody = 65534;
    for (user, group, mode) in [(Some(nobody), None, 0o4755), (None, Some(nobody), 0o2755)] {
        let program = bench.hello(&[]).expect("cc compiles");
        chown(&program, user, group).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        bench.expect_reason(&program, "changes its user, group or capabilities");
        fs::remove_file(&program).unwrap();
    }
    // Our own user's changes nothing, and the loader keeps our library.
    let program = bench.hello(&[]).expect("cc compiles");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(bench.run(&program).1["injected"], true);
}

#[test]
fn programs_that_cannot_be_read_are_not() {
    let bench = Bench::new();
    let program = bench.hello(&[]).expect("cc compiles");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o111)).unwrap();
    let ours = supervisor();
    let mut command = match nix::unistd::getuid().is_root() {
        true => {
            // Root may read everything, unless it gives that up.
            let mut command = std::process::Command::new("setpriv");
            command.arg("--bounding-set=-dac_override,-dac_read_search").arg(ours.get_program());
            command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command
        }
        false => ours,
    };
    let finished = finish(command.arg(&program));
    assert_eq!((finished.status.code(), &*finished.stdout), (Some(0), "hello\n"), "{finished:?}");
    assert!(finished.stderr.contains("may be executed and not read"), "{finished:?}");
    if nix::unistd::getuid().is_root() {
        // As some systems have sudo.
        chown(&program, Some(65534), None).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4111)).unwrap();
        let finished = finish(&mut command);
        assert!(finished.stderr.contains("changes its user, group or capabilities"), "{finished:?}");
    }
}

#[test]
fn programs_for_another_word_size_are_not() {
    let bench = Bench::new();
    let flags = ["-m32", "-DALONE", "-nostdlib", "-static", "-fno-stack-protector"];
    let Some(program) = bench.hello(&flags) else { return };
    // It never ends, if the kernel runs it at all.
    let file = bench.path("report.json");
    let script = "\"$0\" --report \"$1\" timeout 0.2 true; exec timeout -s KILL 1 \"$0\" \"$2\"";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(precache_tests::programs::precache_run()).arg(file).arg(&program);
    let finished = finish(&mut shell);
    assert!(finished.stderr.contains("another machine or word size"), "{finished:?}");
}

#[test]
fn a_cleared_environment_is_noticed() {
    let bench = Bench::new();
    let program = bench.hello(&[]).expect("cc compiles");
    let script = bench.script(&format!("#!/usr/bin/env -S -i {}\n", program.display()));
    bench.expect_reason(&script, "clears the environment");
}

#[test]
fn a_killed_program_is_reported_as_such() {
    let bench = Bench::new();
    let script = bench.script("#!/bin/sh\nkill -TERM $$\n");
    let (_, report) = bench.run(&script);
    assert_eq!((&report["exit"], &report["signal"]), (&Value::Null, &Value::from("SIGTERM")));
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["mode"], "on");
    assert!(report["wall_seconds"].as_f64().unwrap() > 0.0);
}
