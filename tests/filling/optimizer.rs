//! The optimizer killed or stopped while it serves; and what is left behind at the end.

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, Shutdown, SockFlag, SockType, UnixAddr, accept, bind, listen, shutdown, socket,
};
use nix::unistd::Pid;
use precache_tests::optimizer::{all_beside, beside, must_end, socket_of, wait_for};
use precache_tests::programs::program;
use precache_tests::runs::{Program, Report, ReportFile};
use precache_tests::storage::flat_file;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use tempfile::TempDir;

/// Reads the file in two halves; in between it says so and waits for a line. The second is read no faster than an optimizer
/// can follow that seldom gets a processor, for the file is cached.
const READER: &str = r#"
import mmap, sys, time, zlib
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
half = len(data) // 2
step = 1 << 20
crc = zlib.crc32(data[:half])
print('half', flush=True)
sys.stdin.readline()
for at in range(half, len(data), step):
    crc = zlib.crc32(data[at:at + step], crc)
    time.sleep(0.01)
print(crc, flush=True)
"#;

/// The reader under precache in a mount namespace of its own, and so with an optimizer of its own.
pub struct Served {
    pub supervisor: Child,
    output: BufReader<std::process::ChildStdout>,
    pub report: ReportFile,
    optimizer: Pid,
    /// Where it would make temporary files.
    temporary: TempDir,
}

impl Served {
    fn start() -> Option<Self> {
        Self::start_with(READER)
    }

    pub fn start_with(code: &str) -> Option<Self> {
        Self::start_within(&["unshare", "--mount"], code)
    }

