//! Replicas of the lock file, with real readers: what fails without them works with them.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::*;
use tempfile::TempDir;

/// A database of a few records, and an OUT that does not exist yet.
fn database() -> (TempDir, PathBuf, PathBuf) {
    let dir = directory();
    let db = dir.path().join("db");
    make(&db, 1000, 500, false);
    let out = dir.path().join("out");
    (dir, db, out)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn replicate(db: &Path, out: &Path, count: u32) {
    succeed(&["lockfile", "replicate", text(db), text(out), "-n", &count.to_string(), "--assume-read-only"]);
}

/// Which rank a launcher's variables mean.
fn rank_dir(out: &Path, variables: &[(&str, &str)]) -> String {
    let output = tool().args(["lockfile", "rank-dir", text(out)]).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn a_replica_reads_as_its_original() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    replicate(&db, &out, 3);
    let expected = python_ok(READ_ALL, &[text(&db)]);
    for rank in ["0", "1", "2"] {
        let replica = succeed(&["lockfile", "rank-dir", text(&out), "--rank", rank]);
        assert_eq!(python_ok(READ_ALL, &[replica.trim_end()]), expected);
        let lock = out.join(format!("rank-000{rank}/lock.mdb"));
        assert!(fs::symlink_metadata(&lock).unwrap().is_file());
        assert!(fs::metadata(lock).unwrap().len() > 0, "the reader should have made its table there");
    }
    // Again, and more of them: what is there stays.
    replicate(&db, &out, 5);
    assert_eq!(names(&out).len(), 5 + 1);
}

#[test]
fn a_database_that_is_a_file() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("train.mdb");
    python_ok(
        "import lmdb, sys\nwith lmdb.open(sys.argv[1], subdir=False).begin(write=True) as t: t.put(b'k', b'v')",
        &[text(&db)],
    );
    let out = dir.path().join("out");
    replicate(&db, &out, 1);
    let replica = succeed(&["lockfile", "rank-dir", text(&out), "--rank", "0"]);
    assert!(replica.trim_end().ends_with("/rank-0000/train.mdb"));
    assert_eq!(python_ok(READ_ALL, &[replica.trim_end()]), python_ok(READ_ALL, &[text(&db)]));
    assert!(out.join("rank-0000/train.mdb-lock").is_file());
    succeed(&["lockfile", "remove", text(&out)]);
    assert!(!out.exists());
}

#[test]
fn the_rank_comes_from_the_launcher() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    replicate(&db, &out, 4);
    let at = |rank: u32| text(&out.join(format!("rank-{rank:04}"))).to_owned();
    assert_eq!(rank_dir(&out, &[("SLURM_PROCID", "3")]), at(3));
    assert_eq!(rank_dir(&out, &[("PMI_RANK", "2"), ("SLURM_PROCID", "0")]), at(2));
    assert_eq!(rank_dir(&out, &[("OMPI_COMM_WORLD_RANK", "1"), ("PMI_RANK", "2"), ("SLURM_PROCID", "0")]), at(1));
    assert!(fail(&["lockfile", "rank-dir", text(&out)], 2).contains("--rank N"));
    assert!(fail(&["lockfile", "rank-dir", text(&out), "--rank", "4"], 1).contains("-n 5"));
}

#[test]
fn sixty_four_processes_at_once() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    let start = || {
        let mut tool = tool();
        tool.args(["lockfile", "replicate", text(&db), text(&out), "-n", "64", "--assume-read-only"]);
        tool.stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..64).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let expected: BTreeSet<_> =
        (0..64).map(|rank| format!("rank-{rank:04}")).chain([".precache-replicas".into()]).collect();
    assert_eq!(names(&out), expected);
    for rank in 0..64 {
        let replica = out.join(format!("rank-{rank:04}"));
        assert_eq!(names(&replica), [".precache-replica", "data.mdb", "lock.mdb"].map(String::from).into());
        assert_eq!(fs::canonicalize(replica.join("data.mdb")).unwrap(), fs::canonicalize(db.join("data.mdb")).unwrap());
    }
}

