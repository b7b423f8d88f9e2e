//! What can be known about writers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::support::*;
use super::*;

#[test]
fn a_writer_is_refused() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    // Open for writing, and idle.
    let script = "import lmdb, sys\nenv = lmdb.open(sys.argv[1])\nprint('open', flush=True)\nsys.stdin.read()";
    let mut writer = begun(PYTHON, &["-c", script, text(&db)]);
    let refused = fail(&["lockfile", "replicate", text(&db), text(&out), "-n", "1", "--assume-read-only"], 1);
    assert!(refused.contains(&format!("open for writing in process {}", writer.id())), "{refused}");
    assert!(refused.contains("would not protect the pages that they read from being reused"), "{refused}");
    assert!(!out.exists());
    let check = run(&["lockfile", "check", text(&db), "--watch", "0", "--json"]);
    assert_eq!(check.status.code(), Some(1));
    let report = json(&String::from_utf8(check.stdout).unwrap());
    assert_eq!(report["writers"][0]["pid"], writer.id());
    assert_eq!(report["locks"], "honoured");
    writer.kill().unwrap();
    writer.wait().unwrap();
    let report = json(&succeed(&["lockfile", "check", text(&db), "--watch", "0", "--json"]));
    assert_eq!(report["writers"], serde_json::json!([]));
    assert_eq!(report["moved"], false);
}

/// What a writer leaves where its process is not seen: the transaction number moves.
#[test]
fn a_commit_is_noticed_while_watching() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, _) = database();
    let script = "import lmdb, select, sys\nenv = lmdb.open(sys.argv[1])\nprint('open', flush=True)\n\
                  while not select.select([sys.stdin], [], [], 0)[0]:\n  with env.begin(write=True) as t: t.put(b'k', b'v')\n";
    let mut writer = begun(PYTHON, &["-c", script, text(&db)]);
    let check = run(&["lockfile", "check", text(&db), "--watch", "1", "--json"]);
    let report = json(&String::from_utf8(check.stdout).unwrap());
    drop(writer.stdin.take());
    writer.wait().unwrap();
    assert_eq!((check.status.code(), &report["moved"]), (Some(1), &true.into()), "{report}");
}

/// A container, and a /proc that shows nobody but oneself: no writer seen is not no writer.
#[test]
fn nothing_is_known_of_processes_that_are_hidden() {
    let in_container = ["--pid", "--fork", "--mount-proc"];
    let hiding =
        "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups -- \"$@\"";
    if !have_py_lmdb() || !is_root() || !have("unshare", &[&in_container[..], &["true"]].concat()) {
        return;
    }
    let (dir, db, out) = database();
    let tool = for_others(dir.path());
    let nobodys = dir.path().join("nobodys");
    fs::create_dir(&nobodys).unwrap();
    fs::set_permissions(&nobodys, fs::Permissions::from_mode(0o777)).unwrap();
    let ways = [(&in_container[..], "container", &out), (&["--mount", "sh", "-c", hiding, "sh"], "hidepid", &nobodys)];
    for (way, why, out) in ways {
        let within = |args: &[&str]| Command::new("unshare").args(way).arg(&tool).args(args).output().unwrap();
        let refused = within(&["lockfile", "replicate", text(&db), text(out), "-n", "1"]);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains(why) && error.contains("--assume-read-only"), "{error}");
        assert!(error.contains("a writer would reuse them, and readers would see garbage"), "{error}");
        let check = within(&["lockfile", "check", "--watch", "0", text(&db)]);
        let report = String::from_utf8(check.stdout).unwrap();
        assert!(report.contains(why) && !report.contains("safe"), "{report} {:?}", check.stderr);
        let made = within(&["lockfile", "replicate", text(&db), text(out), "-n", "1", "--assume-read-only"]);
        assert!(made.status.success(), "{made:?}");
    }
}

#[test]
fn a_check_without_an_answer_is_neither_yes_nor_no() {
    for db in ["/no/such/database", "/etc/passwd"] {
        let error = fail(&["lockfile", "check", "--watch", "0", db], 3);
        assert!(error.starts_with("precache-lmdb: /") && !error.contains("error:"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let usage = fail(&["lockfile", "rank-dir", "/tmp"], 2);
    assert!(usage.starts_with("precache-lmdb: no rank in the environment"), "{usage}");
}

/// The processes that use this machine's files from another one by way of its kernel are not here.
#[test]
fn what_an_nfs_server_shows_others_is_not_known() {
    let script =
        "mount -t tmpfs none /var/lib && mkdir /var/lib/nfs && printf \"$0\" > /var/lib/nfs/etab && exec \"$@\"";
    if !have_py_lmdb() || !is_root() || !have("unshare", &["--mount", "mount", "-t", "tmpfs", "none", "/var/lib"]) {
        return;
    }
    let (_dir, db, out) = database();
    let tool = env!("CARGO_BIN_EXE_precache-lmdb");
    let with_exports = |exports: &str, args: &[&str]| {
        Command::new("unshare").args(["--mount", "sh", "-c", script, exports, tool]).args(args).output().unwrap()
    };
    let check = ["lockfile", "check", "--watch", "0", text(&db)];
    let replicate = ["lockfile", "replicate", text(&db), text(&out), "-n", "1"];
    let report = |exports| String::from_utf8(with_exports(exports, &check).stdout).unwrap();
    let table = "/data\\t*(ro,sync,wdelay,hide,root_squash)\\n";
    assert!(report("").contains("is local to this machine"), "{}", report(""));
    assert!(
        report(table).contains("unknown on other machines") && !report(table).contains("safe:"),
        "{}",
        report(table)
    );
    let refused = with_exports(table, &replicate);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("this machine is an NFS server") && error.contains("--assume-read-only"), "{error}");
}

/// Some process always has a file open on a server that is gone: asking of that file would take for ever.
#[test]
fn a_server_that_does_not_answer_keeps_nobody_waiting() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, _) = database();
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("held"), "").unwrap();
    let Some(mount) = slowfs::mount(&source, &dir.path().join("mount"), &["--writable"]) else { return };
    // What was written makes the kernel ask for the file's status again.
    let script = "exec 3<> \"$1\" && printf x >&3 && echo open && read end";
    let mut holder = begun("sh", &["-c", script, "sh", text(&mount.path.join("held"))]);
    let stopped = mount.stop();
    // Far longer than it takes: only a test that fails waits so long.
    let mut tool = Command::new("timeout");
    tool.args(["--signal=KILL", "120", env!("CARGO_BIN_EXE_precache-lmdb"), "lockfile", "check", "--watch", "0"]);
    let output = tool.arg(&db).output().unwrap();
    drop(stopped);
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
}