    /// Started by a command with these words.
    fn start_within(by: &[&str], code: &str) -> Option<Self> {
        let words = ["/usr/bin/python3", "-c", code].map(Into::into);
        let reader = Program::new(words.into_iter().chain([flat_file(64).into_os_string()]));
        let (inner, report) = reader.command(&["--distance=1M", "--size=4M"]);
        let mut command = within(by, &inner);
        let temporary = tempfile::tempdir().expect("a folder");
        command.env("TMPDIR", temporary.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut supervisor = command.spawn().expect("it starts");
        let mut output = BufReader::new(supervisor.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("the reader speaks");
        if line.is_empty() {
            precache_tests::storage::lacking("right to make a mount namespace");
            let _ = supervisor.wait();
            return None;
        }
        assert_eq!(line, "half\n");
        let optimizer = beside(supervisor.id()).expect("an optimizer serves");
        Some(Self { supervisor, output, report, optimizer, temporary })
    }

    /// Nothing that it made is there any more but so many reports; sockets and shared memory, which have no names in the file
    /// system, go with the processes.
    fn leaves_no_files(&self, reports: usize) {
        let shared = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let ours = shared.filter(|entry| entry.file_name().to_string_lossy().contains("precache")).count();
        let in_folder = |folder| fs::read_dir(folder).expect("a folder").count();
        assert_eq!((in_folder(self.temporary.path()), in_folder(self.report.folder()), ours), (0, reports, 0));
    }

    /// Kills the optimizer; its supervisor, which is returned, stands still, and starts none until it goes on. The name that
    /// it will look for is free.
    fn free_name(&self) -> (Pid, Vec<u8>) {
        let supervisor = Pid::from_raw(self.supervisor.id() as i32);
        let name = socket_of(self.optimizer).expect("it listens");
        kill(supervisor, Signal::SIGSTOP).expect("it runs");
        kill(self.optimizer, Signal::SIGKILL).expect("it runs");
        must_end(self.optimizer);
        (supervisor, name)
    }

    /// Lets the reader go on; returns what it prints.
    pub fn go_on(&mut self) -> String {
        self.supervisor.stdin.take().expect("a pipe").write_all(b"\n").expect("the reader listens");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the reader speaks");
        line
    }
}

/// The command, started by another one with these words.
fn within(words: &[&str], inner: &Command) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg("--").arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// What each of these programs prints in the end.
pub fn expected() -> String {
    let script = "import sys, zlib; print(zlib.crc32(open(sys.argv[1], 'rb').read()))";
    let words = ["/usr/bin/python3", "-c", script].map(Into::into);
    let left = Program::new(words.into_iter().chain([flat_file(64).into_os_string()])).alone();
    String::from_utf8(left.stdout).expect("digits")
}

#[test]
fn a_killed_optimizer_is_outlived_and_replaced() {
    let Some(mut served) = Served::start() else { return };
    kill(served.optimizer, Signal::SIGKILL).unwrap();
    must_end(served.optimizer);
    wait_for("a new optimizer", || beside(served.supervisor.id()).is_some());
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    let report = served.report.read();
    assert_eq!(report.0["optimizer_restarts"], 1, "{:#}", report.0);
    served.leaves_no_files(1);
    // The reader has gone over to the new one, in the middle of its file.
    assert!(report.trips() > 0, "{:#}", report.0);
    assert!(report.of_file("requested") > 8 << 20, "{:#}", report.0);
}

/// A mapping made under the new optimizer makes it know the older ones as well.
#[test]
fn a_new_optimizer_is_told_of_all_mappings() {
    let code = r#"
import mmap, os, sys, zlib
def map_file():
    file = os.open(sys.argv[1], os.O_RDONLY)
    data = mmap.mmap(file, 0, prot=mmap.PROT_READ)
    os.close(file)
    return data
kept = map_file()
crc = zlib.crc32(kept[:len(kept) // 2])
print('half', flush=True)
sys.stdin.readline()
later = map_file()
crc = zlib.crc32(kept[len(kept) // 2:], crc)
print(crc, flush=True)
assert zlib.crc32(later) == crc
"#;
    let Some(mut served) = Served::start_with(code) else { return };
    kill(served.optimizer, Signal::SIGKILL).unwrap();
    must_end(served.optimizer);
    wait_for("a new optimizer", || beside(served.supervisor.id()).is_some());
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    let report = served.report.read();
    let tripped: Vec<_> = report.mappings().filter_map(|m| m["trips"].as_u64()).filter(|&trips| trips > 0).collect();
    assert_eq!(tripped.len(), 2, "{:#}", report.0);
}

/// What the program has said of its reading, the new optimizer hears as well.
#[test]
fn a_new_optimizer_is_told_what_was_said() {
    let after = |says: &str| {
        let code = READER.replace("half =", &format!("{says}\nhalf ="));
        let mut served = Served::start_with(&code)?;
        kill(served.optimizer, Signal::SIGKILL).unwrap();
        must_end(served.optimizer);
        wait_for("a new optimizer", || beside(served.supervisor.id()).is_some());
        assert_eq!(served.go_on(), expected());
        assert!(served.supervisor.wait().unwrap().success());
        Some(served.report.read())
    };
    let faults =
        |report: &Report| report.mappings().find_map(|mapping| mapping["faults_before_first_request"].as_u64());
    let told = |report: &Report| report.mappings().find_map(|mapping| mapping["advice"].as_u64());
    let Some(plain) = after("") else { return };
    assert_eq!(told(&plain), Some(0), "{:#}", plain.0);
    let sequential = after("data.madvise(mmap.MADV_SEQUENTIAL)").unwrap();
    assert_eq!((told(&sequential), faults(&sequential)), (Some(1), Some(1)), "{:#}", sequential.0);
    // Not the second half alone.
    let wanted = after("data.madvise(mmap.MADV_WILLNEED)").unwrap();
    assert!(wanted.of_file("requested") >= 64 << 20, "{:#}", wanted.0);
}

#[test]
fn a_killed_optimizer_is_outlived_without_another() {
    let Some(mut served) = Served::start() else { return };
    // Its supervisor stands still, and starts none.
    let supervisor = Pid::from_raw(served.supervisor.id() as i32);
    kill(supervisor, Signal::SIGSTOP).unwrap();
    kill(served.optimizer, Signal::SIGKILL).unwrap();
    must_end(served.optimizer);
    assert_eq!(served.go_on(), expected());
    kill(supervisor, Signal::SIGCONT).unwrap();
    assert!(served.supervisor.wait().unwrap().success());
}

/// Another process has taken the name meanwhile, and hangs up on everybody.
#[test]
fn why_none_takes_the_place_of_one_that_died_is_told() {
    let Some(mut served) = Served::start() else { return };
    let (supervisor, name) = served.free_name();
    let other = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(other.as_raw_fd(), &UnixAddr::new_abstract(&name).unwrap()).unwrap();
    listen(&other, Backlog::MAXCONN).unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let (name_taker, count) = (other.as_raw_fd(), Arc::clone(&asked));
    let hangs_up = std::thread::spawn(move || {
        while let Ok(connection) = accept(other.as_raw_fd()) {
            // SAFETY: accept made this descriptor for us.
            drop(unsafe { OwnedFd::from_raw_fd(connection) });
            count.fetch_add(1, SeqCst);
        }
    });
    kill(supervisor, Signal::SIGCONT).unwrap();
    // One start is three attempts.
    wait_for("the supervisor to look for another", || asked.load(SeqCst) >= 4);
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    let report = served.report.read();
    assert!(
        report.text().contains("the optimizer died or did not come up, and none took its place: "),
        "{:#}",
        report.0
    );
    // Or else it hangs up on the next test whose mount namespace has the same number.
    shutdown(name_taker, Shutdown::Both).unwrap();
    hangs_up.join().unwrap();
}

#[test]
fn a_stopped_optimizer_is_not_waited_for() {
    let Some(mut served) = Served::start() else { return };
    kill(served.optimizer, Signal::SIGSTOP).unwrap();
    assert_eq!(served.go_on(), expected());
    kill(served.optimizer, Signal::SIGCONT).unwrap();
    assert!(served.supervisor.wait().unwrap().success());
    assert!(served.report.read().trips() > 0);
}

/// A program that starts now runs without it, and what comes of the one under way is not known.
#[test]
fn nobody_waits_long_for_an_optimizer_that_stays_stopped() {
    let Some(mut served) = Served::start() else { return };
    kill(served.optimizer, Signal::SIGSTOP).unwrap();
    let reader = Program::new([program("map-reader").into_os_string(), flat_file(64).into_os_string()]);
    let (inner, report) = reader.command(&[]);
    let place = format!("--mount=/proc/{}/ns/mnt", served.supervisor.id());
    assert!(within(&["nsenter", &place], &inner).output().unwrap().status.success());
    let is_stopped = format!("the optimizer is stopped: continue process {}", served.optimizer);
    assert!(report.read().text().contains(&is_stopped), "{:#}", report.read().0);
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    assert!(served.report.read().text().contains(&is_stopped), "{:#}", served.report.read().0);
    kill(served.optimizer, Signal::SIGCONT).unwrap();
}

#[test]
fn nobody_waits_long_for_an_optimizer_that_hangs() {
    with_a_mute_optimizer("signal.pause()", "the optimizer hangs: process PID has done nothing for 800ms");
}

#[test]
fn nobody_waits_long_for_an_optimizer_that_goes_round_in_circles() {
    with_a_mute_optimizer("while True: pass", "the optimizer goes round in circles: process PID has worked for ");
}

/// It is stopped and continued again and again, or somebody takes its turns away: neither is at an end for long.
#[test]
fn nobody_waits_long_for_an_optimizer_that_hangs_and_works_in_turns() {
    let in_turns = "
import time
while True:
    time.sleep(0.3)
    begun = time.process_time()
    while time.process_time() - begun < 0.15: pass
";
    with_a_mute_optimizer(in_turns, "the optimizer hangs: process PID has done nothing for ");
}

/// Another process has the name, and hears everybody, but does this and says nothing.
fn with_a_mute_optimizer(what_it_does: &str, told: &str) {
    let Some(mut served) = Served::start() else { return };
    let (supervisor, name) = served.free_name();
    let mute = "
import signal, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind('\\0' + sys.argv[1])
listener.listen()
print('listens', flush=True)
exec(sys.argv[2])
";
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", mute]).arg(OsStr::from_bytes(&name)).arg(what_it_does);
    let mut other = python.stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let reader = Program::new([program("map-reader").into_os_string(), flat_file(64).into_os_string()]);
    let (inner, report) = reader.command(&[]);
    let place = format!("--mount=/proc/{}/ns/mnt", served.supervisor.id());
    assert!(within(&["nsenter", &place], &inner).output().unwrap().status.success());
    let told = told.replace("PID", &other.id().to_string());
    assert!(report.read().text().contains(&told), "{:#}", report.read().0);
    kill(supervisor, Signal::SIGCONT).unwrap();
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    assert!(served.report.read().text().contains(&told), "{:#}", served.report.read().0);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn nothing_is_left_behind() {
    let Some(mut served) = Served::start() else { return };
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    must_end(served.optimizer);
    served.leaves_no_files(1);
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    let Some(mut served) = Served::start() else { return };
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", served.supervisor.id())).unwrap();
    served.supervisor.kill().unwrap();
    served.supervisor.wait().unwrap();
    for child in children.split_whitespace() {
        must_end(Pid::from_raw(child.parse().unwrap()));
    }
    must_end(served.optimizer);
    served.leaves_no_files(0);
}

#[test]
fn one_optimizer_serves_all_supervisors() {
    let Some(first) = Served::start() else { return };
    let namespace = format!("--mount=/proc/{}/ns/mnt", first.supervisor.id());
    let others = std::iter::repeat_with(|| Served::start_within(&["nsenter", &namespace], READER)).take(5);
    let all: Vec<_> = std::iter::once(first).chain(others.flatten()).collect();
    assert_eq!(all.len(), 6);
    let optimizer = all[0].optimizer;
    assert_eq!(all_beside(all[0].supervisor.id()), [optimizer]);
    for mut served in all {
        assert_eq!(served.go_on(), expected());
        assert!(served.supervisor.wait().unwrap().success());
        let report = served.report.read();
        assert!(served.optimizer == optimizer && report.trips() > 0, "{:#}", report.0);
    }
}

/// A program that reads a little and ends may be over before the optimizer comes to it.
#[test]
fn a_mapping_that_is_gone_before_it_is_heard_of_is_in_the_report() {
    let code = r#"
import mmap, sys, zlib
print('half', flush=True)
sys.stdin.readline()
with open(sys.argv[1], 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
    crc = zlib.crc32(data)
print(crc, flush=True)
"#;
    let Some(mut served) = Served::start_with(code) else { return };
    kill(served.optimizer, Signal::SIGSTOP).unwrap();
    assert_eq!(served.go_on(), expected());
    kill(served.optimizer, Signal::SIGCONT).unwrap();
    assert!(served.supervisor.wait().unwrap().success());
    let report = served.report.read();
    assert_eq!(report.mappings().count(), 1, "{:#}", report.0);
    assert!(report.trips() > 0, "{:#}", report.0);
}

/// The optimizer hears of the children before it has looked at the file, which nobody has open any more.
#[test]
fn children_forked_before_their_file_is_known_are_served() {
    let code = r#"
import ctypes, os, sys, zlib
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
print('half', flush=True)
sys.stdin.readline()
file = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(file).st_size
data = memoryview((ctypes.c_char * size).from_address(libc.mmap(None, size, 1, 1, file, 0)))
os.close(file)
for part in range(4):
    if os.fork() == 0:
        zlib.crc32(data[size * part // 4:size * (part + 1) // 4])
        os._exit(0)
assert [os.wait()[1] for part in range(4)] == [0] * 4
print(zlib.crc32(data), flush=True)
"#;
    let Some(mut served) = Served::start_with(code) else { return };
    kill(served.optimizer, Signal::SIGSTOP).unwrap();
    assert_eq!(served.go_on(), expected());
    kill(served.optimizer, Signal::SIGCONT).unwrap();
    assert!(served.supervisor.wait().unwrap().success());
    let report = served.report.read();
    let tripped: Vec<_> = report.readers().filter(|process| process["trips"].as_u64() > Some(0)).collect();
    assert!(tripped.len() >= 5, "{:#}", report.0);
    let lists_its_mapping =
        |process: &&serde_json::Value| process["mappings"].as_array().is_some_and(|mappings| mappings.len() == 1);
    assert!(tripped.iter().all(lists_its_mapping), "{:#}", report.0);
}