#[test]
fn owner_mode_and_access_list_are_the_originals() {
    if !have_py_lmdb() || !is_root() || !have("setfacl", &["--version"]) {
        return;
    }
    let (_dir, db, out) = database();
    let lock = db.join("lock.mdb");
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::chown(&lock, Some(12345), Some(54321)).unwrap();
    let set = Command::new("setfacl").args(["-m", "u:777:rw,g:888:r", text(&lock)]).status().unwrap();
    if !set.success() {
        eprintln!("skipped: no access control lists on the file system of the temporary directory");
        return;
    }
    replicate(&db, &out, 1);
    let copy = out.join("rank-0000/lock.mdb");
    let (original, metadata) = (fs::metadata(&lock).unwrap(), fs::metadata(&copy).unwrap());
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode()), (original.uid(), original.gid(), original.mode()));
    let list = |path: &Path| {
        Command::new("getfacl").args(["--omit-header", "--absolute-names", text(path)]).output().unwrap().stdout
    };
    assert_eq!(list(&copy), list(&lock));
    assert!(String::from_utf8(list(&copy)).unwrap().contains("user:777:rw-"));
}

/// A directory that is closed to all but its owner and one user: both may use the replicas that root makes.
#[test]
fn whoever_may_enter_the_directory_may_enter_its_replicas() {
    if !have_py_lmdb() || !is_root() || !have("setfacl", &["--version"]) {
        return;
    }
    let (_dir, db, out) = database();
    fs::set_permissions(&db, fs::Permissions::from_mode(0o1702)).unwrap();
    std::os::unix::fs::chown(&db, Some(12345), Some(54321)).unwrap();
    std::os::unix::fs::chown(db.join("lock.mdb"), Some(12345), Some(54321)).unwrap();
    for (entry, path) in [("u:65534:rx", db.clone()), ("u:65534:rw", db.join("lock.mdb"))] {
        if !Command::new("setfacl").args(["-m", entry]).arg(path).status().unwrap().success() {
            eprintln!("skipped: no access control lists on the file system of the temporary directory");
            return;
        }
    }
    let script = "umask 077 && exec \"$0\" lockfile replicate \"$1\" \"$2\" -n 1 --assume-read-only";
    let tool = env!("CARGO_BIN_EXE_precache-lmdb");
    assert!(Command::new("sh").args(["-c", script, tool, text(&db), text(&out)]).status().unwrap().success());
    let replica = out.join("rank-0000");
    assert_eq!(fs::metadata(&replica).unwrap().mode() & 0o7777, 0o750, "the group's bits are the list's mask");
    let expected = python_ok(READ_ALL, &[text(&db)]);
    let owner = || {
        let mut owner = Command::new("setpriv");
        owner.args(["--reuid=12345", "--regid=54321", "--clear-groups", "--", PYTHON]);
        owner
    };
    for mut reader in [as_nobody(PYTHON), owner()] {
        let output = reader.args(["-c", READ_ALL, text(&replica)]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    }
    let mut stranger = Command::new("setpriv");
    stranger.args(["--reuid=777", "--regid=54321", "--clear-groups", "--", "ls", text(&replica)]);
    assert!(!stranger.output().unwrap().status.success(), "the owner's group may not enter the original");
}

#[test]
fn a_writer_is_refused() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    // Open for writing, and idle.
    let script = "import lmdb, sys\nenv = lmdb.open(sys.argv[1])\nprint('open', flush=True)\nsys.stdin.read()";
    let mut writer = Command::new(PYTHON)
        .args(["-c", script, text(&db)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_line(&mut writer);
    let refused = fail(&["lockfile", "replicate", text(&db), text(&out), "-n", "1", "--assume-read-only"], 1);
    assert!(refused.contains(&format!("open for writing in process {}", writer.id())), "{refused}");
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
    let mut writer = Command::new(PYTHON)
        .args(["-c", script, text(&db)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_line(&mut writer);
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
        let check = within(&["lockfile", "check", "--watch", "0", text(&db)]);
        let report = String::from_utf8(check.stdout).unwrap();
        assert!(report.contains(why) && !report.contains("safe"), "{report} {:?}", check.stderr);
        let made = within(&["lockfile", "replicate", text(&db), text(out), "-n", "1", "--assume-read-only"]);
        assert!(made.status.success(), "{made:?}");
    }
}

fn wait_for_line(child: &mut Child) -> String {
    use std::io::BufRead;
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn remove_deletes_only_what_replicate_made() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, out) = database();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("notes"), "mine").unwrap();
    fs::create_dir(out.join("rank-0009")).unwrap();
    symlink(&db, out.join("rank-0008")).unwrap();
    replicate(&db, &out, 2);

    fs::write(out.join("rank-0001/mine"), "").unwrap();
    assert!(fail(&["lockfile", "remove", text(&out)], 1).contains("holds more than replicate made (mine)"));
    assert!(out.join("rank-0000").exists(), "an error must leave everything in place");
    fs::remove_file(out.join("rank-0001/mine")).unwrap();

    let script =
        "import lmdb, sys\nenv = lmdb.open(sys.argv[1], readonly=True)\nprint('open', flush=True)\nsys.stdin.read()";
    let replica = out.join("rank-0000");
    let mut reader = Command::new(PYTHON)
        .args(["-c", script, text(&replica)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_line(&mut reader);
    assert!(fail(&["lockfile", "remove", text(&out)], 1).contains("a reader has it open"));
    drop(reader.stdin.take());
    reader.wait().unwrap();

    succeed(&["lockfile", "remove", text(&out)]);
    assert_eq!(names(&out), ["notes", "rank-0008", "rank-0009"].map(String::from).into());
    assert!(db.join("data.mdb").exists() && db.join("lock.mdb").exists());
    drop(dir);
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

#[test]
fn remove_finishes_what_was_left_half_done() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    replicate(&db, &out, 4);
    // What somebody deleted, what a killed replicate left, and what a killed remove left.
    fs::remove_file(out.join("rank-0001/lock.mdb")).unwrap();
    fs::remove_file(out.join("rank-0002/data.mdb")).unwrap();
    for missing in ["0001", "0002"] {
        let error = fail(&["lockfile", "rank-dir", text(&out), "--rank", missing], 1);
        assert!(error.contains("lacks its"), "{error}");
    }
    fs::create_dir(out.join(".precache-unfinished-empty")).unwrap();
    fs::create_dir(out.join(".precache-unfinished-noted")).unwrap();
    fs::write(out.join(".precache-unfinished-noted/.precache-replica"), "lock.m").unwrap();
    fs::rename(out.join("rank-0003"), out.join(".precache-unfinished-gone")).unwrap();
    succeed(&["lockfile", "remove", text(&out)]);
    assert!(!out.exists());
    succeed(&["lockfile", "remove", text(&out)]);
}

#[test]
fn remove_spares_what_took_the_place_of_the_link() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    replicate(&db, &out, 2);
    let place = out.join("rank-0001/data.mdb");
    fs::remove_file(&place).unwrap();
    fs::write(&place, "precious").unwrap();
    assert!(fail(&["lockfile", "remove", text(&out)], 1).contains("(data.mdb)"));
    assert_eq!(fs::read(&place).unwrap(), b"precious");
    // Nor does it touch a directory that never was an OUT.
    assert!(fail(&["lockfile", "remove", text(&db)], 1).contains("nothing in it was made by replicate"));
    assert!(db.join("data.mdb").exists());
}

#[test]
fn many_remove_at_once() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    for _ in 0..5 {
        replicate(&db, &out, 64);
        let start = || tool().args(["lockfile", "remove", text(&out)]).stderr(Stdio::piped()).spawn().unwrap();
        let children: Vec<Child> = (0..16).map(|_| start()).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        assert!(!out.exists());
    }
}

#[test]
fn only_databases_are_replicated() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, out) = database();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("odd/data.mdb")).unwrap();
    fs::write(at("random.mdb"), [0xA5; 9000]).unwrap();
    nix::unistd::mkfifo(&at("fifo.mdb"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (other, why) in [
        (Path::new("/etc/passwd"), "not an LMDB data file"),
        (&at("random.mdb"), "not an LMDB data file"),
        (&at("odd"), "not a regular file"),
        (&at("fifo.mdb"), "not a regular file"),
    ] {
        let error = fail(&["lockfile", "replicate", text(other), text(&out), "-n", "1", "--assume-read-only"], 1);
        assert!(error.contains(why), "{error}");
        assert!(!out.exists());
    }
    let file = at("random.mdb");
    let onto_a_file = ["lockfile", "replicate", text(&db), text(&file), "-n", "1", "--assume-read-only"];
    let error = fail(&onto_a_file, 1);
    assert!(error.contains("OUT must be a directory"), "{error}");
}

#[test]
fn a_file_named_data_mdb_stays_a_file() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("data.mdb");
    let script =
        "import lmdb, sys\nwith lmdb.open(sys.argv[1], subdir=False).begin(write=True) as t: t.put(b'k', b'v')";
    python_ok(script, &[text(&db)]);
    let out = dir.path().join("out");
    replicate(&db, &out, 1);
    let replica = succeed(&["lockfile", "rank-dir", text(&out), "--rank", "0"]);
    assert!(replica.trim_end().ends_with("/rank-0000/data.mdb"), "{replica}");
    assert_eq!(python_ok(READ_ALL, &[replica.trim_end()]), python_ok(READ_ALL, &[text(&db)]));
    let made = [".precache-replica", "data.mdb", "data.mdb-lock"].map(String::from).into();
    assert_eq!(names(&out.join("rank-0000")), made);
}

