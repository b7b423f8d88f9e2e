//! One program, run without precache and with it: what the two leave behind must be the same.

use crate::methods;
use crate::optimizer;
use crate::preload;
use crate::programs::precache_run;
use crate::storage::lacking;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// What a run leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct Program(pub Vec<OsString>);

impl Program {
    pub fn new<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Self {
        Self(words.into_iter().map(Into::into).collect())
    }

    /// As it is.
    pub fn alone(&self) -> Left {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]);
        finish(&mut command)
    }

    /// Under `precache-run` with these options.
    pub fn under(&self, options: &[&str]) -> (Left, Report) {
        let (mut command, report) = self.command(options);
        let left = finish(&mut command);
        (left, report.read())
    }

    /// The same, not started yet.
    pub fn command(&self, options: &[&str]) -> (Command, ReportFile) {
        static HOME: OnceLock<TempDir> = OnceLock::new();
        // Programs that root runs may become other users, who must get at the library.
        let readable = || tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir();
        let home = HOME.get_or_init(|| readable().expect("a folder"));
        let report = ReportFile::new();
        let mut command = Command::new(precache_run());
        command.env("HOME", home.path()).env("XDG_CACHE_HOME", home.path());
        command.args(["-q", "--report"]).arg(&report.path).args(options).arg("--");
        match preload::replacement() {
            Some(library) => command.args(preload::in_place_of_ours(&library, &self.0)),
            None => command.args(&self.0),
        };
        (command, report)
    }

    /// Runs it alone and under precache, and fails if anybody could tell the difference, or if no checkpoint was hit,
    /// for then nothing was tested; or if pages were not protected as the options say.
    pub fn must_not_notice(&self, options: &[&str]) -> Report {
        let report = self.must_be_as(&self.alone(), options);
        for option in options {
            methods::must_be_in_use(option, &report)
                .unwrap_or_else(|what| panic!("{what}: {:?} with {options:?}: {:#}", self.0, report.0));
        }
        report
    }

    /// The same, with what it leaves behind alone. It may map its files privately, where there are no guards.
    pub fn must_be_as(&self, alone: &Left, options: &[&str]) -> Report {
        let (under, report) = self.under(options);
        self.compare(alone, &under, &format!("{options:?}: {:#}", report.0));
        assert!(report.trips() > 0, "no checkpoint was hit by {:?} with {options:?}: {:#}", self.0, report.0);
        report
    }

    /// The same with an optimizer of its own that is killed when the first checkpoint has been hit.
    pub fn must_outlive_its_optimizer(&self, alone: &Left, options: &[&str]) {
        /// On a machine so busy that nobody looks in time, the program is over before.
        const TRIES: usize = 5;
        for _ in 0..TRIES {
            let (command, report) = self.command(options);
            let Some(mut command) = optimizer::apart(&command) else { return };
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = command.spawn().expect("unshare starts");
            let supervisor = child.id();
            let running = std::thread::spawn(move || child.wait_with_output().expect("it can be waited for"));
            let killed = optimizer::kill_at_first_trip(supervisor, || running.is_finished());
            let output = running.join().expect("it was waited for");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let under = Left { status: output.status, stdout: output.stdout, stderr };
            self.compare(alone, &under, &format!("a killed optimizer: {:#}", report.read().0));
            match killed {
                Ok(true) => return,
                Ok(false) => {}
                Err(_) => return lacking("right to look at what an optimizer has mapped"),
            }
        }
        panic!("no checkpoint was hit by {:?} before its end", self.0);
    }

    fn compare(&self, alone: &Left, under: &Left, how: &str) {
        assert_eq!(
            (alone.status, String::from_utf8_lossy(&alone.stdout), without_addresses(&alone.stderr)),
            (under.status, String::from_utf8_lossy(&under.stdout), without_addresses(&under.stderr)),
            "{:?} notices precache with {how}",
            self.0
        );
    }
}

/// The text with every hexadecimal number as `0x`: addresses differ from run to run.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "0x" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

/// Where a run's report will be.
pub struct ReportFile {
    path: PathBuf,
    folder: TempDir,
}

impl ReportFile {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { path: folder.path().join("report.json"), folder }
    }

    /// Where nothing else should come to be.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn read(&self) -> Report {
        let text = std::fs::read(&self.path).expect("precache-run wrote its report");
        Report(serde_json::from_slice(&text).expect("the report is JSON"))
    }
}

/// The report of a run.
#[derive(Debug)]
pub struct Report(pub Value);

impl Report {
    /// Processes, whether they tripped or not.
    pub fn readers(&self) -> impl Iterator<Item = &Value> {
        self.0["session"]["readers"].as_array().into_iter().flatten()
    }

    pub fn mappings(&self) -> impl Iterator<Item = &Value> {
        self.readers().flat_map(|reader| reader["mappings"].as_array().into_iter().flatten())
    }

    /// Processes that tripped.
    pub fn active_readers(&self) -> usize {
        self.readers().filter(|reader| reader["trips"].as_u64() > Some(0)).count()
    }

    pub fn trips(&self) -> u64 {
        self.sum("trips")
    }

    /// The sum of a counter over all processes.
    pub fn sum(&self, counter: &str) -> u64 {
        self.readers().filter_map(|reader| reader[counter].as_u64()).sum()
    }

    pub fn files(&self) -> impl Iterator<Item = &Value> {
        self.0["session"]["files"].as_array().into_iter().flatten()
    }

    /// The first file.
    pub fn file(&self) -> &Value {
        &self.0["session"]["files"][0]
    }

    /// A number of the first file.
    pub fn of_file(&self, field: &str) -> u64 {
        self.file()[field].as_u64().unwrap_or_else(|| panic!("no {field} in {:#}", self.0))
    }

    /// Everything that the report says in words about what was not done.
    pub fn text(&self) -> String {
        self.0.to_string()
    }
}

pub fn finish(command: &mut Command) -> Left {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Left { status: output.status, stdout: output.stdout, stderr }
}
