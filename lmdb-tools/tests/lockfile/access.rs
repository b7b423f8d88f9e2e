//! Who may use replicas, and whose replicas are used.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::support::*;
use super::*;

#[test]
fn owner_mode_and_access_list_are_the_originals() {
    if !have_py_lmdb() || !is_root() || !have("setfacl", &["--version"]) {
        return;
    }
    let (_dir, db, out) = database();
    let lock = db.join("lock.mdb");
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o640)).unwrap();
    chown(&lock, Some(12345), Some(54321)).unwrap();
    if !set_list(&["-m", "u:777:rw,g:888:r"], &lock) {
        return;
    }
    make_replicas(&db, &out, 1);
    let copy = out.join("rank-0000/lock.mdb");
    let (original, metadata) = (fs::metadata(&lock).unwrap(), fs::metadata(&copy).unwrap());
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode()), (original.uid(), original.gid(), original.mode()));
    assert_eq!(list(&copy), list(&lock));
    assert!(list(&copy).contains("user:777:rw-"));
}

/// What the directory around OUT hands down to all that is made in it.
#[test]
fn a_list_that_was_handed_down_does_not_stay() {
    if !have_py_lmdb() || !have("setfacl", &["--version"]) {
        return;
    }
    let (dir, db, out) = database();
    let given = dir.path().join("given");
    fs::create_dir(&given).unwrap();
    for around in [dir.path(), &given] {
        if !set_list(&["-d", "-m", "u:777:rwx"], around) {
            return;
        }
    }
    for out in [&out, &given] {
        make_replicas(&db, out, 1);
        let replica = out.join("rank-0000");
        let made = [replica.join("lock.mdb"), replica.join(".precache-replica"), replica];
        let ours = made.iter().chain((out != &given).then_some(out));
        for path in ours {
            assert!(!list(path).contains("777"), "{}: {}", path.display(), list(path));
        }
    }
    assert_eq!(list(&out.join("rank-0000/lock.mdb")), list(&db.join("lock.mdb")));
}

fn set_list(change: &[&str], path: &Path) -> bool {
    let set = Command::new("setfacl").args(change).arg(path).status().unwrap().success();
    if !set {
        lacking("access control lists in the temporary directory");
    }
    set
}

fn list(path: &Path) -> String {
    let list = Command::new("getfacl").args(["--omit-header", "--absolute-names", text(path)]).output().unwrap();
    String::from_utf8(list.stdout).unwrap()
}