#[test]
fn what_is_in_the_way_stays() {
    if !have_py_lmdb() {
        return;
    }
    let (dir, db, out) = database();
    fs::create_dir_all(out.join("rank-0000")).unwrap();
    fs::write(out.join("rank-0000/data.mdb"), "precious").unwrap();
    let args = ["lockfile", "replicate", text(&db), text(&out), "-n", "1", "--assume-read-only"];
    assert!(fail(&args, 1).contains("not a replica that this program made"));
    assert_eq!(fs::read(out.join("rank-0000/data.mdb")).unwrap(), b"precious");

    let (other, out) = (dir.path().join("other"), dir.path().join("out2"));
    make(&other, 1, 1, false);
    replicate(&db, &out, 1);
    let args = ["lockfile", "replicate", text(&other), text(&out), "-n", "1", "--assume-read-only"];
    assert!(fail(&args, 1).contains("a replica of"));
}

#[test]
fn a_reader_who_may_not_write_the_lock_file() {
    if !have_py_lmdb() || !is_root() || !have("mdb_dump", &["-V"]) {
        return;
    }
    let (dir, db, _) = database();
    let tool = for_others(dir.path());
    let out = dir.path().join("nobodys");
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o777)).unwrap();
    let read = |path: &str| as_nobody(PYTHON).args(["-c", READ_ALL, path]).output().unwrap();
    let dump = |path: &str| as_nobody("mdb_dump").arg(path).output().unwrap();

    for without in [read(text(&db)), dump(text(&db))] {
        assert!(!without.status.success());
        assert!(String::from_utf8_lossy(&without.stderr).contains("Permission denied"), "{without:?}");
    }
    let doctor = as_nobody(&tool).args(["lmdb", "doctor", text(&db)]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("!! lock file") && doctor.contains("$ precache lockfile replicate"), "{doctor}");

    let replicate = |more: &[&str]| {
        let args = ["lockfile", "replicate", text(&db), text(&out), "-n", "2"];
        as_nobody(&tool).args(args).args(more).output().unwrap()
    };
    let doubt = replicate(&[]);
    assert!(String::from_utf8_lossy(&doubt.stderr).contains("--assume-read-only"), "{doubt:?}");
    let made = replicate(&["--assume-read-only"]);
    assert!(made.status.success(), "{made:?}");
    let with = read(text(&out.join("rank-0001")));
    assert!(with.status.success(), "{with:?}");
    assert_eq!(String::from_utf8(with.stdout).unwrap(), python_ok(READ_ALL, &[text(&db)]));
    let expected = Command::new("mdb_dump").arg(&db).output().unwrap().stdout;
    assert!(!expected.is_empty() && dump(text(&out.join("rank-0000"))).stdout == expected);

    // Where not even reading it is allowed, locks are tried on the data file.
    fs::set_permissions(db.join("lock.mdb"), fs::Permissions::from_mode(0o600)).unwrap();
    let check = as_nobody(&tool).args(["lockfile", "check", "--json", "--watch", "0", text(&db)]).output().unwrap();
    let report = json(&String::from_utf8(check.stdout).unwrap());
    assert_eq!((&report["locks"], &report["reader_table"]), (&"honoured".into(), &serde_json::Value::Null));
    assert!(report["no_reader_table"].as_str().unwrap().contains("Permission denied"), "{report}");
}

