//! The test plays readers and supervisors, and does what ours do not: the optimizer ends those connections and goes on
//! serving others, also in the same session. (Other users do not get so far: `tests/supervisor/strangers.rs`.)

mod strangers;

use self::strangers::{Manner, STRANGERS};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use precache_tests::optimizer::{beside, must_end, wait_for};
use precache_tests::runs::{Program, ReportFile};
use precache_tests::storage::{flat_file, make_cold};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Says where its optimizer is; maps the file and reads it when it is told to, and ends when it is told so.
const READER: &str = r#"
import mmap, os, sys, zlib
told = dict(line.split('=', 1) for line in os.environ['PRECACHE_READER'].split('\x1e') if line)
print(os.getpid(), told['session'], told['socket'], flush=True)
sys.stdin.readline()
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(zlib.crc32(data), flush=True)
sys.stdin.readline()
"#;

/// Where a stranger finds the optimizer, and whom it can disturb there.
struct Place {
    socket: String,
    session: u64,
    data: PathBuf,
}

/// A process, what it says, and what it waits for.
struct Partner {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Partner {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, input, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn go_on(&mut self) {
        self.input.write_all(b"\n").expect("it listens");
    }

    /// Lets it go, and waits until it has gone.
    fn end(mut self) {
        drop(self.input);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        assert!(self.process.wait().expect("it ends").success(), "{rest}");
    }
}

/// A reader in a mount namespace of its own, and so with an optimizer of its own.
struct Served {
    pid: i32,
    reader: Partner,
    report: ReportFile,
    optimizer: Pid,
    place: Place,
}

impl Served {
    fn start() -> Option<Self> {
        let data = flat_file(64);
        let words = ["/usr/bin/python3", "-c", READER].map(Into::into);
        let program = Program::new(words.into_iter().chain([data.clone().into_os_string()]));
        let (inner, report) = program.command(&["--distance=1M", "--size=4M"]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--"]).arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut reader = Partner::start(&mut command);
        let told = reader.line();
        let [pid, session, socket] = told.split(' ').collect::<Vec<_>>()[..] else {
            precache_tests::storage::lacking("right to make a mount namespace");
            let _ = reader.process.wait();
            return None;
        };
        let optimizer = beside(reader.process.id()).expect("an optimizer serves");
        let place = Place { socket: socket.into(), session: session.parse().expect("a number"), data };
        Some(Self { pid: pid.parse().expect("a number"), reader, report, optimizer, place })
    }

    /// Starts this very program as a stranger.
    fn stranger(&self, name: &str) -> Partner {
        let mut command = Command::new(env::current_exe().expect("a test has a path"));
        command.args(["--exact", "strange_readers::plays_the_stranger", "--ignored", "--nocapture"]);
        command.env("STRANGER", name).env("STRANGER_SOCKET", &self.place.socket);
        command.env("STRANGER_SESSION", self.place.session.to_string()).env("STRANGER_DATA", &self.place.data);
        Partner::start(&mut command)
    }

    /// The same, and waits until it says that it is at it.
    fn stranger_at_work(&self, name: &str) -> Partner {
        let mut stranger = self.stranger(name);
        while stranger.line() != "here" {
            assert!(stranger.process.try_wait().expect("it is ours").is_none(), "{name} ended");
        }
        stranger
    }

    /// What the optimizer has: open descriptors and threads.
    fn belongings(&self) -> [usize; 2] {
        ["fd", "task"].map(|what| {
            let entries = fs::read_dir(format!("/proc/{}/{what}", self.optimizer));
            entries.expect("the optimizer lives").count()
        })
    }

    /// Waits until it has no more than that.
    fn must_let_go(&self, name: &str, before: [usize; 2]) {
        let has_no_more = || std::iter::zip(self.belongings(), before).all(|(now, then)| now <= then);
        wait_for(&format!("{name}: an optimizer with no more than {before:?} descriptors and threads"), has_no_more);
    }

    /// The reader reads, is served, and is told of in the report.
    fn must_be_served(mut self, strangers: Vec<Partner>) {
        let data = &self.place.data;
        let script = "import sys, zlib; print(zlib.crc32(open(sys.argv[1], 'rb').read()))";
        let alone = Command::new("/usr/bin/python3").args(["-c", script]).arg(data).output().expect("it starts");
        make_cold(data);
        self.reader.go_on();
        assert_eq!(self.reader.line(), String::from_utf8_lossy(&alone.stdout).trim_end());
        assert_eq!(beside(self.reader.process.id()), Some(self.optimizer), "it is another optimizer");
        strangers.into_iter().for_each(Partner::end);
        self.reader.go_on();
        self.reader.end();
        // Nothing that strangers left keeps it.
        must_end(self.optimizer);
        let report = self.report.read();
        assert_eq!(report.0["optimizer_restarts"], 0, "{:#}", report.0);
        let ours: Vec<_> = report.readers().filter(|reader| reader["pid"] == self.pid).collect();
        let is_served = |reader: &serde_json::Value| {
            let mapping = &reader["mappings"][0];
            reader["mappings"].as_array().is_some_and(|mappings| mappings.len() == 1)
                && reader["refusals"].as_array().is_some_and(Vec::is_empty)
                && [&reader["trips"], &mapping["trips"], &mapping["streams"]].iter().all(|n| n.as_u64() > Some(0))
        };
        assert!(ours.len() == 1 && is_served(ours[0]), "{:#}", report.0);
        let file = report.files().find(|file| file["path"].as_str() == self.place.data.to_str());
        let requested = file.and_then(|file| file["requested"].as_u64());
        assert!(requested > Some(32 << 20), "{:#}", report.0);
    }
}

/// In the stranger: says that it is at it, and goes on until it is told to end.
fn say_and_wait(mut work: impl FnMut()) {
    let (over, end): (_, Receiver<()>) = channel();
    std::thread::spawn(move || {
        let _over = over;
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    });
    println!("here");
    while end.try_recv() == Err(TryRecvError::Empty) {
        work();
        std::thread::yield_now();
    }
}

/// No test: the process that [`Served::stranger`] starts.
#[test]
#[ignore = "started by the tests beside it"]
fn plays_the_stranger() {
    let told = |name: &str| env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let name = told("STRANGER");
    let place = Place {
        socket: told("STRANGER_SOCKET"),
        session: told("STRANGER_SESSION").parse().expect("a number"),
        data: told("STRANGER_DATA").into(),
    };
    let strangers = STRANGERS.iter().chain([&("asks_with_many", strangers::asks_with_many as Manner)]);
    let (_, play) = strangers.into_iter().find(|(known, _)| *known == name).expect("there is such a stranger");
    play(&place);
}

/// One after the other, and then again while the reader reads.
#[test]
fn strange_readers_disturb_nobody() {
    let Some(served) = Served::start() else { return };
    let before = served.belongings();
    for (name, _) in STRANGERS {
        served.stranger(name).end();
        served.must_let_go(name, before);
    }
    let strangers = STRANGERS.map(|(name, _)| match name {
        "writes_rubbish" | "only_connects" => served.stranger_at_work(name),
        _ => served.stranger(name),
    });
    served.must_be_served(strangers.into());
}

/// So many at once that they all wait: the optimizer stands still until they have asked.
#[test]
fn many_who_ask_at_once_are_answered() {
    let Some(served) = Served::start() else { return };
    let before = served.belongings();
    kill(served.optimizer, Signal::SIGSTOP).unwrap();
    let stranger = served.stranger_at_work("asks_with_many");
    kill(served.optimizer, Signal::SIGCONT).unwrap();
    stranger.end();
    served.must_let_go("asks_with_many", before);
    served.must_be_served(Vec::new());
}