/// A directory that is closed to all but its owner and one user: both may use the replicas that root makes.
#[test]
fn whoever_may_enter_the_directory_may_enter_its_replicas() {
    if !have_py_lmdb() || !is_root() || !have("setfacl", &["--version"]) {
        return;
    }
    let (dir, db, out) = database();
    fs::set_permissions(&db, fs::Permissions::from_mode(0o1702)).unwrap();
    chown(&db, Some(12345), Some(54321)).unwrap();
    chown(db.join("lock.mdb"), Some(12345), Some(54321)).unwrap();
    for (entry, path) in [("u:65534:rx", db.clone()), ("u:65534:rw", db.join("lock.mdb"))] {
        if !set_list(&["-m", entry], &path) {
            return;
        }
    }
    let script = "umask 077 && exec \"$0\" lockfile replicate \"$1\" \"$2\" -n 1 --assume-read-only";
    let tool = env!("CARGO_BIN_EXE_precache-lmdb");
    assert!(Command::new("sh").args(["-c", script, tool, text(&db), text(&out)]).status().unwrap().success());
    let replica = out.join("rank-0000");
    assert_eq!(fs::metadata(&replica).unwrap().mode() & 0o7777, 0o750, "the group's bits are the list's mask");
    let expected = python_ok(READ_ALL, &[text(&db)]);
    let owner = |program: &Path| {
        let mut owner = Command::new("setpriv");
        owner.args(["--reuid=12345", "--regid=54321", "--clear-groups", "--"]).arg(program);
        owner
    };
    let (python, tool) = (Path::new(PYTHON), for_others(dir.path()));
    for (mut reader, mut asking) in [(as_nobody(python), as_nobody(&tool)), (owner(python), owner(&tool))] {
        let output = reader.args(["-c", READ_ALL, text(&replica)]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
        let answer = asking.args(["lockfile", "rank-dir", text(&out), "--rank", "0"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim_end(), text(&replica), "{answer:?}");
    }
    let mut stranger = Command::new("setpriv");
    stranger.args(["--reuid=777", "--regid=54321", "--clear-groups", "--", "ls", text(&replica)]);
    assert!(!stranger.output().unwrap().status.success(), "the owner's group may not enter the original");
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
    assert!(doctor.contains("!! lock file"), "{doctor}");
    let told = doctor.lines().find_map(|line| line.trim_start().strip_prefix("$ ")).unwrap().replace("PROCESSES", "2");
    let script = format!("precache() {{ \"$0\" \"$@\"; }}\n{told}\necho \"$OUT\"");
    let done = as_nobody("sh").args(["-ec", &script, text(&tool)]).env("TMPDIR", &out).output().unwrap();
    let done = format!("{}/replicas/rank-0001", String::from_utf8(done.stdout).unwrap().trim_end());
    assert!(done.starts_with(text(&out)) && read(&done).status.success(), "{told}");

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

/// Replicas that somebody else has made for himself.
#[test]
fn a_replica_that_one_may_not_use_is_no_success() {
    if !have_py_lmdb() || !is_root() {
        return;
    }
    let (dir, db, out) = database();
    let tool = for_others(dir.path());
    fs::set_permissions(db.join("lock.mdb"), fs::Permissions::from_mode(0o644)).unwrap();
    make_replicas(&db, &out, 1);
    let replicate = ["lockfile", "replicate", text(&db), text(&out), "-n", "1", "--assume-read-only"];
    let rank_dir = ["lockfile", "rank-dir", text(&out), "--rank", "0"];
    for command in [&replicate[..], &rank_dir] {
        let refused = as_nobody(&tool).args(command).output().unwrap();
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("rank-0000/lock.mdb: belongs to user 0") && error.contains("another OUT"), "{error}");
    }
    // One whose note may not be read is not called somebody else's directory.
    fs::set_permissions(out.join("rank-0000"), fs::Permissions::from_mode(0o700)).unwrap();
    let refused = as_nobody(&tool).args(replicate).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Permission denied"), "{refused:?}");
}

/// Whoever may write where OUT is to be can put something there first.
#[test]
fn what_a_stranger_put_there_is_refused() {
    if !have_py_lmdb() || !is_root() {
        return;
    }
    let (dir, db, out) = database();
    let precious = dir.path().join("precious");
    fs::write(&precious, "").unwrap();
    let stranger = Some(65534);
    let replicate = ["lockfile", "replicate", text(&db), text(&out), "-n", "1", "--assume-read-only"];
    let rank_dir = ["lockfile", "rank-dir", text(&out), "--rank", "0"];
    let refused = |why: &str| {
        for command in [&replicate[..], &rank_dir] {
            let error = fail(command, 1);
            assert!(error.contains(why), "{error}");
        }
    };
    make_replicas(&db, &out, 1);
    let replica = out.join("rank-0000");
    // Where readers would write.
    let lock = replica.join("lock.mdb");
    fs::remove_file(&lock).unwrap();
    symlink(&precious, &lock).unwrap();
    refused("lacks its lock.mdb");
    fs::remove_file(&lock).unwrap();
    fs::write(&lock, "").unwrap();
    // A replica, and all of OUT.
    chown(&replica, stranger, stranger).unwrap();
    refused("rank-0000: belongs to user 65534");
    chown(&replica, Some(0), Some(0)).unwrap();
    chown(&out, stranger, stranger).unwrap();
    refused("out: belongs to user 65534");
    // A link of theirs to a directory of ours.
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&out, &elsewhere).unwrap();
    chown(&elsewhere, Some(0), Some(0)).unwrap();
    symlink(&elsewhere, &out).unwrap();
    succeed(&rank_dir);
    std::os::unix::fs::lchown(&out, stranger, stranger).unwrap();
    refused("out: belongs to user 65534");
    fs::remove_file(&out).unwrap();
    fs::rename(&elsewhere, &out).unwrap();
    // The database's owner may do as he likes.
    chown(&out, stranger, stranger).unwrap();
    chown(db.join("data.mdb"), stranger, stranger).unwrap();
    succeed(&replicate);
    succeed(&rank_dir);
    // A note that never ends.
    let note = replica.join(".precache-replica");
    fs::remove_file(&note).unwrap();
    nix::unistd::mkfifo(&note, nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused("not a replica that this program made");
}

/// A lock file that nobody has made yet, where not everybody may make one.
#[test]
fn a_reader_who_may_not_make_the_lock_file() {
    if !have_py_lmdb() || !is_root() || !have("mdb_dump", &["-V"]) {
        return;
    }
    let (dir, db, _) = database();
    let tool = for_others(dir.path());
    let out = dir.path().join("nobodys");
    fs::create_dir(&out).unwrap();
    chown(&out, Some(65534), Some(65534)).unwrap();
    let expected = python_ok(READ_ALL, &[text(&db)]);
    fs::remove_file(db.join("lock.mdb")).unwrap();
    let read = |path: &Path| as_nobody(PYTHON).args(["-c", READ_ALL, text(path)]).output().unwrap();
    let dump = |path: &Path| as_nobody("mdb_dump").arg(path).output().unwrap();
    for without in [read(&db), dump(&db)] {
        assert!(String::from_utf8_lossy(&without.stderr).contains("Permission denied"), "{without:?}");
    }
    let replicate = ["lockfile", "replicate", text(&db), text(&out), "-n", "2", "--assume-read-only"];
    let made = as_nobody(&tool).args(replicate).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    assert_eq!(String::from_utf8(read(&out.join("rank-0000")).stdout).unwrap(), expected);
    assert!(dump(&out.join("rank-0001")).status.success());
    assert!(!db.join("lock.mdb").exists());
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
    make_replicas(&db, &out, 200);
    assert_eq!(python_ok(TWO_HUNDRED, &[text(&out.join("rank-%04d"))]).trim_end(), "200");
}

/// Those of liblmdb itself: each holds its slot until somebody reads more of what it prints than a pipe takes.
#[test]
fn two_hundred_dumps_where_126_fit() {
    if !have_py_lmdb() || !have("mdb_dump", &["-V"]) {
        return;
    }
    let (_dir, db, out) = database();
    let reading = |path: &dyn Fn(u32) -> String| {
        let start = |rank: u32| {
            Command::new("mdb_dump").arg(path(rank)).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut dumps: Vec<Child> = (0..200).map(start).collect();
        let first = |dump: &mut Child| dump.stdout.as_mut().unwrap().read(&mut [0]).unwrap();
        let begun: usize = dumps.iter_mut().map(first).sum();
        for dump in &mut dumps {
            dump.kill().unwrap();
            dump.wait().unwrap();
        }
        begun
    };
    assert_eq!(reading(&|_| text(&db).into()), 126);
    make_replicas(&db, &out, 200);
    assert_eq!(reading(&|rank| text(&out.join(format!("rank-{rank:04}"))).into()), 200);
}