/// Forks 200 readers that all hold a transaction at the same time; prints how many could begin one. Each opens its
/// first argument with %04d replaced by its number.
const TWO_HUNDRED: &str = r#"
import lmdb, os, sys
begun, over = os.pipe(), os.pipe()
for rank in range(200):
    if os.fork() == 0:
        os.close(over[1])
        try:
            env = lmdb.open(sys.argv[1].replace("%04d", "%04d" % rank), readonly=True)
            txn = env.begin()
            assert txn.get(b"00000007") is not None
            os.write(begun[1], b"+")
        except lmdb.ReadersFullError:
            os.write(begun[1], b"-")
        os.read(over[0], 1)
        os._exit(0)
answers = b""
while len(answers) < 200: answers += os.read(begun[0], 200)
os.close(over[1])
for rank in range(200): os.wait()
print(answers.count(b"+"))
"#;

#[test]
fn two_hundred_readers_where_126_fit() {
    if !have_py_lmdb() {
        return;
    }
    let (_dir, db, out) = database();
    assert_eq!(python_ok(TWO_HUNDRED, &[text(&db)]).trim_end(), "126");
    replicate(&db, &out, 200);
    assert_eq!(python_ok(TWO_HUNDRED, &[text(&out.join("rank-%04d"))]).trim_end(), "200");
}
